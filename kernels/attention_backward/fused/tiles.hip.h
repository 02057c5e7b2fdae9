// Where the tiles lie in LDS: 256 keys, 32 rows of Q and of dO in three buffers, dS in two. 64 banks of 4 bytes; conflict-free in
// every group of lanes that is served together (ds_read_b128: lanes {0-3,12-15,20-27}, {4-11,16-19,28-31} and the same + 32;
// b64: 32 lanes). Copies to LDS land linearly, 1024 bytes a wave: a line, which holds 4 rows of 256 bytes.
#pragma once

#include "common/lanes.hip.h"
#include "common/lds.hip.h"

namespace flydsl::kernels::fused {

constexpr i32 kWaves = 4, kKeysOfWave = 64, kKeys = kWaves * kKeysOfWave, kRows = 32,
              kHeadDim = 128;
constexpr int kRowBytes = 2 * kHeadDim, kLineBytes = 1024;

// Byte of the head-dim elements that lane l names in a transposed read: elements 16 (l / 16 % 2) + 4 (l % 4) .. of 32.
FLYDSL_DEVICE u32 column_byte(u32 lane) {
  return lane / 16 % 2 * 32 + lane % 4 * 8;
}

// 64 keys of a wave: key r in line 4 (r % 4) + r / 4 % 4, slot r / 16. Rows by b128 hit 16 lines, whose pitch puts them
// at different places mod 256; columns 4 lines, 64 bytes apart mod 256.
struct KeyTile {
  static constexpr int pitch = kLineBytes + 16, lines = 16, bytes = lines * pitch;

  static constexpr int key_of(int line, int slot) { return 16 * slot + 4 * (line % 4) + line / 4; }
  // Keys 32 block + l % 32, elements 16 step + 8 (l / 32) ..
  static FLYDSL_DEVICE u32 row_lane(u32 lane) {
    const u32 row = lane % 32;
    return (row % 4 * 4 + row / 4 % 4) * pitch + row / 16 * kRowBytes + lane / 32 * 16;
  }
  static constexpr int row_immediate(int block, int step) {
    return 2 * kRowBytes * block + 32 * step;
  }
  // Of all waves' tiles: keys 16 n + 8 half + 4 (l / 32) + 0..3, 32 elements.
  static FLYDSL_DEVICE u32 column_lane(u32 lane) {
    return (lane % 16 / 4 * 4 + lane / 32) * pitch + column_byte(lane);
  }
  static constexpr int column_immediate(int n, int half) {
    return n / 4 * bytes + n % 4 * kRowBytes + 2 * half * pitch;
  }
};

// 32 rows of Q or dO: row r in line 2 (r % 4) + r / 4 % 2, slot r / 8; in odd slots neighbouring 16-byte chunks change places.
// Rows by b128 hit 8 lines 32 bytes apart mod 256, each in an odd and in an even slot.
struct RowTile {
  static constexpr int pitch = kLineBytes + 32, lines = 8, bytes = lines * pitch;
  static constexpr int lines_of_wave = lines / kWaves;

  // Of line `line`, lane l carries this row and 16-byte chunk.
  static FLYDSL_DEVICE u32 copied_row(u32 line, u32 lane) {
    return lane / 16 * 8 + line % 2 * 4 + line / 2;
  }
  static FLYDSL_DEVICE u32 copied_chunk(u32 lane) { return lane % 16 ^ lane / 16 % 2; }
  // Rows l % 32, elements 16 step + 8 (l / 32) ..
  static FLYDSL_DEVICE u32 row_lane(u32 lane) {
    const u32 row = lane % 32;
    return (row % 4 * 2 + row / 4 % 2) * pitch + row / 8 * kRowBytes +
           (lane / 32 ^ row / 8 % 2) * 16;
  }
  static constexpr int row_immediate(int step) { return 32 * step; }
  // Rows 16 step + 8 half + 4 (l / 32) + 0..3, elements 32 block ..; for half 1 with bit 4 of the lane's part flipped.
  static FLYDSL_DEVICE u32 column_lane(u32 lane) {
    return (lane % 16 / 4 * 2 + lane / 32) * pitch + column_byte(lane);
  }
  static constexpr int column_immediate(int step, int half, int block) {
    return (2 * step + half) * kRowBytes + 64 * block;
  }
};

// dS of 256 keys and 32 rows: 64 bytes a key, four keys together; of the last two of them the halves change places. A lane
// writes four rows of a key at a time: 16 lanes 16 keys, of which those hit the same 128 bytes at different places.
struct DerivativeTile {
  static constexpr int key_bytes = 2 * kRows, pitch = 4 * key_bytes + 8, bytes = kKeys / 4 * pitch;

  // Rows 16 half + 4 (l / 32) + 0..3 of key 32 block + l % 32 of the wave.
  static FLYDSL_DEVICE u32 write_lane(u32 wave, u32 lane, u32 half) {
    return (wave * (kKeysOfWave / 4) + lane % 32 / 4) * pitch + lane % 4 * key_bytes +
           (half ^ lane / 2 % 2) * 32 + lane / 32 * 8;
  }
  // Rows 8 later.
  static constexpr int write_immediate(int block, int second) {
    return block * (32 / 4) * pitch + 16 * second;
  }
  // Keys 16 n + 8 half + 4 (l / 32) + 0..3, all rows.
  static FLYDSL_DEVICE u32 column_lane(u32 lane) {
    return lane / 32 * pitch + lane % 16 / 4 * key_bytes + (column_byte(lane) ^ lane / 8 % 2 * 32);
  }
  static constexpr int column_immediate(int n, int half) { return (4 * n + 2 * half) * pitch; }
};

// -lse / scale and -delta of 32 rows. The accumulators of a product are rows 8 n + 4 (l / 32) + 0..3, n < 4; a lane takes row l % 4
// of them from LDS, the others from its neighbours.
struct RowValues {
  static constexpr int bytes = 2 * 4 * kRows;
  static constexpr int delta_byte = 4 * kRows;
  static FLYDSL_DEVICE u32 lane_byte(u32 lane) { return lane / 32 * 16 + lane % 4 * 4; }
  static constexpr int immediate(bool delta, int n) { return (delta ? delta_byte : 0) + 32 * n; }
};

constexpr int kBuffers = 3;
// Q, dO, row values.
constexpr int kDoutAt = RowTile::bytes, kValuesAt = 2 * RowTile::bytes,
              kRowBufferBytes = kValuesAt + RowValues::bytes;
// Bytes from the start of LDS.
constexpr int kKeysAt = 0, kRowsAt = kKeysAt + kWaves * KeyTile::bytes,
              kDerivativesAt = kRowsAt + kBuffers * kRowBufferBytes,
              kLdsBytes = kDerivativesAt + 2 * DerivativeTile::bytes;
static_assert(kLdsBytes <= 160 * 1024 - 16);

}  // namespace flydsl::kernels::fused
