// Where a tile of 64 keys lies in LDS when the head dims are any multiples of 32: row after row.
// Without conflicts (lane groups as in tile_layout.hip.h):
// - K by b128, lane = row: the pitch is an odd number of 16-byte places, so that the 16 rows of a
//   group lie in 16 different places (mod 256);
// - V by transposed b64: 32 lanes read 64 bytes of 4 neighbouring rows; the pitch is an odd number of
//   64-byte places, so that these lie 64 bytes apart (mod 256).
#pragma once

#include "common/lanes.hip.h"

namespace flydsl::kernels {

template <int head_dim_qk, int head_dim_v>
struct PaddedTile {
  static_assert(head_dim_qk % 32 == 0 && head_dim_v % 32 == 0,
                "the head dims of a class are multiples of 32");
  static constexpr int score_steps = head_dim_qk / 16, value_blocks = head_dim_v / 32;
  static constexpr int k_pitch = 2 * head_dim_qk + 16;
  static constexpr int v_pitch = 2 * head_dim_v + (head_dim_v % 64 == 0 ? 64 : 0);
  static constexpr int k_bytes = 64 * k_pitch, v_bytes = 64 * v_pitch;

  // As in TileLayout.
  static FLYDSL_DEVICE u32 k_lane(u32 lane) { return lane % 32 * k_pitch + lane / 32 * 16; }
  static constexpr int k_immediate(int block, int step) { return 32 * block * k_pitch + 32 * step; }
  static FLYDSL_DEVICE u32 v_lane(u32 lane) {
    const u32 key = lane / 32 * 4 + lane % 16 / 4;
    const u32 element = lane / 16 % 2 * 16 + lane % 4 * 4;
    return key * v_pitch + element * 2;
  }
  static constexpr int v_immediate(int step, int half, int block) {
    return (16 * step + 8 * half) * v_pitch + 64 * block;
  }
};

}  // namespace flydsl::kernels
