// Which tile a work-group computes where all sequences are equally long (others: unequal_order.hip.h).
//
// The hardware hands work-group i to XCD i % 8, and each XCD has an L2 of its own. Whole heads are
// dealt to the XCDs, so that the work-groups that run on one at a time share keys and values; heads
// that are left over are spread over all of them. Causal tiles are walked longest first, over a few
// heads at a time: the work-groups that start last are then short ones. Any order is right; where
// XCDs are numbered otherwise only the L2 is used less well.
#pragma once

#include "common/vectors.hip.h"

namespace flydsl::kernels {

constexpr u32 kXcds = 8;
// Heads whose tiles take turns, where lengths differ. More would share the L2 among too many keys.
constexpr u32 kHeadsInTurn = 4;

struct WorkItem {
  u32 head, batch;
  u32 row_tile;  // row_tiles or more: nothing to do
};

// Item `number` of heads * batches * row_tiles, which is below 2^31.
template <bool longest_first>
FLYDSL_DEVICE WorkItem work_item(u32 number, u32 heads, u32 batches, u32 row_tiles) {
  const u32 all = heads * batches, share = all / kXcds;
  u32 problem, tile;
  if (const u32 dealt = share * kXcds * row_tiles; number < dealt) {
    const u32 own = number / kXcds, first_of_xcd = number % kXcds * share;
    if constexpr (longest_first) {
      const u32 turn = own / (kHeadsInTurn * row_tiles), first = turn * kHeadsInTurn;
      const u32 in_turn = share - first < kHeadsInTurn ? share - first : kHeadsInTurn;
      const u32 rest = own - first * row_tiles;
      tile = rest / in_turn;
      problem = first_of_xcd + first + rest % in_turn;
    } else {
      tile = own % row_tiles;
      problem = first_of_xcd + own / row_tiles;
    }
  } else {
    const u32 rest = number - dealt, left = all - share * kXcds;
    if (left == 0) return {0, 0, row_tiles};
    tile = rest / left;
    problem = all - left + rest % left;
  }
  if (tile >= row_tiles) return {0, 0, row_tiles};
  if constexpr (longest_first) tile = row_tiles - 1 - tile;
  return {problem % heads, problem / heads, tile};
}

// Which of `all` items, longest first, work-group `number` takes where `sharing` work-groups run on a compute unit at a
// time. The first ones start together, one a compute unit in turn: every second round of these is dealt in reverse, so
// that compute units get equal sums. Later ones start where others end, the longest first.
constexpr u32 kComputeUnits = 256;
FLYDSL_DEVICE u32 shared_evenly(u32 number, u32 all, u32 sharing) {
  const u32 round = number / kComputeUnits, begin = round * kComputeUnits;
  if (round % 2 == 0 || round >= sharing || number >= all) return number;
  const u32 count = all - begin < kComputeUnits ? all - begin : kComputeUnits;
  if (count % kXcds != 0) return number;
  const u32 xcd = number % kXcds;
  return begin + (count - kXcds - (number - begin - xcd)) + xcd;
}

}  // namespace flydsl::kernels
