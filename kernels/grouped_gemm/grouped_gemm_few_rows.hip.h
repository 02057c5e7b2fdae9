// The instances for groups of few rows, whose time is that of reading B: K contiguous in both operands, 16 to 64 rows and 16 columns
// of D at a time (common/matmul/few_rows.hip.h).
#pragma once

#include "common/matmul/few_rows.hip.h"
#include "grouped_gemm/few_rows_sums.hip.h"

namespace flydsl::kernels::grouped {

template <class Element, int row_blocks>
FLYDSL_DEVICE void grouped_gemm_few_rows(const flydsl_aot_grouped_gemm_kernarg &) {
  using Wave = matmul::FewRows<Element, row_blocks, 1>;
  using Sums = FewRowsSums<row_blocks, 1, false>;
  FLYDSL_SHARED static char memory[2 * Sums::kLdsBytes] __attribute__((aligned(16)));
  const u32 thread = __builtin_amdgcn_workitem_id_x(), wave = uniform(thread / kWaveLanes),
            lane = thread % kWaveLanes;
  u32 stage = 0;
  for (Tiles<16 * row_blocks, 16> tiles(lane); tiles.more();) {
    const Tile tile = tiles.next();
    const Arguments args = fresh_arguments();
    Wave of_wave((global_ptr<const char>)args->a +
                     2 * (tile.group * args->a_stride_g + tile.m * args->a_stride_m),
                 2 * args->a_stride_m, tile.rows,
                 (global_ptr<const char>)args->b +
                     2 * (tile.group * args->b_stride_g + tile.n * args->b_stride_n),
                 2 * args->b_stride_n, tile.columns, wave, lane);
    of_wave.run(tile.length, wave, lane);
    // Two stages: who writes one again has passed a barrier that all pass once they have read it.
    Sums::store(tile, (lds_ptr<char>)memory + stage, thread,
                [&](u32 r, u32 c) { return of_wave.sums[r][c]; });
    stage ^= Sums::kLdsBytes;
  }
}

}  // namespace flydsl::kernels::grouped
