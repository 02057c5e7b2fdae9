// Where a tile of 32 rows lies in LDS: row after row, the 16-byte chunks of a row permuted, since
// copies land linearly. The permutation is made by the addresses that the copies read.
//
// Without conflicts (64 banks of 4 bytes; ds_read_b128 serves lanes {0-3,12-15,20-27},
// {4-11,16-19,28-31} and the same + 32 together, ds_read_b64 32 lanes). Rows are 128 or 256 bytes
// times an odd number or any, so that within 256 bytes a chunk lies at place
// 8 (row % 2) + chunk ^ f(row), or at chunk ^ f(row):
// - keys: 16 rows of a lane group read two neighbouring chunks; their f are all different (with the
//   row's parity);
// - values: 32 lanes read the two chunks of 16 elements from 8 neighbouring rows; f is even, so that
//   the two stay together, and different for 8 rows.
#pragma once

#include "attention_decode/plan.hip.h"

namespace flydsl::kernels {

template <int head_dim>
struct TileLayout {
  static_assert(head_dim % 64 == 0, "rows must be whole multiples of 128 bytes");
  static constexpr u32 row_bytes = 2 * head_dim;
  static constexpr u32 bytes = kKeysOfTile * row_bytes;
  static constexpr int copies = bytes / 1024;  // of one wave, 16 bytes a lane
  static constexpr u32 chunks_of_row = row_bytes / 16;
  static constexpr bool odd = head_dim / 64 % 2 != 0;

  static FLYDSL_DEVICE u32 key_permutation(u32 row) { return odd ? row >> 1 & 7 : row & 15; }
  static FLYDSL_DEVICE u32 value_permutation(u32 row) { return odd ? row & 6 : 2 * row & 15; }

  // The A operand of S^T = K Q^T, 16x16x32: keys 16 block + lane % 16, elements
  // 32 step + 8 (lane / 16).
  static FLYDSL_DEVICE u32 key_byte(u32 lane, u32 block, u32 step) {
    const u32 row = 16 * block + lane % 16;
    return row * row_bytes + ((4 * step + lane / 16) ^ key_permutation(row)) * 16;
  }
  // What a lane names for half an A operand of O^T = V^T P^T, elements 16 block .. + 15: keys
  // 16 half + 4 (lane / 16) + 0..3, the order in which S^T's accumulators hold the keys.
  static FLYDSL_DEVICE u32 value_byte(u32 lane, u32 half, u32 block) {
    const u32 row = 16 * half + 4 * (lane / 16) + lane % 16 / 4;
    const u32 chunk = 2 * block + lane % 4 / 2;
    return row * row_bytes + (chunk ^ value_permutation(row)) * 16 + lane % 2 * 8;
  }
};

}  // namespace flydsl::kernels
