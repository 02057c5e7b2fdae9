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

// `Cut` says how tiles are cut: Cut::tiles(axis, begin, end), of a group that lies there on an axis of D; Cut::across(axis), how many
// tiles a group has for each of those, or else how many it has. (Arguments are looked up anew, and so what follows from them, since
// scalar registers are few.)
template <class Cut>
class Groups {
 public:
  FLYDSL_DEVICE explicit Groups(u32 lane) : lane_(lane) {}

  // Tiles of all groups.
  FLYDSL_DEVICE u32 count() {
    const u32 groups = fresh_arguments()->groups;
    if (axis() == Axis::none || axis() == Axis::k) return groups * Cut::across(axis());
    begin();
    while (uniform(first_) + kWaveLanes < groups) next();
    return uniform(before_) + of_last_lane(tiles_);
  }

  // To the first groups. find() looks from the ones it found last onwards.
  FLYDSL_DEVICE void begin() {
    if (axis() == Axis::none) return;
    first_ = kept(0);
    before_ = kept(0);
    ended_ = kept(0);
    ahead_ = load(0);
    look();
  }

  // The group that has tile `tile` of all, which is below count() and not below that of the call before.
  FLYDSL_DEVICE Group find(u32 tile) {
    if (axis() == Axis::none) {
      const u32 across = Cut::across(Axis::none);
      return {tile / across, 0, 0, tile % across};
    }
    while (tile - uniform(before_) >= of_last_lane(tiles_)) next();
    const u32 before = uniform(before_);
    const u64 beyond = ballot(tile - before < tiles_);
    const u32 owner = static_cast<u32>(__builtin_ctzll(beyond));
    const auto of_owner = [&](u32 value) { return __builtin_amdgcn_readlane(value, owner); };
    const u32 begin = of_owner(static_cast<u32>(begin_)), end = of_owner(static_cast<u32>(end_));
    const u32 first = before + of_owner(tiles_) - of_owner(own_tiles_);
    return {uniform(first_) + owner, static_cast<i32>(begin), static_cast<i32>(end), tile - first};
  }

 private:
  // The offset of this lane's group of those from `first` on, put into the axis; of no group 0.
  FLYDSL_DEVICE u32 load(u32 first) const {
    const u32 group = first + lane_;
    const Arguments args = fresh_arguments();
    if (group >= args->groups) return 0;
    const i64 at = group * args->offsets_stride_g;
    i64 offset;
    if (args->offsets_wide) {
      offset = ((global_ptr<const i64>)args->offsets)[at];
    } else {
      offset = ((global_ptr<const i32>)args->offsets)[at];
    }
    const i64 size = axis() == Axis::rows ? args->m : axis() == Axis::columns ? args->n : args->k;
    return static_cast<u32>(offset < 0 ? 0 : offset > size ? size : offset);
  }
  FLYDSL_DEVICE void next() {
    before_ = kept(uniform(before_) + of_last_lane(tiles_));
    ended_ = kept(of_last_lane(static_cast<u32>(end_)));
    first_ = kept(uniform(first_) + kWaveLanes);
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
    own_tiles_ = Cut::across(axis());
    if (axis() != Axis::k) own_tiles_ *= Cut::tiles(axis(), static_cast<u32>(begin_), end);
    if (first_ + lane_ >= fresh_arguments()->groups) own_tiles_ = 0;
    tiles_ = sums_of_wave(own_tiles_);
  }

  // In a vector register; scalar ones are few.
  static FLYDSL_DEVICE u32 kept(u32 value) { return computed_here(value); }
  static FLYDSL_DEVICE Axis axis() { return static_cast<Axis>(fresh_arguments()->axis); }

  u32 lane_;
  // Of the 64 groups that are looked at; those of all lanes in vector registers:
  u32 first_ = 0;   // their first
  u32 before_ = 0;  // tiles before them
  u32 ended_ = 0;   // where the group before them ends
  i32 begin_ = 0, end_ = 0;
  u32 own_tiles_ = 0, tiles_ = 0;  // of the lane's group; of all up to and with it
  u32 ahead_ = 0;                  // offset of the lane's group 64 further
};

}  // namespace flydsl::kernels::grouped
