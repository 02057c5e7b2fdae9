// Which part of the problem a work-group computes.
#pragma once

#include "gemm/arguments.hip.h"

namespace flydsl::kernels::gemm {

// A tile's place in the problem. Tiles of a matrix follow each other in groups of 8 rows of tiles, so that the 32 that run together on an XCD
// share 8 rows and 4 columns in its L2.
struct Place {
  u32 batch, row_tile, column_tile;

  FLYDSL_DEVICE Place(u32 tile, Arguments args) : batch(0) {
    constexpr u32 kGroupRows = 8;
    if (FLYDSL_UNLIKELY(args->batches != 1)) {  // divisions are long
      const u32 of_matrix = args->row_tiles * args->column_tiles;
      batch = tile / of_matrix;
      tile %= of_matrix;
    }
    const u32 of_group = kGroupRows * args->column_tiles;
    const u32 first_row = tile / of_group * kGroupRows;
    const u32 left = args->row_tiles - first_row;
    const u32 rows = left < kGroupRows ? left : kGroupRows;
    row_tile = first_row + tile % of_group % rows;
    column_tile = tile % of_group / rows;
  }
};

// Work-groups go to the 8 XCDs in turn: each gets a range of its own of what `number` counts: whole tiles, then those in parts, all first
// parts, then all second ones. Where no tile is whole, the parts of a matrix follow each other.
struct Tile {
  u32 batch, split, row_tile, column_tile;
  u32 in_parts;   // 0: the tile is whole
  u32 part_tile;  // number among those in parts, where some are whole

  FLYDSL_DEVICE Tile(u32 number, Arguments args)
      : split(0), in_parts(args->splits > 1), part_tile(0) {
    u32 first = 0, count = args->tiles;
    if (FLYDSL_UNLIKELY(in_parts != 0) && args->whole_tiles != 0) {
      in_parts = number >= args->whole_tiles;
      first = in_parts ? args->whole_tiles : 0;
      count = in_parts ? count - first : args->whole_tiles;
      number -= first;
    }
    constexpr u32 kXcds = 8;
    const u32 of_xcd = count / kXcds;
    if (number < of_xcd * kXcds) number = number % kXcds * of_xcd + number / kXcds;
    if (FLYDSL_UNLIKELY(in_parts != 0)) {
      if (first != 0) {
        split = number / args->part_tiles;
        part_tile = number % args->part_tiles;
        number = first + part_tile;
      } else {
        const u32 of_matrix = args->row_tiles * args->column_tiles;
        const u32 plane = number / of_matrix;
        split = plane % args->splits;
        number = plane / args->splits * of_matrix + number % of_matrix;
      }
    }
    const Place place(number, args);
    batch = place.batch;
    row_tile = place.row_tile;
    column_tile = place.column_tile;
  }
};

}  // namespace flydsl::kernels::gemm
