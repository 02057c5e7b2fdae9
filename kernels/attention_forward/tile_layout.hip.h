// Where a tile of 64 keys lies in LDS.
//
// A line is 1024 bytes, what one wave copies at once, and holds rows `lines` apart: row r of the
// tile is in line r % lines, slot r / lines. Lines are padded (pitch), slots are not: copies to LDS
// land linearly. 64 banks of 4 bytes; conflict-free in every group of lanes that is served together
// (ds_read_b128: lanes {0-3,12-15,20-27}, {4-11,16-19,28-31} and the same + 32; b64: 32 lanes):
// - K by b128, lane = row: pitch 1040 puts row r at byte 16 (r % lines) + slot part (mod 256), and
// the 16
//   lanes of a group cover all 16 places;
// - V by transposed b64: 32 lanes read 64 bytes of 4 rows in 4 neighbouring lines, pitch 1088 puts
// these
//   64 bytes apart (mod 256).
#pragma once

#include "common/lanes.hip.h"

namespace flydsl::kernels {

template <int head_dim>
struct TileLayout {
  // Whole lines, whole 32-column blocks of outputs, and one or more outputs a lane on the slow path.
  static_assert(head_dim % 64 == 0 && head_dim >= 64 && head_dim <= 512,
                "attention_forward: the head dim must be a multiple of 64");
  static constexpr int score_steps = head_dim / 16, value_blocks = head_dim / 32;
  static constexpr int row_bytes = 2 * head_dim;
  static constexpr int line_bytes = 1024;
  static constexpr int rows_of_line = line_bytes / row_bytes;
  static constexpr int lines = 64 / rows_of_line;
  static constexpr int k_pitch = line_bytes + 16;
  static constexpr int v_pitch = line_bytes + 64;
  static constexpr int k_bytes = lines * k_pitch;
  static constexpr int v_bytes = lines * v_pitch;

  // Copying: lane l of a wave carries 16 bytes of row line + lines * (l / lanes_of_row).
  static constexpr int lanes_of_row = row_bytes / 16;

  // Byte of the A operand of S^T = K Q^T for keys 32 block + l % 32, elements 16 step + 8 (l / 32):
  // a lane part and an immediate.
  static FLYDSL_DEVICE u32 k_lane(u32 lane) {
    const u32 row = lane % 32;
    return row % lines * k_pitch + row / lines * row_bytes + lane / 32 * 16;
  }
  static constexpr int k_immediate(int block, int step) {
    return 32 * block / lines * row_bytes + 32 * step;
  }

  // Byte that lane l names for the A operand of O^T = V^T P^T. Lane group g = l / 32, element j
  // stands for key 16 step + 8 (j / 4) + 4 g + j % 4, the order in which S^T's accumulators hold
  // the keys; `half` is j / 4. The operand's row is head-dim element 32 block + l % 32.
  static FLYDSL_DEVICE u32 v_lane(u32 lane) {
    const u32 key = lane / 32 * 4 + lane % 16 / 4;
    const u32 element = lane / 16 % 2 * 16 + lane % 4 * 4;
    return key * v_pitch + element * 2;
  }
  static constexpr int v_immediate(int step, int half, int block) {
    const int key = 16 * step + 8 * half;
    return key % lines * v_pitch + key / lines * row_bytes + 64 * block;
  }
};

}  // namespace flydsl::kernels
