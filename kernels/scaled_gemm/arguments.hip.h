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

  FLYDSL_DEVICE Tile(u32 number, Arguments args) {
    constexpr u32 kXcds = 8, kGroupRows = 8;
    const u32 whole = args->tiles / kXcds * kXcds;
    if (number < whole) number = number % kXcds * (whole / kXcds) + number / kXcds;
    const u32 of_matrix = args->row_tiles * args->column_tiles;
    const u32 tile = number % of_matrix, of_group = kGroupRows * args->column_tiles;
    batch = number / of_matrix;
    const u32 first_row = tile / of_group * kGroupRows;
    const u32 left = args->row_tiles - first_row;
    const u32 rows = left < kGroupRows ? left : kGroupRows;
    row = first_row + tile % of_group % rows;
    column = tile % of_group / rows;
  }
};

}  // namespace flydsl::kernels::scaled_gemm
