// One operand of a wave's score products that stays the same from tile to tile: of lane l, row l % 32 of its own, elements
// 16 n + 8 (l / 32) + 0..7. In registers, or, where those are scarce, in a part of LDS that only the wave uses.
#pragma once

#include "attention_forward/general/partial_rows.hip.h"
#include "common/lanes.hip.h"
#include "common/lds.hip.h"

namespace flydsl::kernels {

// `exact`: rows are 16-byte aligned and end among the last 32 elements, after a multiple of 8; else anywhere.
template <bool exact, int fragments, class Use>
FLYDSL_DEVICE void load_operand(global_ptr<const char> row, i32 head_dim, u32 lane,
                                const Use &use) {
  const i32 first = static_cast<i32>(computed_here(lane / 32 * 8));
#pragma unroll
  for (int n = 0; n < fragments; ++n) {
    if constexpr (exact) {
      u32x4 loaded = {};
      if (n < fragments - 2 || 16 * n + first < head_dim)
        loaded = load_16_bytes(row + 2 * (16 * n + first));
      use(n, loaded);
    } else {
      use(n, load_elements(row, 16 * n + first, head_dim));
    }
  }
}

template <int fragments, bool in_lds>
struct OwnOperand;

template <int fragments>
struct OwnOperand<fragments, false> {
  static constexpr int lds_bytes = 0;
  u32x4 held[fragments];
  FLYDSL_DEVICE OwnOperand(lds_ptr<char>, u32) {}
  template <bool exact>
  FLYDSL_DEVICE void load(global_ptr<const char> row, i32 head_dim, u32 lane) {
    load_operand<exact, fragments>(row, head_dim, lane,
                                   [&](int n, u32x4 loaded) { held[n] = loaded; });
  }
  FLYDSL_DEVICE u32x4 operator()(int n) const { return held[n]; }
};

template <int fragments>
struct OwnOperand<fragments, true> {
  static constexpr int lds_bytes = fragments * 16 * static_cast<int>(kWaveLanes);  // of a wave
  lds_ptr<char> of_lane;
  FLYDSL_DEVICE OwnOperand(lds_ptr<char> of_wave, u32 lane) : of_lane(of_wave + 16 * lane) {}
  template <bool exact>
  FLYDSL_DEVICE void load(global_ptr<const char> row, i32 head_dim, u32 lane) {
    load_operand<exact, fragments>(row, head_dim, lane, [&](int n, u32x4 loaded) {
      write_b128(of_lane + 16 * static_cast<int>(kWaveLanes) * n, loaded);
    });
  }
  FLYDSL_DEVICE u32x4 operator()(int n) const {
    return read_b128(of_lane + 16 * static_cast<int>(kWaveLanes) * n);
  }
};

}  // namespace flydsl::kernels
