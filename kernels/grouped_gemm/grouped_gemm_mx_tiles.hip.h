// The instances for MXFP8 operands with K contiguous and in whole slabs: tiles of 256 x 256 of D, the main loop of scaled_gemm
// (scaled_gemm/mx_loop.hip.h). A work-group computes one tile after the other.
#pragma once

#include "common/matmul/store_tile.hip.h"
#include "grouped_gemm/store.hip.h"
#include "scaled_gemm/mx_loop.hip.h"

namespace flydsl::kernels::grouped {

constexpr i32 kMxTile = 256;

// What the copies of a tile read, and its scales. What is beyond the group, but not beyond the tensor, is computed and not stored.
struct MxSide {
  global_ptr<const char> first, first_scale;
  i64 row_bytes;
  u32 scale_row_bytes;
  i32 rows;

  FLYDSL_DEVICE matmul::Operand operand() const {
    return {first, row_bytes, rows < kMxTile ? rows : kMxTile};
  }
};
FLYDSL_DEVICE MxSide mx_side_a(const Tile &tile) {
  const Arguments args = fresh_arguments();
  const i64 g = tile.group, m = tile.m;
  return {(global_ptr<const char>)args->a + g * args->a_stride_g + m * args->a_stride_m,
          (global_ptr<const char>)args->a_scale + g * args->a_scale_stride_g +
              m * args->a_scale_stride_m,
          args->a_stride_m, static_cast<u32>(args->a_scale_stride_m), args->m - tile.m};
}
FLYDSL_DEVICE MxSide mx_side_b(const Tile &tile) {
  const Arguments args = fresh_arguments();
  const i64 g = tile.group, n = tile.n;
  return {(global_ptr<const char>)args->b + g * args->b_stride_g + n * args->b_stride_n,
          (global_ptr<const char>)args->b_scale + g * args->b_scale_stride_g +
              n * args->b_scale_stride_n,
          args->b_stride_n, static_cast<u32>(args->b_scale_stride_n), args->n - tile.n};
}

// After the loop has run: the lane's number is the loop's, which nothing takes before the last reads have landed.
template <bool shuffled, class Loop>
FLYDSL_DEVICE void store_mx_tile(const Tile &tile, const Loop &loop) {
  using Rows = matmul::SumRows<kMxTile, kMxTile>;
  const DestinationOf<shuffled> to(tile, static_cast<i32>(Rows::lane_row(loop.lane)),
                                   static_cast<i32>(Rows::lane_column(loop.wave, loop.lane)));
  const auto all = [&](auto take) FLYDSL_INLINED {
    matmul::store_tile<kMxTile, kMxTile>(loop.free_a, loop.free_b, loop.wave, loop.lane, take);
  };
  const auto store = [&](auto store) FLYDSL_INLINED {
    all([&](const auto &rows) FLYDSL_INLINED { rows.each_at_once(store); });
  };
  if (FLYDSL_UNLIKELY(!to.is_plain)) {
    all([&](const auto &rows) FLYDSL_INLINED {
      rows.one_by_one([&](u32 row, float(&sums)[8]) FLYDSL_INLINED { to.store_any(row, sums); });
    });
  } else if (to.dtype == Real::bf16) {
    store([&](u32 row, const float(&sums)[8])
              FLYDSL_INLINED { to.template store16<bf16>(row, sums); });
  } else if (to.dtype == Real::fp16) {
    store([&](u32 row, const float(&sums)[8])
              FLYDSL_INLINED { to.template store16<fp16>(row, sums); });
  } else {
    store([&](u32 row, const float(&sums)[8]) FLYDSL_INLINED { to.store32(row, sums); });
  }
}

template <int format_a, int format_b, bool shuffled>
FLYDSL_DEVICE void grouped_gemm_mx_tiles(const flydsl_aot_grouped_gemm_kernarg &) {
  using Loop = scaled_gemm::MxLoop<format_a, format_b, shuffled, kMxTile>;
  FLYDSL_SHARED static char memory[Loop::kLdsBytes] __attribute__((aligned(512)));
  const u32 thread = __builtin_amdgcn_workitem_id_x();
  Tiles<kMxTile, kMxTile, shuffled ? kShuffledRows : 1> tiles(thread % kWaveLanes);
  if (!tiles.more()) return;
#pragma unroll 1
  for (;;) {
    const Tile tile = tiles.next();
    // Made of the lane's number anew for each tile: nothing has to be kept over it.
    const u32 here = computed_here(thread), wave = uniform(here / kWaveLanes),
              lane = here % kWaveLanes;
    const i32 k = fresh_arguments()->k, loads = (k + 255) / 256;
    Loop loop((lds_ptr<char>)memory, wave, lane);
    const MxSide a = mx_side_a(tile), b = mx_side_b(tile);
    loop.scales_a.begin(a.first_scale, a.scale_row_bytes, wave / 2 * 128, static_cast<u32>(a.rows),
                        loads, lane);
    loop.scales_b.begin(b.first_scale, b.scale_row_bytes, wave % 2 * 128, static_cast<u32>(b.rows),
                        loads, lane);
    loop.slabs = k / Loop::kSlabK;
    loop.begin(a.operand(), b.operand());
    loop.run();
    store_mx_tile<shuffled>(tile, loop);
    if (!tiles.more()) return;
    barrier();
  }
}

}  // namespace flydsl::kernels::grouped
