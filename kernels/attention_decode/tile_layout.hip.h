// Where a tile of 32 keys, or of their values, lies in LDS: row after row, the 16-byte chunks of a row
// permuted, since copies land linearly. The permutation is made by the addresses that the copies read.
//
// Without conflicts (64 banks of 4 bytes; ds_read_b128 serves lanes {0-3,12-15,20-27},
// {4-11,16-19,28-31} and the same + 32 together, 8-byte reads 32 lanes). Chunk c of row r lies at
// c ^ f(r) of its row, in 256 bytes at 16 (r's part of them) + 16 (c ^ f(r)). Reads of
// - keys: 16 rows r of a lane group read two neighbouring chunks, rows 0-3 and 12-15 of a block one and
//   rows 4-11 the other;
// - 16-bit values: 32 lanes read the two chunks of 16 elements from 8 rows, 0-7 or 8-15 (+ 16);
// - 8-bit values: 32 lanes read a chunk from 16 rows, 0-7 and 16-23, or 8-15 and 24-31.
// Each f below makes the places of all that a format has different, so that keys can be values, too.
//
// Before gfx950 tiles pass registers: rows are padded instead, to an odd number of chunks (32 banks; 8 lanes of a ds_read_b128 are
// served together), and values are read element by element.
#pragma once

#include "attention_decode/plan.hip.h"
#include "common/isa.hip.h"

namespace flydsl::kernels {

template <int row_bytes_, int element_bytes>
struct TileLayout {
  static_assert(row_bytes_ % (64 * element_bytes) == 0, "rows must be multiples of 64 elements");
  static constexpr u32 row_bytes = row_bytes_;
  static constexpr u32 pitch = row_bytes + (kGfx950 ? 0 : 16);
  static constexpr u32 bytes = kKeysOfTile * pitch;
  static constexpr int copies = kKeysOfTile * row_bytes / 1024;  // of one wave, 16 bytes a lane
  static constexpr u32 chunks_of_row = row_bytes / 16;

  static FLYDSL_DEVICE u32 permutation(u32 row) {
    const u32 upper_rows = element_bytes == 1 ? row / 16 : 0;
    if constexpr (!kGfx950) {
      return 0;
    } else if constexpr (row_bytes % 256 == 0) {
      return (2 * row & 15) | upper_rows;
    } else if constexpr (row_bytes % 128 == 0) {
      return (row & 6) | upper_rows;
    } else {
      const u32 gray = row / 4 ^ row / 8;
      return (gray & 1) * 2 + (gray / 2 & 1);
    }
  }
  static FLYDSL_DEVICE u32 chunk_byte(u32 row, u32 chunk) {
    return row * pitch + (chunk ^ permutation(row)) * 16;
  }

  // What a lane reads for the A operand of S^T = K Q^T, 16x16x32: of key 16 block + lane % 16 the 16 bytes
  // that are number lane / 16 of 64 bytes.
  static FLYDSL_DEVICE u32 key_byte(u32 lane, u32 block, u32 step) {
    return chunk_byte(16 * block + lane % 16, 4 * step + lane / 16);
  }
  // What a lane names for the A operand of O^T = V^T P^T, elements 16 block .. + 15, in the order in which
  // S^T's accumulators hold the keys: element j of lane group lane / 16 is key
  // 16 (j / 4) + 4 (lane / 16) + j % 4. Of 16-bit values, the keys of one half (j / 4):
  static FLYDSL_DEVICE u32 value_byte(u32 lane, u32 half, u32 block) {
    if (!kGfx950) return value_byte_of_pitch<2>(lane, half, block);
    const u32 row = 16 * half + 4 * (lane / 16) + lane % 16 / 4;
    return chunk_byte(row, 2 * block + lane % 4 / 2) + lane % 2 * 8;
  }
  // Of 8-bit values, all eight:
  static FLYDSL_DEVICE u32 value_byte_of_8_bits(u32 lane, u32 block) {
    if (!kGfx950) return value_byte_of_pitch<1>(lane, 0, block);
    const u32 j = lane % 16 / 2;
    return chunk_byte(16 * (j / 4) + 4 * (lane / 16) + j % 4, block) + lane % 2 * 8;
  }

 private:
  // Of element lane % 16 in the first of the four rows; the others are `pitch` apart.
  template <u32 size>
  static FLYDSL_DEVICE u32 value_byte_of_pitch(u32 lane, u32 half, u32 block) {
    return (16 * half + 4 * (lane / 16)) * pitch + (16 * block + lane % 16) * size;
  }
};

}  // namespace flydsl::kernels
