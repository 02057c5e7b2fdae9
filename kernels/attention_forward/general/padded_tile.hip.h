// Where a tile of keys lies in LDS when the head dims are any multiples of 32: row after row.
// Without conflicts (lane groups as in column_tile.hip.h):
// - K by b128, lane = row: the pitch is an odd number of 16-byte places, so that the 16 rows of a
//   group lie in 16 different places (mod 256);
// - V by transposed b64: 32 lanes read 64 bytes of 4 neighbouring rows; the pitch is an odd number of
//   64-byte places, so that these lie 64 bytes apart (mod 256).
#pragma once

#include "common/lanes.hip.h"
#include "common/lds.hip.h"

namespace flydsl::kernels {

template <int head_dim_qk, int head_dim_v, int keys = 64>
struct PaddedTile {
  static_assert(head_dim_qk % 32 == 0 && head_dim_v % 32 == 0,
                "the head dims of a class are multiples of 32");
  static constexpr int score_steps = head_dim_qk / 16, value_blocks = head_dim_v / 32;
  static constexpr int k_pitch = 2 * head_dim_qk + 16;
  static constexpr int v_pitch = 2 * head_dim_v + (head_dim_v % 64 == 0 ? 64 : 0);
  static constexpr int k_bytes = keys * k_pitch, v_bytes = keys * v_pitch;

  // As in ColumnTile.
  struct Keys {
    lds_ptr<const char> k_lane;
    FLYDSL_DEVICE Keys(lds_ptr<const char> tile, u32 lane)
        : k_lane(tile + (lane % 32 * k_pitch + lane / 32 * 16)) {}
    FLYDSL_DEVICE u32x4 operator()(int block, int step) const {
      return read_b128(k_lane + (32 * block * k_pitch + 32 * step));
    }
  };
  struct Values {
    lds_ptr<const char> v_lane;
    FLYDSL_DEVICE Values(lds_ptr<const char> tile, u32 lane) {
      const u32 key = lane / 32 * 4, element = lane / 16 % 2 * 16;
      v_lane = tile + (key * v_pitch + element * 2 + column_place<v_pitch>(lane));
    }
    FLYDSL_DEVICE u32x4 operator()(int step, int block) const {
      const int at = 16 * step * v_pitch + 64 * block;
      const u32x2 low = read_column<v_pitch>(v_lane + at);
      const u32x2 high = read_column<v_pitch>(v_lane + (at + 8 * v_pitch));
      return u32x4{low[0], low[1], high[0], high[1]};
    }
  };
};

}  // namespace flydsl::kernels
