// Tiles of D and who computes them. All groups' tiles stand in one row; each XCD has a contiguous part of it, its work-groups take turns. So
// the tiles that an XCD works on at a time are neighbours, whose rows and columns its L2 holds.
#pragma once

#include "grouped_gemm/groups.hip.h"

namespace flydsl::kernels::grouped {

// A tile: where it lies, and what makes it. Places are those in a, b and d as arguments describe them.
struct Tile {
  u32 group;
  i32 m, n;           // of its first element in d
  i32 rows, columns;  // that are its group's, from 1 up
  i32 k, length;      // first of the group, how many
};

template <u32 tile_rows, u32 tile_columns>
class Tiles {
 public:
  FLYDSL_DEVICE explicit Tiles(u32 lane)
      : axis_(static_cast<Axis>(fresh_arguments()->axis)),
        groups_(axis_ == Axis::columns ? tile_columns : tile_rows, across(axis_), lane) {
    const u32 workers = fresh_arguments()->workers, worker = __builtin_amdgcn_workgroup_id_x();
    const u32 count = uniform(groups_.count());
    if (workers % kXcds == 0) {  // work-groups go to the XCDs by turns
      const u32 xcd = worker % kXcds, each = count / kXcds, more = count % kXcds;
      const u32 first = xcd * each + (xcd < more ? xcd : more);
      tile_ = first + worker / kXcds;
      end_ = first + each + (xcd < more);
      step_ = workers / kXcds;
    } else {
      tile_ = worker;
      end_ = count;
      step_ = workers;
    }
    if (more()) groups_.begin();
  }

  FLYDSL_DEVICE bool more() const { return tile_ < end_; }
  FLYDSL_DEVICE Tile next() {
    const Arguments args = fresh_arguments();
    const Group group = groups_.find(tile_);
    tile_ += step_;
    const bool by_rows = axis_ == Axis::rows, by_columns = axis_ == Axis::columns;
    Tile tile;
    tile.group = group.number;
    tile.k = axis_ == Axis::k ? group.begin : 0;
    tile.length = axis_ == Axis::k ? group.end - group.begin : args->k;
    const i32 first_m = by_rows ? group.begin : 0, first_n = by_columns ? group.begin : 0;
    const i32 rows = by_rows ? group.end - group.begin : args->m;
    const i32 columns = by_columns ? group.end - group.begin : args->n;
    // Bands of kBand rows of tiles, one tile of each by turns.
    const u32 down = tiles_of(rows, tile_rows), along = tiles_of(columns, tile_columns);
    const u32 band = group.tile / (kBand * along), in_band = group.tile - band * kBand * along;
    const u32 high = down - band * kBand < kBand ? down - band * kBand : kBand;
    const i32 row = static_cast<i32>((band * kBand + in_band % high) * tile_rows);
    const i32 column = static_cast<i32>(in_band / high * tile_columns);
    tile.m = first_m + row;
    tile.n = first_n + column;
    tile.rows = at_most(rows - row, tile_rows);
    tile.columns = at_most(columns - column, tile_columns);
    return tile;
  }

 private:
  static constexpr u32 kXcds = 8, kBand = 4;

  static FLYDSL_DEVICE u32 tiles_of(i32 size, u32 of_tile) {
    return (static_cast<u32>(size) + of_tile - 1) / of_tile;
  }
  static FLYDSL_DEVICE i32 at_most(i32 value, u32 most) {
    return value < static_cast<i32>(most) ? value : static_cast<i32>(most);
  }
  static FLYDSL_DEVICE u32 across(Axis axis) {
    const Arguments args = fresh_arguments();
    const u32 down = tiles_of(args->m, tile_rows), along = tiles_of(args->n, tile_columns);
    return axis == Axis::rows ? along : axis == Axis::columns ? down : down * along;
  }

  Axis axis_;
  Groups groups_;
  u32 tile_, end_, step_;
};

}  // namespace flydsl::kernels::grouped
