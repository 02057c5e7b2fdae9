// Where the groups lie on the axis that they share, and which of them has a tile: running maxima and sums over the offsets, 64
// groups at a time, a lane each. Every wave does this for itself, so nothing is exchanged; memory is read once for 64 groups.
#pragma once

#include "common/scan.hip.h"
#include "grouped_gemm/arguments.hip.h"

namespace flydsl::kernels::grouped {

// That the groups share.
enum class Axis : u32 { none, rows, columns, k };

struct Group {
  u32 number;
  i32 begin, end;  // on the axis; without an axis 0
  u32 tile;        // the one that was asked for, counted in the group
};

class Groups {
 public:
  // `tile_size`: of tiles along the axis, if it is one of D's. `across`: how many tiles a group has for each of those; else
  // how many it has.
  FLYDSL_DEVICE Groups(u32 tile_size, u32 across, u32 lane)
      : lane_(lane), tile_size_(tile_size), across_(across) {
    const Arguments args = fresh_arguments();
    groups_ = args->groups;
    axis_ = static_cast<Axis>(args->axis);
    size_ = axis_ == Axis::rows ? args->m : axis_ == Axis::columns ? args->n : args->k;
  }

  // Tiles of all groups.
  FLYDSL_DEVICE u32 count() {
    if (axis_ == Axis::none || axis_ == Axis::k) return groups_ * across_;
    begin();
    while (first_ + kWaveLanes < groups_) next();
    return before_ + of_last_lane(tiles_);
  }

  // To the first groups. find() looks from the ones it found last onwards.
  FLYDSL_DEVICE void begin() {
    if (axis_ == Axis::none) return;
    first_ = before_ = ended_ = 0;
    ahead_ = load(0);
    look();
  }

  // The group that has tile `tile` of all, which is below count() and not below that of the call before.
  FLYDSL_DEVICE Group find(u32 tile) {
    if (axis_ == Axis::none) return {tile / across_, 0, 0, tile % across_};
    while (tile - before_ >= of_last_lane(tiles_)) next();
    const u64 beyond = ballot(tile - before_ < tiles_);
    const u32 owner = static_cast<u32>(__builtin_ctzll(beyond));
    const auto of_owner = [&](u32 value) { return __builtin_amdgcn_readlane(value, owner); };
    const u32 begin = of_owner(static_cast<u32>(begin_)), end = of_owner(static_cast<u32>(end_));
    const u32 first = before_ + of_owner(tiles_) - of_owner(own_tiles_);
    return {first_ + owner, static_cast<i32>(begin), static_cast<i32>(end), tile - first};
  }

 private:
  // The offset of this lane's group of those from `first` on, put into the axis; of no group 0.
  FLYDSL_DEVICE u32 load(u32 first) const {
    const u32 group = first + lane_;
    if (group >= groups_) return 0;
    const Arguments args = fresh_arguments();
    const i64 at = group * args->offsets_stride_g;
    i64 offset;
    if (args->offsets_wide) {
      offset = ((global_ptr<const i64>)args->offsets)[at];
    } else {
      offset = ((global_ptr<const i32>)args->offsets)[at];
    }
    return static_cast<u32>(offset < 0 ? 0 : offset > size_ ? size_ : offset);
  }
  FLYDSL_DEVICE void next() {
    before_ += of_last_lane(tiles_);
    ended_ = of_last_lane(static_cast<u32>(end_));
    first_ += kWaveLanes;
    look();
  }
  // Has ahead_, and reads what comes after it.
  FLYDSL_DEVICE void look() {
    const auto later = [](u32 a, u32 b) { return a > b ? a : b; };
    const u32 end = later(ended_, scan_of_wave(ahead_, later));
    ahead_ = load(first_ + kWaveLanes);
    begin_ = static_cast<i32>(
        __builtin_amdgcn_update_dpp(ended_, end, 0x138, 0xf, 0xf, false));  // wave_shr:1
    end_ = static_cast<i32>(end);
    own_tiles_ = across_;
    if (axis_ != Axis::k)
      own_tiles_ *= (end - static_cast<u32>(begin_) + tile_size_ - 1) / tile_size_;
    if (first_ + lane_ >= groups_) own_tiles_ = 0;
    tiles_ = sums_of_wave(own_tiles_);
  }

  u32 lane_, tile_size_, across_, groups_;
  Axis axis_;
  i32 size_;
  // Of the 64 groups that are looked at:
  u32 first_ = 0;   // their first
  u32 before_ = 0;  // tiles before them
  u32 ended_ = 0;   // where the group before them ends
  i32 begin_ = 0, end_ = 0;
  u32 own_tiles_ = 0, tiles_ = 0;  // of the lane's group; of all up to and with it
  u32 ahead_ = 0;                  // offset of the lane's group 64 further
};

}  // namespace flydsl::kernels::grouped
