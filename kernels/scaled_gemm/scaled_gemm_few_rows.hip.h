// The instances for few rows of A, whose time is that of reading B: 16 columns of D and up to 64 rows a work-group (few_rows_loop.hip.h).
// K contiguous in both operands, a multiple of 128. A work-group may have a part of K only (second_pass.hip.h).
#pragma once

#include "common/lds.hip.h"
#include "scaled_gemm/few_rows_loop.hip.h"
#include "scaled_gemm/output.hip.h"

namespace flydsl::kernels {

template <int format_a, int format_b, bool shuffled, int row_blocks>
FLYDSL_DEVICE void scaled_gemm_few_rows(const flydsl_aot_scaled_gemm_kernarg &kernarg) {
  using namespace scaled_gemm;
  using Loop = FewRowsLoop<format_a, format_b, shuffled, row_blocks>;
  constexpr u32 kWaves = Loop::kWaves, kRows = 16 * row_blocks, kColumns = 16;
  FLYDSL_SHARED static char memory[kWaves * row_blocks * 1024] __attribute__((aligned(16)));
  const lds_ptr<char> lds = (lds_ptr<char>)memory;
  const Arguments args = arguments_here(kernarg);
  const u32 number =
      uniform(__builtin_amdgcn_workgroup_id_y() * args->grid_x + __builtin_amdgcn_workgroup_id_x());
  if (number >= args->tiles) return;
  const u32 thread = __builtin_amdgcn_workitem_id_x(), wave = uniform(thread / kWaveLanes),
            lane = thread % kWaveLanes;
  const Tile tile(number, args);
  const u32 split = tile.batch % args->splits;
  const i64 batch = tile.batch / args->splits;
  const i32 row = static_cast<i32>(tile.row * kRows),
            column = static_cast<i32>(tile.column * kColumns);
  const i32 first = static_cast<i32>(split) * args->split_k, left = args->k - first;
  Loop loop({(global_ptr<const char>)args->a + batch * args->a_stride_b,
             (global_ptr<const char>)args->a_scale + batch * args->a_scale_stride_b,
             args->a_stride_m, args->a_scale_stride_m, row, static_cast<u32>(args->m - row)},
            {(global_ptr<const char>)args->b + batch * args->b_stride_b,
             (global_ptr<const char>)args->b_scale + batch * args->b_scale_stride_b,
             args->b_stride_n, args->b_scale_stride_n, column, static_cast<u32>(args->n - column)},
            first / 128, static_cast<i32>(wave), lane);
  loop.run((left < args->split_k ? left : args->split_k) / 128, static_cast<i32>(wave));

#pragma unroll
  for (u32 n = 0; n < row_blocks; ++n)
    write_b128(lds + (wave * row_blocks + n) * 1024 + lane * 16, bits_as<u32x4>(loop.sums[n]));
  barrier();
  // Of 8 columns of a row: thread -> row, half of the columns, block.
  const u32 block = thread / 32, half = thread / 16 % 2;
  if (block >= row_blocks) return;
  const lds_ptr<const char> from = lds + block * 1024 + thread % 16 * 16 + half * 512;
  float sums[8] = {};
#pragma unroll
  for (u32 w = 0; w < kWaves; ++w) {
    const f32x4 low = bits_as<f32x4>(read_b128(from + w * row_blocks * 1024)),
                high = bits_as<f32x4>(read_b128(from + w * row_blocks * 1024 + 256));
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      sums[i] += low[i];
      sums[4 + i] += high[i];
    }
  }
  const i32 at_row = row + static_cast<i32>(16 * block + thread % 16),
            at_column = column + static_cast<i32>(8 * half);
  if (at_row >= args->m || at_column >= args->n) return;
  store_sums8(args, split, static_cast<u32>(batch), at_row, at_column, args->n - at_column, sums);
}

}  // namespace flydsl::kernels
