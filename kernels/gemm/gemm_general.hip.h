// The instance that computes all that the header allows: 128 x 128 of D a work-group, four waves of 64 x 64, operands of any strides.
#pragma once

#include "gemm/epilogue.hip.h"
#include "gemm/general_loop.hip.h"
#include "gemm/sums_to_rows.hip.h"

namespace flydsl::kernels {
namespace gemm {

FLYDSL_DEVICE void multiply_8bit(lds_ptr<const char> a, lds_ptr<const char> b, u32 row_a, u32 row_b,
                                 u32 lane, u32 formats, Sums &sums) {
#if !FLYDSL_GFX950
  static_cast<void>(formats);
  multiply_slab<bf16, true>(a, b, row_a, row_b, lane, sums);
#else
  if (formats == 0) {
    multiply_bytes<0, 0>(a, b, row_a, row_b, lane, sums);
  } else if (formats == 1) {
    multiply_bytes<1, 0>(a, b, row_a, row_b, lane, sums);
  } else if (formats == 2) {
    multiply_bytes<0, 1>(a, b, row_a, row_b, lane, sums);
  } else {
    multiply_bytes<1, 1>(a, b, row_a, row_b, lane, sums);
  }
#endif
}

template <class Operand>
FLYDSL_DEVICE void multiply_general(lds_ptr<const char> a, lds_ptr<const char> b, u32 row_a,
                                    u32 row_b, u32 lane, u32 formats, Sums &sums) {
  if constexpr (__is_same(Operand, u8))
    multiply_8bit(a, b, row_a, row_b, lane, formats, sums);
  else
    multiply_slab<Operand>(a, b, row_a, row_b, lane, sums);
}

constexpr u32 kWaveBytes = kSlabBytes;  // a wave's part of the stages

// Sums of `blocks` of a wave's blocks of 32 rows, from `first` on, by way of its part of LDS, to rows of 8 neighbours.
template <u32 blocks>
FLYDSL_DEVICE void store_blocks(lds_ptr<char> mine, u32 first, u32 split, u32 batch, i32 first_row,
                                i32 first_column, u32 lane, i32 m, i32 n, const Sums &sums) {
  static_assert(blocks * 32 * kSumRowBytes == kWaveBytes);
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
        write_b128(mine + sum_place(row, chunk), bits_as<u32x4>(four));
      }
  barrier();
  store_rows<32 * blocks>(mine, split, batch, first_row + static_cast<i32>(32 * first),
                          first_column, lane, m, n);
}
FLYDSL_DEVICE void store_general(lds_ptr<char> mine, u32 split, u32 batch, i32 first_row,
                                 i32 first_column, u32 lane, i32 m, i32 n, const Sums &sums) {
  constexpr u32 kBlocks = kGfx950 ? 2 : 1;
#pragma unroll
  for (u32 first = 0; first < 2; first += kBlocks) {
    if (first != 0) barrier();
    store_blocks<kBlocks>(mine, first, split, batch, first_row, first_column, lane, m, n, sums);
  }
}

}  // namespace gemm

template <class Operand>
FLYDSL_DEVICE void gemm_general(const flydsl_aot_gemm_kernarg &) {
  using namespace gemm;
  using Stored = typename Storage<Operand>::type;
  FLYDSL_SHARED static char memory[kLoopBytes];
  const lds_ptr<char> lds = (lds_ptr<char>)memory;

  const Arguments args = fresh_arguments();
  const u32 number = group_number(args);
  if (number >= args->tiles) return;
  const Tile tile(number, args);
  const u32 thread = __builtin_amdgcn_workitem_id_x();
  const u32 wave = uniform(thread / kWaveLanes), lane = thread % kWaveLanes;
  const i32 m = args->m, n = args->n;
  const u32 row_a = wave / 2 * 64, row_b = wave % 2 * 64;

  Sums sums = {};
  multiply_slabs<Stored>(
      lds, tile, thread, args,
      [&](lds_ptr<const char> a, lds_ptr<const char> b, u32 formats)
          FLYDSL_INLINED { multiply_general<Operand>(a, b, row_a, row_b, lane, formats, sums); });
  store_general(lds + wave * kWaveBytes, tile.split, tile.batch,
                first_row_of(tile) + static_cast<i32>(row_a),
                first_column_of(tile) + static_cast<i32>(row_b), lane, m, n, sums);
}

}  // namespace flydsl::kernels
