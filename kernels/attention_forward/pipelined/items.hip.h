// What a work-group computes: 256 rows of one head, then others. There are only as many work-groups as
// compute units where that is known to share the work well (docs/archive-format.md, tile[2]), so that each can
// fetch the next item while it ends this one.
#pragma once

#include "attention_forward/problem.hip.h"

namespace flydsl::kernels::pipelined {

// A wave has 32 rows in each half of the item.
constexpr i32 kRowsOfHalf = kRowsOfWave * kWaves;
constexpr i32 kRowsOfItem = 2 * kRowsOfHalf;
// The pipeline looks that far ahead; of an item with fewer tiles the last ones are masked.
constexpr i32 kFewestTiles = 3;

template <Mask mask>
struct Item : Problem<mask> {
  i32 tiles;           // that have a key which any row sees
  i32 full_tiles;      // that all rows see completely
  i32 complete_tiles;  // of which all keys exist

  FLYDSL_DEVICE void count_tiles() {
    tiles = (this->last_key(this->first_row + kRowsOfItem - 1) + kKeysOfTile) / kKeysOfTile;
    full_tiles = (this->last_key(this->first_row) + 1) / kKeysOfTile;
    complete_tiles = this->seq_k / kKeysOfTile;
  }
};

// The items of this work-group: a round of them has one for each work-group. Where items differ, they come
// longest first, and every second round is dealt in reverse, so that work-groups get equal sums.
template <Mask mask>
struct Items {
  u32 items, groups, group, mirrored;
  u32 round_begin = 0;
  bool reverse = false;

  FLYDSL_DEVICE Items() {
    const Arguments args = fresh_arguments();
    // Where lengths differ, row_tiles are those of all sequences.
    const u32 batches = unequal_lengths() ? 1u : static_cast<u32>(args->batches);
    items = static_cast<u32>(args->heads_q) * batches * args->row_tiles;
    groups = args->grid_x;
    group = __builtin_amdgcn_workgroup_id_x();
    // In its XCD (work_order.hip.h).
    mirrored = groups % kXcds == 0 && mask == Mask::causal
                   ? groups - kXcds - group + 2 * (group % kXcds)
                   : group;
  }
  FLYDSL_DEVICE bool may_have_more() const { return round_begin < items; }
  // The next item whose rows see a key; calls empty(item) for those whose rows see none.
  template <class Empty>
  FLYDSL_DEVICE bool next(Item<mask> &item, Empty empty) {
#pragma unroll 1
    while (round_begin < items) {
      const u32 number = round_begin + (reverse ? mirrored : group);
      round_begin += groups;
      reverse = !reverse;
      if (!find_item(item, number, kRowsOfItem)) continue;
      item.count_tiles();
      if (FLYDSL_UNLIKELY(item.tiles <= 0)) {
        empty(item);
        continue;
      }
      if (item.tiles < kFewestTiles) item.tiles = kFewestTiles;
      return true;
    }
    return false;
  }
};

}  // namespace flydsl::kernels::pipelined
