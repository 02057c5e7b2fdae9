// The instances for groups that end in too many empty rows of large tiles, K contiguous in A: tiles of 128 x 128 of D, two work-groups a compute
// unit (common/matmul/ring_loop.hip.h).
#pragma once

#include "common/matmul/ring_loop.hip.h"
#include "grouped_gemm/grouped_gemm_tiles.hip.h"

namespace flydsl::kernels::grouped {

template <class Element, Order a_order, Order b_order, int tile_rows, int tile_columns>
FLYDSL_DEVICE void grouped_gemm_small_tiles(const flydsl_aot_grouped_gemm_kernarg &) {
  constexpr int kStages = 2;
  using Loop = matmul::RingLoop<matmul::Plain16<Element>, a_order, b_order, tile_rows, tile_columns,
                                kStages>;
  using Rows = matmul::SumRows<tile_rows, tile_columns>;
  constexpr auto of_a = operand_a<a_order, tile_rows>;
  constexpr auto of_b = operand_b<b_order, tile_columns>;
  FLYDSL_SHARED static char memory[Loop::kLdsBytes] __attribute__((aligned(512)));
  const u32 thread = __builtin_amdgcn_workitem_id_x();
  Tiles<tile_rows, tile_columns> tiles(thread % kWaveLanes);
  if (!tiles.more()) return;
#pragma unroll 1
  for (;;) {
    const Tile tile = tiles.next();
    // Made of the lane's number anew for each tile: nothing has to be kept over it.
    const u32 here = computed_here(thread), wave = uniform(here / kWaveLanes),
              lane = here % kWaveLanes;
    Loop loop((lds_ptr<char>)memory, wave, lane);
    loop.begin(of_a(tile), of_b(tile), tile.length / Loop::kSlabK);
    const Destination to(tile, static_cast<i32>(Rows::lane_row(lane)),
                         static_cast<i32>(Rows::lane_column(wave, lane)));
    loop.run();
    loop.add_rest(of_a(tile), of_b(tile), tile.length);
    store_sums<tile_rows, tile_columns>(to, loop.free_a(), loop.free_b(), wave, lane);
    if (!tiles.more()) return;
    barrier();
  }
}

}  // namespace flydsl::kernels::grouped
