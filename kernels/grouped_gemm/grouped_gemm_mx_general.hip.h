// grouped_gemm of MXFP8 operands for everything the header allows: any strides, any of the axes. Slabs and products of scaled_gemm
// (scaled_gemm/slabs.hip.h): 128 x 128 of D, the next slab in registers while one is multiplied.
#pragma once

#include "grouped_gemm/store_general.hip.h"
#include "scaled_gemm/slab_products.hip.h"

namespace flydsl::kernels::grouped {

constexpr i32 kMxBlock = 32;  // of K, with a scale

// Elements of a slab before `first` and from `end` on become 0.
template <class Slabs>
FLYDSL_DEVICE void keep_elements(Slabs &slabs, i32 first, i32 end) {
#pragma unroll
  for (u32 i = 0; i < scaled_gemm::kChunks; ++i) {
    // Made anew, not carried round the loop, as masks would be.
    const i32 chunk = static_cast<i32>(Slabs::kChunkBytes * computed_here(slabs.chunk(i)));
#pragma unroll
    for (i32 word = 0; word < Slabs::kWords; ++word) {
      const i32 at = chunk + 4 * word;
      const auto bytes_below = [](i32 count) {
        return count <= 0 ? 0u : count >= 4 ? ~0u : (1u << 8 * count) - 1;
      };
      slabs.chunks[i][word] &= bytes_below(end - at) & ~bytes_below(first - at);
    }
  }
}

// One operand's side of a tile: rows are those of A, columns of B.
struct MxGeneralSide {
  global_ptr<const char> data;
  i64 stride_row, stride_k;
  i32 row, rows;  // of the tile: the first in the matrix, how many
  global_ptr<const u8> scale;
  i64 scale_stride_row, scale_stride_k;
};
FLYDSL_DEVICE MxGeneralSide mx_general_a(const Tile &tile) {
  const Arguments args = fresh_arguments();
  const i64 g = tile.group;
  return {(global_ptr<const char>)args->a + g * args->a_stride_g + tile.m * args->a_stride_m,
          args->a_stride_m,
          args->a_stride_k,
          tile.m,
          tile.rows,
          (global_ptr<const u8>)args->a_scale + g * args->a_scale_stride_g,
          args->a_scale_stride_m,
          args->a_scale_stride_k};
}
FLYDSL_DEVICE MxGeneralSide mx_general_b(const Tile &tile) {
  const Arguments args = fresh_arguments();
  const i64 g = tile.group;
  return {(global_ptr<const char>)args->b + g * args->b_stride_g + tile.n * args->b_stride_n,
          args->b_stride_n,
          args->b_stride_k,
          tile.n,
          tile.columns,
          (global_ptr<const u8>)args->b_scale + g * args->b_scale_stride_g,
          args->b_scale_stride_n,
          args->b_scale_stride_k};
}

// The products of a tile that has some.
template <int format_a, int format_b>
FLYDSL_DEVICE void multiply_mx_general(const Tile &tile, lds_ptr<char> lds, u32 thread,
                                       scaled_gemm::Sums &sums) {
  using namespace scaled_gemm;
  constexpr i32 kSlab = kSlabK<format_a>, kBlocks = kSlab / kMxBlock;
  const u32 wave = uniform(thread / kWaveLanes), lane = thread % kWaveLanes;
  const u32 row_a = wave / 2 * 64, row_b = wave % 2 * 64;
  const MxGeneralSide side_a = mx_general_a(tile), side_b = mx_general_b(tile);
  Slabs<format_a> a(side_a.data, side_a.stride_row, side_a.stride_k, static_cast<u32>(side_a.rows),
                    thread);
  Slabs<format_b> b(side_b.data, side_b.stride_row, side_b.stride_k, static_cast<u32>(side_b.rows),
                    thread);
  // The first half of the work-group has A's rows, the other one B's.
  const bool of_a = thread < kRows;
  const MxGeneralSide &scaled = of_a ? side_a : side_b;
  const i32 wanted = static_cast<i32>(thread % kRows);
  RowScales<kBlocks> scales(
      scaled.scale, scaled.scale_stride_row, scaled.scale_stride_k,
      static_cast<u32>(scaled.row + (wanted < scaled.rows ? wanted : scaled.rows - 1)),
      fresh_arguments()->scales_shuffled != 0);
  // Whole blocks are read: the one in which the group begins, too.
  const i32 end = tile.k + tile.length;
  i32 k = tile.k / kMxBlock * kMxBlock;
  i32 left = (end + kMxBlock - 1) / kMxBlock * kMxBlock - k;
  const auto load = [&]() FLYDSL_INLINED {
    // Addresses are computed here, not carried round the loop: there are too many.
    k = static_cast<i32>(uniform_computed_here(static_cast<u32>(k)));
    a.load(k, left);
    b.load(k, left);
    scales.load(static_cast<u32>(k / kMxBlock), left / kMxBlock);
    if (k < tile.k || k + kSlab > end) {
      keep_elements(a, tile.k - k, end - k);
      keep_elements(b, tile.k - k, end - k);
    }
  };
  load();
  u32 stage = 0;
#pragma unroll 1
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

template <int format_a, int format_b>
FLYDSL_DEVICE void grouped_gemm_mx_general(const flydsl_aot_grouped_gemm_kernarg &) {
  FLYDSL_SHARED static char memory[scaled_gemm::kStages * scaled_gemm::kStageBytes]
      __attribute__((aligned(16)));
  const u32 thread = __builtin_amdgcn_workitem_id_x();
  const u32 wave = uniform(thread / kWaveLanes), lane = thread % kWaveLanes;
  for (Tiles<scaled_gemm::kRows, scaled_gemm::kRows> tiles(lane); tiles.more();) {
    const Tile tile = tiles.next();
    scaled_gemm::Sums sums = {};
    if (tile.length > 0)
      multiply_mx_general<format_a, format_b>(tile, (lds_ptr<char>)memory, thread, sums);
    store_general(tile, sums.block, wave, lane);
  }
}

}  // namespace flydsl::kernels::grouped
