// The kernel arguments where they are, in constant memory (codegen/describe/scaled_gemm.py): read where they are needed.
#pragma once

#include "common/arguments.hip.h"
#include "common/lanes.hip.h"
#include "flydsl_aot_generated/scaled_gemm_kernarg.h"

namespace flydsl::kernels::scaled_gemm {

using Arguments = ArgumentsOf<flydsl_aot_scaled_gemm_kernarg>;

// A work-group's tile: batches follow each other, in each groups of 8 rows of tiles; each of the 8 XCDs, which work-groups go
// to in turn, has a range of its own, so that neighbours meet in its cache.
struct Tile {
  u32 batch, row, column;

  // Read at once, before anything waits for one of them; divisions are long, and most problems need one.
  FLYDSL_DEVICE Tile(u32 number, Arguments args) {
    constexpr u32 kXcds = 8, kGroupRows = 8;
    const u32 tiles = uniform_computed_here(args->tiles),
              row_tiles = uniform_computed_here(args->row_tiles),
              column_tiles = uniform_computed_here(args->column_tiles);
    const u32 whole = tiles / kXcds * kXcds;
    if (number < whole) number = number % kXcds * (whole / kXcds) + number / kXcds;
    const u32 of_matrix = row_tiles * column_tiles;
    u32 tile = number;
    batch = 0;
    if (FLYDSL_UNLIKELY(tiles != of_matrix)) {
      batch = number / of_matrix;
      tile = number % of_matrix;
    }
    const u32 of_group = kGroupRows * column_tiles;
    const u32 group = tile / of_group, in_group = tile - group * of_group;
    const u32 first_row = group * kGroupRows, left = row_tiles - first_row;
    row = first_row + in_group % kGroupRows;
    column = in_group / kGroupRows;
    if (FLYDSL_UNLIKELY(left < kGroupRows)) {
      row = first_row + in_group % left;
      column = in_group / left;
    }
  }
};

}  // namespace flydsl::kernels::scaled_gemm
