// The instances for MXFP8 operands with K contiguous and in whole slabs: tiles of 256 x 256 of D on the main loop of scaled_gemm
// (scaled_gemm/mx_loop.hip.h), tiles of 128 x 128 on common/matmul/ring_loop.hip.h. A work-group computes one tile after
// the other.
#pragma once

#include "common/matmul/ring_loop.hip.h"
#include "common/matmul/store_tile.hip.h"
#include "grouped_gemm/store.hip.h"
#include "scaled_gemm/mx_loop.hip.h"

namespace flydsl::kernels::grouped {

// What the copies of a tile read, and its scales. What is beyond the group, but not beyond the tensor, is computed and not stored.
struct MxSide {
  global_ptr<const char> first, first_scale;
  i64 row_bytes;
  u32 scale_row_bytes;
  i32 rows;

  template <i32 most>
  FLYDSL_DEVICE matmul::Operand operand() const {
    return {first, row_bytes, rows < most ? rows : most};
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

// compute(tile, wave, lane) for one tile after the other.
template <bool shuffled, int rows, int columns>
FLYDSL_DEVICE void each_mx_tile(auto compute) {
  const u32 thread = __builtin_amdgcn_workitem_id_x();
  Tiles<rows, columns, shuffled ? kShuffledRows : 1> tiles(thread % kWaveLanes);
  if (!tiles.more()) return;
#pragma unroll 1
  for (;;) {
    const Tile tile = tiles.next();
    // Made of the lane's number anew for each tile: nothing has to be kept over it.
    const u32 here = computed_here(thread);
    compute(tile, uniform(here / kWaveLanes), here % kWaveLanes);
    if (!tiles.more()) return;
    barrier();
  }
}

// After the loop has run: the lane's number is the loop's, which nothing takes before the last reads have landed.
template <bool shuffled, int rows, int columns, class Loop>
FLYDSL_DEVICE void store_mx_tile(const Tile &tile, const Loop &loop, u32 free_a, u32 free_b) {
  using Rows = matmul::SumRows<rows, columns>;
  const DestinationOf<shuffled> to(tile, static_cast<i32>(Rows::lane_row(loop.lane)),
                                   static_cast<i32>(Rows::lane_column(loop.wave, loop.lane)));
  store_sums<rows, columns>(to, free_a, free_b, loop.wave, loop.lane);
}

template <int rows, int columns>
FLYDSL_DEVICE void begin_scales(auto &of_a, auto &of_b, const MxSide &a, const MxSide &b, i32 k,
                                u32 wave, u32 lane) {
  const i32 loads = (k + 255) / 256;
  of_a.begin(a.first_scale, a.scale_row_bytes, wave / 2 * (rows / 2), static_cast<u32>(a.rows),
             loads, lane);
  of_b.begin(b.first_scale, b.scale_row_bytes, wave % 2 * (columns / 2), static_cast<u32>(b.rows),
             loads, lane);
}

template <int format_a, int format_b, bool shuffled>
FLYDSL_DEVICE void grouped_gemm_mx_tiles(const flydsl_aot_grouped_gemm_kernarg &) {
  constexpr int kTile = 256;
  using Loop = scaled_gemm::MxLoop<format_a, format_b, shuffled, kTile>;
  FLYDSL_SHARED static char memory[Loop::kLdsBytes] __attribute__((aligned(512)));
  each_mx_tile<shuffled, kTile, kTile>([&](const Tile &tile, u32 wave, u32 lane) FLYDSL_INLINED {
    const i32 k = fresh_arguments()->k;
    Loop loop((lds_ptr<char>)memory, wave, lane);
    const MxSide a = mx_side_a(tile), b = mx_side_b(tile);
    begin_scales<kTile, kTile>(loop.scales_a, loop.scales_b, a, b, k, wave, lane);
    loop.slabs = k / Loop::kSlabK;
    loop.begin(a.operand<kTile>(), b.operand<kTile>());
    loop.run();
    store_mx_tile<shuffled, kTile, kTile>(tile, loop, loop.free_a, loop.free_b);
  });
}

// For groups that end in too many empty rows of those: two work-groups a compute unit.
template <int format_a, int format_b, bool shuffled>
FLYDSL_DEVICE void grouped_gemm_mx_small_tiles(const flydsl_aot_grouped_gemm_kernarg &) {
  constexpr int kTile = 128, kStages = 2;
  using Products = scaled_gemm::MxProducts<format_a, format_b, shuffled, kTile / 64, kTile / 64>;
  using Loop =
      matmul::RingLoop<Products, matmul::Order::k, matmul::Order::k, kTile, kTile, kStages>;
  FLYDSL_SHARED static char memory[Loop::kLdsBytes] __attribute__((aligned(512)));
  each_mx_tile<shuffled, kTile, kTile>([&](const Tile &tile, u32 wave, u32 lane) FLYDSL_INLINED {
    const i32 k = fresh_arguments()->k;
    Loop loop((lds_ptr<char>)memory, wave, lane);
    const MxSide a = mx_side_a(tile), b = mx_side_b(tile);
    begin_scales<kTile, kTile>(loop.products.scales_a, loop.products.scales_b, a, b, k, wave, lane);
    loop.begin(a.operand<kTile>(), b.operand<kTile>(), k / Loop::kSlabK);
    loop.run();
    store_mx_tile<shuffled, kTile, kTile>(tile, loop, loop.free_a(), loop.free_b());
  });
}

}  // namespace flydsl::kernels::grouped
