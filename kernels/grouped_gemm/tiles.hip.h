// Tiles of D and who computes them. All groups' tiles stand in one row; each XCD has a contiguous part of it, its work-groups take turns. So
// the tiles that an XCD works on at a time are neighbours, whose rows and columns its L2 holds.
#pragma once

#include "grouped_gemm/groups.hip.h"

namespace flydsl::kernels::grouped {

// A tile: where it lies, and what makes it. Places are those in a, b and d as arguments describe them.
struct Tile {
  u32 group;
  i32 m, n;           // of its first element in d
  i32 rows, columns;  // that are its group's, from 1 up, or lie before it
  i32 before;         // rows that lie before its group
  i32 k, length;      // first of the group, how many

  // Into scalar registers, where clang may not have kept them across a branch.
  FLYDSL_DEVICE void settle() {
    group = uniform(group);
    settle(m);
    settle(n);
    settle(rows);
    settle(columns);
    settle(k);
    settle(length);
  }
  static FLYDSL_DEVICE void settle(i32 &value) {
    value = static_cast<i32>(uniform(static_cast<u32>(value)));
  }
};

// Shuffled scales lie in blocks of so many rows, of which a tile takes whole ones.
constexpr u32 kShuffledRows = 32;

// How groups are cut into tiles. Those that share rows begin at a multiple of `granule` rows: the first tile of such a group has
// rows of the one before it, too.
template <u32 tile_rows, u32 tile_columns, u32 granule>
struct Cut {
  static FLYDSL_DEVICE u32 down(u32 rows) { return (rows + tile_rows - 1) / tile_rows; }
  static FLYDSL_DEVICE u32 along(u32 columns) {
    return (columns + tile_columns - 1) / tile_columns;
  }
  static FLYDSL_DEVICE u32 tiles(Axis axis, u32 begin, u32 end) {
    if (axis == Axis::columns) return along(end - begin);
    return begin == end ? 0 : down(end - begin + begin % granule);
  }
  static FLYDSL_DEVICE u32 across(Axis axis) {
    const Arguments args = fresh_arguments();
    const u32 all_down = axis == Axis::rows ? 1 : down(static_cast<u32>(args->m));
    const u32 all_along = axis == Axis::columns ? 1 : along(static_cast<u32>(args->n));
    return all_down * all_along;
  }
};

template <u32 tile_rows, u32 tile_columns, u32 granule = 1>
class Tiles {
 public:
  FLYDSL_DEVICE explicit Tiles(u32 lane) : groups_(lane) {
    const u32 workers = fresh_arguments()->workers, worker = __builtin_amdgcn_workgroup_id_x();
    const u32 count = uniform(groups_.count());
    if (workers % kXcds == 0) {  // work-groups go to the XCDs by turns
      const u32 xcd = worker % kXcds, each = count / kXcds, more = count % kXcds;
      const u32 first = xcd * each + (xcd < more ? xcd : more);
      tile_ = first + worker / kXcds;
      end_ = first + each + (xcd < more);
    } else {
      tile_ = worker;
      end_ = count;
    }
    // In vector registers; scalar ones are few.
    tile_ = computed_here(tile_);
    end_ = computed_here(end_);
    if (more()) groups_.begin();
  }

  FLYDSL_DEVICE bool more() const { return uniform(tile_) < uniform(end_); }
  FLYDSL_DEVICE Tile next() {
    const Arguments args = fresh_arguments();
    const u32 number = uniform(tile_), workers = args->workers;
    const Group group = groups_.find(number);
    tile_ = computed_here(number + (workers % kXcds == 0 ? workers / kXcds : workers));
    const auto axis = static_cast<Axis>(args->axis);
    const bool by_rows = axis == Axis::rows, by_columns = axis == Axis::columns;
    Tile tile;
    tile.group = group.number;
    tile.k = axis == Axis::k ? group.begin : 0;
    tile.length = axis == Axis::k ? group.end - group.begin : args->k;
    const i32 before = by_rows ? static_cast<i32>(static_cast<u32>(group.begin) % granule) : 0;
    const i32 first_m = by_rows ? group.begin - before : 0, first_n = by_columns ? group.begin : 0;
    const i32 rows = by_rows ? group.end - first_m : args->m;
    const i32 columns = by_columns ? group.end - group.begin : args->n;
    // Bands of kBand rows of tiles, one tile of each by turns.
    const u32 down = Shape::down(static_cast<u32>(rows));
    const u32 along = Shape::along(static_cast<u32>(columns));
    const u32 band = group.tile / (kBand * along), in_band = group.tile - band * kBand * along;
    const u32 high = down - band * kBand < kBand ? down - band * kBand : kBand;
    const i32 row = static_cast<i32>((band * kBand + in_band % high) * tile_rows);
    const i32 column = static_cast<i32>(in_band / high * tile_columns);
    tile.m = first_m + row;
    tile.n = first_n + column;
    tile.rows = at_most(rows - row, tile_rows);
    tile.columns = at_most(columns - column, tile_columns);
    tile.before = before > row ? before - row : 0;
    tile.settle();
    return tile;
  }

 private:
  using Shape = Cut<tile_rows, tile_columns, granule>;
  static constexpr u32 kXcds = 8, kBand = 4;

  static FLYDSL_DEVICE i32 at_most(i32 value, u32 most) {
    return value < static_cast<i32>(most) ? value : static_cast<i32>(most);
  }
  Groups<Shape> groups_;
  u32 tile_, end_;
};

}  // namespace flydsl::kernels::grouped
