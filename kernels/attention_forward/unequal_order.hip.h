// Which tile a work-group computes where sequences have different lengths.
//
// One long sequence among short ones has most of the work. So the heads of every sequence are dealt to the
// XCDs (work_order.hip.h says why heads), and each XCD walks the row tiles of all sequences from those that
// see many keys to those that see few: what starts last is short. The order is one by classes, each of half
// as many keys as the class before, and in a class by sequence. Lengths are known to the device only, so
// every wave finds its tile by counting. 64 sequences are counted at a time: more of them come one 64 after
// the other, and with more than kMostCounted the order is that of equal ones.
#pragma once

#include "attention_forward/sequences.hip.h"
#include "attention_forward/work_order.hip.h"
#include "common/scan.hip.h"

namespace flydsl::kernels {

// Counting more sequences would take longer than their tiles. The grid follows: tiles_of in
// v2src/attention_forward_describe.cc.
constexpr u32 kMostCounted = 4096;

// The last one takes all that is left.
constexpr u32 kTileClasses = 6;

// The row tiles of one sequence, the lane's.
struct RowTiles : Sequence {
  i32 tiles, rows;  // `rows` of a tile

  FLYDSL_DEVICE RowTiles(u32 batch, i32 rows) : Sequence{}, tiles(0), rows(rows) {
    if (batch >= static_cast<u32>(fresh_arguments()->batches)) return;
    static_cast<Sequence &>(*this) = sequence_of<true>(batch);
    tiles = (seq_q + rows - 1) / rows;
  }
  // How many of them, the last ones, end at a row that may look past `keys` keys. (What a left bound hides
  // is not looked at: it makes tiles alike.)
  FLYDSL_DEVICE i32 beyond(i32 keys) const {
    const i32 first_row = keys - high;  // the first that looks past them
    if (keys >= seq_k || first_row >= seq_q) return 0;
    return first_row <= 0 ? tiles : tiles - first_row / rows;
  }
  // Of the classes up to and with that one. `most`: keys of the longest sequence.
  FLYDSL_DEVICE i32 up_to_class(u32 tile_class, i32 most) const {
    return tile_class + 1 == kTileClasses ? tiles : beyond(most >> (tile_class + 1));
  }
};

FLYDSL_DEVICE i32 of_lane(i32 value, u32 lane) {
  return static_cast<i32>(__builtin_amdgcn_readlane(static_cast<u32>(value), lane));
}
FLYDSL_DEVICE Sequence of_lane(const Sequence &all, u32 lane) {
  return {of_lane(all.first_q, lane), of_lane(all.first_k, lane),  of_lane(all.seq_q, lane),
          of_lane(all.seq_k, lane),   of_lane(all.diagonal, lane), of_lane(all.low, lane),
          of_lane(all.high, lane)};
}

// Tile number `number` in the order above, its batch and sequence; false if there are not that many.
FLYDSL_DEVICE bool find_row_tile(u32 number, i32 rows, WorkItem &item, Sequence &sequence) {
  const u32 lane = __builtin_amdgcn_workitem_id_x() % kWaveLanes;
  const u32 batches = static_cast<u32>(fresh_arguments()->batches);
  RowTiles tiles(lane, rows);
  u32 first = 0;
#pragma unroll 1
  for (;;) {
    const u32 all = of_last_lane(sums_of_wave(static_cast<u32>(tiles.tiles)));
    if (number < all) break;
    number -= all;
    first += kWaveLanes;
    if (first >= batches) return false;
    tiles = RowTiles(first + lane, rows);
  }

  const i32 most = static_cast<i32>(of_last_lane(
      scan_of_wave(static_cast<u32>(tiles.seq_k), [](u32 a, u32 b) { return a > b ? a : b; })));
  i32 above = 0, up_to = 0;  // of the lane's tiles, those in classes before this one, and with it
  u32 before = 0;            // of all lanes, the former
#pragma unroll 1
  for (u32 i = 0; i < kTileClasses; ++i) {
    up_to = tiles.up_to_class(i, most);
    const u32 all = of_last_lane(sums_of_wave(static_cast<u32>(up_to)));
    if (number < all) break;
    above = up_to;
    before = all;
  }
  const u32 count = static_cast<u32>(up_to - above);
  const u32 passed = sums_of_wave(count);
  const u32 left = number - before;
  const u32 found = static_cast<u32>(__builtin_ctzll(ballot(passed > left)));
  const i32 first_tile = tiles.tiles - 1 - above + static_cast<i32>(passed - count);
  item.batch = first + found;
  item.row_tile = static_cast<u32>(of_lane(first_tile, found)) - left;
  sequence = of_lane(tiles, found);
  return true;
}

// Item `number` of heads * row_tiles, the latter for all sequences together; false if it is none.
FLYDSL_DEVICE bool find_unequal_item(u32 number, i32 rows, WorkItem &item, Sequence &sequence) {
  const Arguments args = fresh_arguments();
  const u32 heads = static_cast<u32>(args->heads_q);
  if (const u32 batches = static_cast<u32>(args->batches); batches > kMostCounted) {
    const u32 tiles_of_longest = args->row_tiles / batches;
    item = work_item<false>(number, heads, batches, tiles_of_longest);
    if (item.row_tile >= tiles_of_longest) return false;
    sequence = sequence_of(item.batch);
    return true;
  }
  const u32 share = heads / kXcds, left = heads % kXcds;
  u32 tile;
  if (const u32 dealt = share * kXcds * args->row_tiles; number < dealt) {
    const u32 own = number / kXcds;
    tile = own / share;
    item.head = number % kXcds * share + own % share;
  } else {
    if (left == 0) return false;
    const u32 rest = number - dealt;
    tile = rest / left;
    item.head = share * kXcds + rest % left;
  }
  return tile < args->row_tiles && find_row_tile(tile, rows, item, sequence);
}

}  // namespace flydsl::kernels
