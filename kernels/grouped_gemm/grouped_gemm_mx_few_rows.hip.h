// The same as grouped_gemm_few_rows.hip.h for MXFP8 operands: scaled_gemm's loop, K a multiple of 128.
#pragma once

#include "grouped_gemm/few_rows_sums.hip.h"
#include "scaled_gemm/few_rows_loop.hip.h"

namespace flydsl::kernels::grouped {

template <int format_a, int format_b, bool shuffled, int row_blocks>
FLYDSL_DEVICE void grouped_gemm_mx_few_rows(const flydsl_aot_grouped_gemm_kernarg &) {
  using Loop = scaled_gemm::FewRowsLoop<format_a, format_b, shuffled, row_blocks>;
  using Sums = FewRowsSums<row_blocks, 1, shuffled>;
  FLYDSL_SHARED static char memory[2 * Sums::kLdsBytes] __attribute__((aligned(16)));
  const u32 thread = __builtin_amdgcn_workitem_id_x(), wave = uniform(thread / kWaveLanes),
            lane = thread % kWaveLanes;
  // Rows of shuffled scales that lie together.
  constexpr u32 kTogether = row_blocks == 1 ? 16 : kShuffledRows;
  u32 stage = 0;
  for (Tiles<16 * row_blocks, 16, shuffled ? kTogether : 1> tiles(lane); tiles.more();) {
    const Tile tile = tiles.next();
    const Arguments args = fresh_arguments();
    const i64 g = tile.group;
    Loop loop({(global_ptr<const char>)args->a + g * args->a_stride_g,
               (global_ptr<const char>)args->a_scale + g * args->a_scale_stride_g, args->a_stride_m,
               args->a_scale_stride_m, tile.m, static_cast<u32>(tile.rows)},
              {(global_ptr<const char>)args->b + g * args->b_stride_g,
               (global_ptr<const char>)args->b_scale + g * args->b_scale_stride_g, args->b_stride_n,
               args->b_scale_stride_n, tile.n, static_cast<u32>(tile.columns)},
              0, static_cast<i32>(wave), lane);
    loop.run(tile.length / 128, static_cast<i32>(wave));
    Sums::store(tile, (lds_ptr<char>)memory + stage, thread,
                [&](u32 r, u32) { return loop.sums[r]; });
    stage ^= Sums::kLdsBytes;
  }
}

}  // namespace flydsl::kernels::grouped
