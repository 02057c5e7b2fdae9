// What a work-group computes: 256 rows of one head, then others. There are only as many work-groups as
// compute units where that is known to share the work well (docs/archive-format.md, tile[2]), so that each can
// fetch the next item while it ends this one.
#pragma once

#include "attention_forward/pipelined/tiles.hip.h"

namespace flydsl::kernels::pipelined {

// A wave has 32 rows in each half of the item.
constexpr i32 kRowsOfHalf = kRowsOfWave * kWaves;
constexpr i32 kRowsOfItem = 2 * kRowsOfHalf;
// The pipeline looks that far ahead; of an item with fewer tiles the last ones are masked.
constexpr i32 kFewestTiles = 3;

template <Mask mask>
struct Item : Problem<mask> {
  i32 tiles;  // that have a key which any row sees
  // Steps in which nothing is masked or clamped, as far as keys are concerned.
  i32 undisturbed_steps;

  // The first row of a wave in one half of the item; this lane's.
  FLYDSL_DEVICE i32 wave_row(u32 wave, int half) const {
    return this->first_row + kRowsOfHalf * half + kRowsOfWave * static_cast<i32>(wave);
  }
  FLYDSL_DEVICE i32 lane_row(u32 wave, int half, u32 lane) const {
    return wave_row(wave, half) + static_cast<i32>(fresh_lane(lane) % 32);
  }

  // What is seldom needed goes to vector registers, of which more are left; here() brings it back.
  FLYDSL_DEVICE void put_aside() {
    const auto to_lanes = [](auto &value) { asm volatile("" : "+v"(value)); };
    to_lanes(this->batch), to_lanes(this->head), to_lanes(this->kv_head);
    to_lanes(this->first_q), to_lanes(this->first_k), to_lanes(undisturbed_steps);
  }
  FLYDSL_DEVICE Problem<mask> here() const {
    Problem<mask> result = *this;
    const auto scalar = [](auto value) {
      return static_cast<decltype(value)>(uniform(static_cast<u32>(value)));
    };
    result.batch = scalar(this->batch);
    result.head = scalar(this->head);
    result.kv_head = scalar(this->kv_head);
    result.first_q = scalar(this->first_q);
    result.first_k = scalar(this->first_k);
    return result;
  }
  FLYDSL_DEVICE void count_tiles() {
    tiles = (this->last_key(this->first_row + kRowsOfItem - 1) + kKeysOfTile) / kKeysOfTile;
    const i32 full = (this->last_key(this->first_row) + 1) / kKeysOfTile;
    undisturbed_steps = smaller(full - 1, this->seq_k / kKeysOfTile - 3);
  }
};

// The items of this work-group: a round of them has one for each work-group. Where items differ, they come
// longest first, and every second round is dealt in reverse, so that work-groups get equal sums.
template <Mask mask>
struct Items {
  u32 round_begin = 0;
  u32 reverse = 0;  // 1: this round is dealt in reverse

  static FLYDSL_DEVICE u32 items() {
    const Arguments args = fresh_arguments();
    // Where lengths differ, row_tiles are those of all sequences.
    const u32 batches = unequal_lengths() ? 1u : static_cast<u32>(args->batches);
    return static_cast<u32>(args->heads_q) * batches * args->row_tiles;
  }
  // Which one of a round is ours.
  FLYDSL_DEVICE u32 number_in_round(u32 groups) const {
    const u32 group = __builtin_amdgcn_workgroup_id_x();
    // Reverse in its XCD (work_order.hip.h).
    if (mask == Mask::causal && reverse != 0 && groups % kXcds == 0)
      return groups - kXcds - group + 2 * (group % kXcds);
    return group;
  }
  FLYDSL_DEVICE bool may_have_more() const { return round_begin < items(); }
  // The next item whose rows see a key; calls empty(item) for those whose rows see none.
  template <class Empty>
  FLYDSL_DEVICE bool next(Item<mask> &item, Empty empty) {
    const u32 end = items(), groups = fresh_arguments()->grid_x;
#pragma unroll 1
    while (round_begin < end) {
      const u32 number = round_begin + number_in_round(groups);
      round_begin += groups;
      reverse ^= 1;
      if (!find_item(item, number, kRowsOfItem)) continue;
      item.count_tiles();
      if (FLYDSL_UNLIKELY(item.tiles <= 0)) {
        empty(item);
        continue;
      }
      if (item.tiles < kFewestTiles) item.tiles = kFewestTiles;
      item.put_aside();
      return true;
    }
    return false;
  }
};

}  // namespace flydsl::kernels::pipelined
