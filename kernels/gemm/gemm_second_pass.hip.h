// Adds the parts of K in their order and makes D of the sums: a lane has 8 neighbours in a row.
#pragma once

#include "gemm/epilogue.hip.h"
#include "gemm/tile_order.hip.h"

namespace flydsl::kernels {
namespace gemm {

// 8 neighbours of D and the first part of their sums.
struct SumsOfBlock {
  u32 batch;
  i32 row, column;
  global_ptr<const char> first;
  i64 part_bytes;  // from one part to the next

  FLYDSL_DEVICE SumsOfBlock(u32 block, Arguments args) {
    if (args->whole_tiles != 0) {
      const u32 of_row = args->tile_columns / 8, of_tile = args->tile_rows * of_row;
      const u32 tile = block / of_tile, in_tile = block % of_tile;
      const Place place(args->whole_tiles + tile, args);
      const u32 row_in_tile = in_tile / of_row, column_in_tile = in_tile % of_row * 8;
      batch = place.batch;
      row = static_cast<i32>(place.row_tile * args->tile_rows + row_in_tile);
      column = static_cast<i32>(place.column_tile * args->tile_columns + column_in_tile);
      first = partial_of_tile(args, 0, tile, row_in_tile, column_in_tile);
      part_bytes = i64{4} * args->part_tiles * args->tile_rows * args->tile_columns;
      return;
    }
    const u32 of_row = (static_cast<u32>(args->n) + 7) / 8;
    const u32 row_of_all = block / of_row;
    column = static_cast<i32>(block % of_row * 8);
    batch = row_of_all / static_cast<u32>(args->m);
    row = static_cast<i32>(row_of_all % static_cast<u32>(args->m));
    first = partial_of(args, 0, batch, row, column);
    part_bytes = i64{4} * args->batches * args->m * args->n;
  }
};

}  // namespace gemm

FLYDSL_DEVICE void add_parts_of_k(const flydsl_aot_gemm_kernarg &) {
  const gemm::Arguments args = gemm::fresh_arguments();
  constexpr u32 kThreads = 256;
  const u32 block =
      (__builtin_amdgcn_workgroup_id_y() * args->grid_x + __builtin_amdgcn_workgroup_id_x()) *
          kThreads +
      __builtin_amdgcn_workitem_id_x();
  if (block >= args->tiles) return;
  const gemm::SumsOfBlock of(block, args);
  const i32 count = args->n - of.column;
  if (count <= 0 || of.row >= args->m) return;  // of a tile that D has not all of
  float sums[8], part[8];
  gemm::load_row8(of.first, gemm::Dtype::fp32, 1, count, sums);
#pragma unroll 4
  for (u32 split = 1; split < args->splits; ++split) {
    gemm::load_row8(of.first + split * of.part_bytes, gemm::Dtype::fp32, 1, count, part);
#pragma unroll
    for (int i = 0; i < 8; ++i) sums[i] += part[i];
  }
  gemm::finish_row8(of.batch, of.row, of.column, count, sums);
}

}  // namespace flydsl::kernels
