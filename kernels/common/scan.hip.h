// Running sums and the like over the lanes of a wave.
#pragma once

#include "common/lanes.hip.h"

namespace flydsl::kernels {

template <u32 number>
struct Constant {
  static constexpr u32 value = number;
};

// Running combination over the lanes up to and with each one; 0 must be neutral. Data-parallel primitives of
// the vector unit: shifts in rows of 16 lanes, then the last lane of a row to the following ones.
template <class Combine>
FLYDSL_DEVICE u32 scan_of_wave(u32 value, Combine combine) {
  const auto with = [&](auto control, auto rows) {
    value = combine(value, __builtin_amdgcn_update_dpp(0, value, decltype(control)::value,
                                                       decltype(rows)::value, 0xf, false));
  };
  with(Constant<0x111>(), Constant<0xf>());  // row_shr:1
  with(Constant<0x112>(), Constant<0xf>());
  with(Constant<0x114>(), Constant<0xf>());
  with(Constant<0x118>(), Constant<0xf>());
#if defined(__GFX9__)
  with(Constant<0x142>(), Constant<0xa>());  // row_bcast:15
  with(Constant<0x143>(), Constant<0xc>());  // row_bcast:31
#else  // two rows, and no broadcast from one to the next
  const u32 of_first_row = __builtin_amdgcn_readlane(value, 15);
  value = combine(value, lane_number_here() >= 16 ? of_first_row : 0);
#endif
  return value;
}
FLYDSL_DEVICE u32 sums_of_wave(u32 value) {
  return scan_of_wave(value, [](u32 a, u32 b) { return a + b; });
}
FLYDSL_DEVICE u32 of_last_lane(u32 value) {
  return __builtin_amdgcn_readlane(value, kWaveLanes - 1);
}

}  // namespace flydsl::kernels
