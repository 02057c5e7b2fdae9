// The instance that computes all that the header allows: 128 x 128 of D a work-group, four waves of 64 x 64, operands and scales of any
// strides. Slabs of K pass registers, in which the next one is loaded while one is multiplied, and LDS.
#pragma once

#include "common/lds.hip.h"
#include "scaled_gemm/output.hip.h"
#include "scaled_gemm/slab_products.hip.h"

namespace flydsl::kernels {
namespace scaled_gemm {

constexpr u32 kWaveBytes = kSlabBytes;  // a wave's part of the stages

// Sums of `blocks` of a wave's blocks of 32 rows, from `first` on, by way of its part of LDS, to rows of 8 neighbours.
template <u32 blocks>
FLYDSL_DEVICE void store_blocks(lds_ptr<char> mine, u32 first, Arguments args, u32 batch,
                                i32 first_row, i32 first_column, u32 lane, const Sums &sums) {
  constexpr u32 kRowBytes = 64 * 4;  // all banks: chunks are moved by the row
  static_assert(blocks * 32 * kRowBytes == kWaveBytes);
#pragma unroll
  for (u32 i = first; i < first + blocks; ++i)
#pragma unroll
    for (u32 j = 0; j < 2; ++j)
#pragma unroll
      for (u32 part = 0; part < 4; ++part) {
        const u32 row = 32 * (i - first) + lane % 32, chunk = 8 * j + 2 * part + lane / 32;
        const f32x16 block = sums.block[i][j];
        const f32x4 four = {block[4 * part], block[4 * part + 1], block[4 * part + 2],
                            block[4 * part + 3]};
        write_b128(mine + row * kRowBytes + 16 * (chunk ^ (row & 15)), bits_as<u32x4>(four));
      }
  barrier();
  const i32 m = args->m, n = args->n;
#pragma unroll 1
  for (u32 i = 0; i < 4 * blocks; ++i) {
    const u32 row = 8 * i + lane / 8, chunk = lane % 8 * 2;
    const i32 at_row = first_row + static_cast<i32>(32 * first + row);
    const i32 at_column = first_column + static_cast<i32>(4 * chunk);
    if (at_row >= m || at_column >= n) continue;
    float eight[8];
#pragma unroll
    for (u32 half = 0; half < 2; ++half) {
      const f32x4 four =
          bits_as<f32x4>(read_b128(mine + row * kRowBytes + 16 * ((chunk + half) ^ (row & 15))));
#pragma unroll
      for (int j = 0; j < 4; ++j) eight[4 * half + j] = four[j];
    }
    finish_row8(args, batch, at_row, at_column, n - at_column, eight);
  }
}
FLYDSL_DEVICE void store_general(lds_ptr<char> mine, Arguments args, u32 batch, i32 first_row,
                                 i32 first_column, u32 lane, const Sums &sums) {
  constexpr u32 kBlocks = kGfx950 ? 2 : 1;
#pragma unroll
  for (u32 first = 0; first < 2; first += kBlocks) {
    if (first != 0) barrier();
    store_blocks<kBlocks>(mine, first, args, batch, first_row, first_column, lane, sums);
  }
}

}  // namespace scaled_gemm

template <int format_a, int format_b>
FLYDSL_DEVICE void scaled_gemm_general(const flydsl_aot_scaled_gemm_kernarg &kernarg) {
  using namespace scaled_gemm;
  constexpr u32 kOfStages = kStages * kStageBytes, kOfStore = kThreads / kWaveLanes * kWaveBytes;
  FLYDSL_SHARED static char memory[kOfStages > kOfStore ? kOfStages : kOfStore];
  const lds_ptr<char> lds = (lds_ptr<char>)memory;

  const Arguments args = arguments_here(kernarg);
  const u32 number =
      uniform(__builtin_amdgcn_workgroup_id_y() * args->grid_x + __builtin_amdgcn_workgroup_id_x());
  if (number >= args->tiles) return;
  const Tile tile(number, args);
  const u32 thread = __builtin_amdgcn_workitem_id_x();
  const u32 wave = uniform(thread / kWaveLanes), lane = thread % kWaveLanes;
  const u32 first_row = tile.row * kRows, first_column = tile.column * kRows;
  const u32 m = static_cast<u32>(args->m), n = static_cast<u32>(args->n);
  const u32 row_a = wave / 2 * 64, row_b = wave % 2 * 64;

  Sums sums = {};
  if (args->k > 0) {
    constexpr i32 kBlock = kBlockBytes<format_a>, kSlab = kSlabK<format_a>;
    i32 left = args->k / 32 * kBlock;
    Slabs<format_a> a((global_ptr<const char>)args->a + tile.batch * args->a_stride_b +
                          first_row * args->a_stride_m,
                      args->a_stride_m, args->a_stride_k, m - first_row, thread);
    Slabs<format_b> b((global_ptr<const char>)args->b + tile.batch * args->b_stride_b +
                          first_column * args->b_stride_n,
                      args->b_stride_n, args->b_stride_k, n - first_column, thread);
    // The first half of the work-group has A's rows, the other one B's.
    const bool of_a = thread < kRows;
    const u32 wanted = thread % kRows + (of_a ? first_row : first_column);
    const u32 rows = of_a ? m : n;
    RowScales<kSlab / kBlock> scales(
        of_a ? (global_ptr<const u8>)args->a_scale + tile.batch * args->a_scale_stride_b
             : (global_ptr<const u8>)args->b_scale + tile.batch * args->b_scale_stride_b,
        of_a ? args->a_scale_stride_m : args->b_scale_stride_n,
        of_a ? args->a_scale_stride_k : args->b_scale_stride_k, wanted < rows ? wanted : rows - 1,
        args->scales_shuffled != 0);
    i32 k = 0;
    const auto load = [&]() FLYDSL_INLINED {
      // Addresses are computed here, not carried round the loop: there are too many.
      k = static_cast<i32>(uniform_computed_here(static_cast<u32>(k)));
      a.load(k, left);
      b.load(k, left);
      scales.load(static_cast<u32>(k / kBlock), left / kBlock);
    };
    load();
    u32 stage = 0;
    while (true) {
      const lds_ptr<char> at = lds + stage;
      a.write(at);
      b.write(at + kSlabBytes);
      write_scales(at, thread, scales.bytes);
      // Of two stages: who writes one next has passed this barrier once more, and so have all done with reading it.
      barrier();
      k += kSlab;
      left -= kSlab;
      if (left > 0) load();
      multiply_slab<format_a, format_b>(at, row_a, row_b, lane, sums);
      if (left <= 0) break;
      if constexpr (kStages == 1)
        barrier();
      else
        stage ^= kStageBytes;
    }
    barrier();
    add_nan_scales(lds, thread, scales.any_nan, row_a, row_b, lane, sums);
  }
  store_general(lds + wave * kWaveBytes, args, tile.batch, static_cast<i32>(first_row + row_a),
                static_cast<i32>(first_column + row_b), lane, sums);
}

}  // namespace flydsl::kernels
