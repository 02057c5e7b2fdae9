// Where a tile of K or V lies in LDS: in blocks of 32 columns, whose rows follow each other, 64 bytes each. Copies land
// linearly, 16 rows of a block at once, and nothing is padded. 64 banks of 4 bytes; conflict-free in every group of lanes that is
// served together (ds_read_b128: lanes {0-3,12-15,20-27}, {4-11,16-19,28-31} and the same + 32; b64: 32 lanes):
// - K by b128, lane = row: place c of a row's four 16-byte places in a block holds c ^ (row / 4 % 4), by the global
//   addresses of the copying lanes; a group's rows differ mod 4, or in row / 4 % 4;
// - V by transposed b64: 32 lanes read 64 bytes of 4 rows that follow each other.
#pragma once

#include "common/lanes.hip.h"
#include "common/lds.hip.h"

namespace flydsl::kernels::alternating {

template <int head_dim, int keys>
struct BlockTile {
  static_assert(head_dim % 32 == 0 && keys % 32 == 0, "whole blocks, whole matrix instructions");
  static constexpr int piece_bytes = 64;  // of a row in a block
  static constexpr int line_rows = 16, line_bytes = line_rows * piece_bytes;
  static constexpr int blocks = head_dim / 32, lines_of_block = keys / line_rows;
  static constexpr int block_bytes = keys * piece_bytes;
  static constexpr int bytes = blocks * block_bytes;

  // Copying: lane l of a wave carries 16 bytes of row l / 4 of a line, from this byte of the block's 64 on.
  static FLYDSL_DEVICE u32 row_of_lane(u32 lane) { return lane / 4; }
  static FLYDSL_DEVICE u32 k_byte_of_lane(u32 lane) { return (lane % 4 ^ lane / 16) * 16; }
  static FLYDSL_DEVICE u32 v_byte_of_lane(u32 lane) { return lane % 4 * 16; }

  // Byte of the A operand of S^T = K Q^T for keys 32 block + l % 32, elements 16 step + 8 (l / 32): a lane part, of
  // odd steps k_odd_step from it, and an immediate.
  static FLYDSL_DEVICE u32 k_lane(u32 lane) {
    const u32 row = lane % 32;
    return row * piece_bytes + (lane / 32 ^ row / 4 % 4) * 16;
  }
  static constexpr u32 k_odd_step = 32;  // XOR
  static constexpr int k_immediate(int block, int step) {
    return step / 2 * block_bytes + block * 32 * piece_bytes;
  }

  // Byte that lane l names for the A operand of O^T = V^T P^T. Lane group g = l / 32, element j stands for key
  // 16 step + 8 (j / 4) + 4 g + j % 4, the order in which S^T's accumulators hold the keys; `half` is j / 4.
  // The operand's row is head-dim element 32 block + l % 32.
  static FLYDSL_DEVICE u32 v_lane(u32 lane) {
    const u32 key = lane / 32 * 4 + lane % 16 / 4;
    const u32 element = lane / 16 % 2 * 16 + lane % 4 * 4;
    return key * piece_bytes + element * 2;
  }
  static constexpr int v_immediate(int step, int half, int block) {
    return (16 * step + 8 * half) * piece_bytes + block * block_bytes;
  }
};

}  // namespace flydsl::kernels::alternating
