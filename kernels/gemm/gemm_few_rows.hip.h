// The instances for few rows of A, whose time is that of reading B: K contiguous in both operands, 16 to 64 rows and 16 or 32 columns of D
// a work-group. Four waves share K (common/matmul/few_rows.hip.h), and meet only to add their sums, in their order.
#pragma once

#include "common/lds.hip.h"
#include "common/matmul/few_rows.hip.h"
#include "gemm/destination.hip.h"

namespace flydsl::kernels {

template <class Element, int row_blocks, int column_blocks, int steps>
FLYDSL_DEVICE void gemm_few_rows(const flydsl_aot_gemm_kernarg &) {
  using Wave = matmul::FewRows<Element, row_blocks, column_blocks, steps>;
  const gemm::Arguments args = gemm::fresh_arguments();
  const u32 number =
      __builtin_amdgcn_workgroup_id_y() * args->grid_x + __builtin_amdgcn_workgroup_id_x();
  if (number >= args->tiles) return;
  FLYDSL_SHARED static char memory[Wave::kLdsBytes] __attribute__((aligned(16)));
  const lds_ptr<char> lds = (lds_ptr<char>)memory;
  const u32 thread = __builtin_amdgcn_workitem_id_x(), wave = uniform(thread / kWaveLanes),
            lane = thread % kWaveLanes;
  const gemm::Tile tile(number, args);
  constexpr i32 kRows = 16 * row_blocks, kColumns = 16 * column_blocks;
  const i32 row = static_cast<i32>(tile.row_tile) * kRows,
            column = static_cast<i32>(tile.column_tile) * kColumns;
  const i64 k = i64{tile.split} * args->split_k;
  const i32 rows = args->m - row, columns = args->n - column, left = static_cast<i32>(args->k - k);
  Wave of_wave((global_ptr<const char>)args->a +
                   2 * (tile.batch * args->a_stride_b + row * args->a_stride_m + k),
               2 * args->a_stride_m, rows,
               (global_ptr<const char>)args->b +
                   2 * (tile.batch * args->b_stride_b + column * args->b_stride_n + k),
               2 * args->b_stride_n, columns, wave, lane);
  of_wave.run(left < args->split_k ? left : args->split_k, wave, lane);

  // A lane has row lane % 16 and 4 columns 4 (lane / 16) .. of each block.
#pragma unroll
  for (u32 r = 0; r < row_blocks; ++r)
#pragma unroll
    for (u32 c = 0; c < column_blocks; ++c)
      write_b128(lds + ((wave * row_blocks + r) * column_blocks + c) * 1024 + lane * 16,
                 bits_as<u32x4>(of_wave.sums[r][c]));
  barrier();
  // Of 8 columns of a row: thread -> row, half of the block, block.
  const u32 block = thread / 32, r = block / column_blocks, c = block % column_blocks;
  if (block >= Wave::kBlocks) return;
  const lds_ptr<const char> from = lds + block * 1024 + thread % 16 * 16 + thread / 16 % 2 * 512;
  float sums[8] = {};
#pragma unroll
  for (u32 w = 0; w < Wave::kWaves; ++w) {
    const f32x4 low = bits_as<f32x4>(read_b128(from + w * Wave::kBlocks * 1024)),
                high = bits_as<f32x4>(read_b128(from + w * Wave::kBlocks * 1024 + 256));
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      sums[i] += low[i];
      sums[4 + i] += high[i];
    }
  }
  const i32 at = row + static_cast<i32>(16 * r + thread % 16),
            columns_at = column + static_cast<i32>(16 * c + thread / 16 % 2 * 8);
  if (at >= args->m || columns_at >= args->n) return;
  const gemm::Destination to(tile, at, columns_at, columns >= kColumns);
  if (FLYDSL_LIKELY(to.is_plain))
    to.plain([&](auto store) FLYDSL_INLINED { store(0, sums); });
  else
    gemm::store_sums(tile.split, tile.batch, at, columns_at, sums);
}

}  // namespace flydsl::kernels
