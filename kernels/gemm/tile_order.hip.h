// Which part of the problem a work-group computes.
#pragma once

#include "gemm/arguments.hip.h"

namespace flydsl::kernels::gemm {

// Work-groups go to the 8 XCDs in turn: each gets a range of its own of all tiles, which follow each other in groups of 8 rows of tiles, so that the
// 32 that run together on one share 8 rows and 4 columns in its L2. Then come parts of K, then batches.
struct Tile {
  u32 batch, split, row_tile, column_tile;

  FLYDSL_DEVICE Tile(u32 number, Arguments args) {
    constexpr u32 kXcds = 8, kGroupRows = 8;
    const u32 whole = args->tiles / kXcds * kXcds;
    if (number < whole) number = number % kXcds * (whole / kXcds) + number / kXcds;
    const u32 of_matrix = args->row_tiles * args->column_tiles;
    u32 tile = number;
    split = batch = 0;
    if (args->splits * args->batches != 1) {  // divisions are long
      const u32 plane = number / of_matrix;
      tile = number % of_matrix;
      split = plane % args->splits;
      batch = plane / args->splits;
    }
    const u32 of_group = kGroupRows * args->column_tiles;
    const u32 first_row = tile / of_group * kGroupRows;
    const u32 left = args->row_tiles - first_row;
    const u32 rows = left < kGroupRows ? left : kGroupRows;
    row_tile = first_row + tile % of_group % rows;
    column_tile = tile % of_group / rows;
  }
};

}  // namespace flydsl::kernels::gemm
