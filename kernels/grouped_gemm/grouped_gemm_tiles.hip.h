// The instances for operands of which one dimension is contiguous: tiles of 256 or 128 rows and columns of D
// (common/matmul/main_loop.hip.h). A work-group computes one after the other, without a break where they are of one kind: the copies of
// the next tile are under way while D is stored. NOTES.md says what limits them.
#pragma once

#include "common/matmul/main_loop.hip.h"
#include "grouped_gemm/store.hip.h"

namespace flydsl::kernels::grouped {

using matmul::Operand;
using matmul::Order;

// What the copies of a tile read. What is beyond the group, but not beyond the tensor, is computed and not stored: so most tiles are
// whole.
template <Order order, int most>
FLYDSL_DEVICE Operand operand(const void *base, i64 offset, i64 row_stride, i64 k_stride,
                              i32 rows) {
  return {(global_ptr<const char>)base + 2 * offset,
          2 * (order == Order::k ? row_stride : k_stride), rows < most ? rows : most};
}
template <Order order, int most>
FLYDSL_DEVICE Operand operand_a(const Tile &tile) {
  const Arguments args = fresh_arguments();
  const i64 offset =
      tile.group * args->a_stride_g + tile.m * args->a_stride_m + tile.k * args->a_stride_k;
  return operand<order, most>(args->a, offset, args->a_stride_m, args->a_stride_k,
                              args->m - tile.m);
}
template <Order order, int most>
FLYDSL_DEVICE Operand operand_b(const Tile &tile) {
  const Arguments args = fresh_arguments();
  const i64 offset =
      tile.group * args->b_stride_g + tile.n * args->b_stride_n + tile.k * args->b_stride_k;
  return operand<order, most>(args->b, offset, args->b_stride_n, args->b_stride_k,
                              args->n - tile.n);
}
template <int rows, int columns>
FLYDSL_DEVICE bool is_whole(const Tile &tile) {
  const Arguments args = fresh_arguments();
  return args->m - tile.m >= rows && args->n - tile.n >= columns;
}

template <class Element, Order a_order, Order b_order, int tile_rows, int tile_columns>
FLYDSL_DEVICE void grouped_gemm_tiles(const flydsl_aot_grouped_gemm_kernarg &) {
  using Loop = matmul::MainLoop<Element, Element, a_order, b_order, tile_rows, tile_columns>;
  using Rows = matmul::SumRows<tile_rows, tile_columns>;
  constexpr auto of_a = operand_a<a_order, tile_rows>;
  constexpr auto of_b = operand_b<b_order, tile_columns>;
  const u32 thread = __builtin_amdgcn_workitem_id_x(), wave = uniform(thread / kWaveLanes),
            lane = thread % kWaveLanes;
  Tiles<tile_rows, tile_columns> tiles(lane);
  if (!tiles.more()) return;
  FLYDSL_SHARED static char memory[Loop::kLdsBytes] __attribute__((aligned(512)));
  Loop loop((lds_ptr<char>)memory, wave, lane);
  Tile tile = tiles.next();
#pragma unroll 1
  for (;;) {
    tile.settle();
    // What follows from these is worked out anew, for scalar registers are few.
    loop.lines_a = uniform_computed_here(loop.lines_a);
    loop.lines_b = uniform_computed_here(loop.lines_b);
    loop.begin(of_a(tile), of_b(tile), tile.length);
    bool starts = true, follows, more;
#pragma unroll 1
    do {
      const i32 length = tile.length;
      const u32 here = computed_here(lane);
      const Destination to(tile, static_cast<i32>(Rows::lane_row(here)),
                           static_cast<i32>(Rows::lane_column(wave, here)));
      Tile next = tile;
      follows = false;
      more = tiles.more();
      if (more) {
        next = tiles.next();
        follows = is_whole<tile_rows, tile_columns>(tile) &&
                  is_whole<tile_rows, tile_columns>(next) && next.length == length &&
                  length % Loop::kPairK == 0 && length >= 2 * Loop::kPairK;
      }
      loop.follow(of_a(tile), of_b(tile), of_a(next), of_b(next), follows, length);
      if (FLYDSL_LIKELY(length >= Loop::kPairK)) {
        if (starts) loop.start();
        loop.add(length);
      }
      starts = false;
      if (FLYDSL_UNLIKELY(!follows)) loop.add_rest(of_a(tile), of_b(tile), length);
      store_sums<tile_rows, tile_columns>(to, loop.free_a(), loop.free_b(), wave,
                                          computed_here(lane));
      tile = next;
      if (follows) loop.resume();
    } while (follows);
    if (!more) return;
    // Others may still read sums where the copies go.
    barrier();
  }
}

}  // namespace flydsl::kernels::grouped
