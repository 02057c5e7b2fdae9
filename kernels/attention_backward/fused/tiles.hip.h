// Where the tiles lie in LDS: 256 keys, 32 rows (64 of head dim 64) of Q and of dO in three buffers, dS in two. 64 banks of 4 bytes; conflict-free in
// every group of lanes that is served together (ds_read_b128: lanes {0-3,12-15,20-27}, {4-11,16-19,28-31} and the same + 32;
// b64: 32 lanes). Copies to LDS land linearly, 1024 bytes a wave: a line, which holds 4 rows of 256 bytes or 8 of 128.
#pragma once

#include "common/lanes.hip.h"
#include "common/lds.hip.h"

namespace flydsl::kernels::fused {

// One head dim a translation unit (attention_backward_fused_d64.hip.h).
#ifndef FLYDSL_FUSED_HEAD_DIM
#define FLYDSL_FUSED_HEAD_DIM 128
#endif
constexpr i32 kHeadDim = FLYDSL_FUSED_HEAD_DIM;
static_assert(kHeadDim == 64 || kHeadDim == 128);
constexpr i32 kWaves = 4, kKeysOfWave = 64, kKeys = kWaves * kKeysOfWave, kRows = 4096 / kHeadDim;
constexpr int kRowBlocks = kRows / 32, kHeadBlocks = kHeadDim / 32, kHeadSteps = kHeadDim / 16;
constexpr int kRowBytes = 2 * kHeadDim, kLineBytes = 1024, kChunks = kRowBytes / 16;

// Byte of the head-dim elements that lane l names in a transposed read: elements 16 (l / 16 % 2) + 4 (l % 4) .. of 32.
FLYDSL_DEVICE u32 column_byte(u32 lane) {
  return lane / 16 % 2 * 32 + lane % 4 * 8;
}

// `rows` rows in lines of 1 KB and some more: row r in line n (r % 4) + r / 4 % n, slot r / (4 n), for 4 n lines. Columns of four rows that
// follow each other lie 64 bytes apart mod 256.
template <int rows>
struct Lines {
  static constexpr int lines = rows * kRowBytes / kLineBytes, n = lines / 4,
                       pitch = kLineBytes + 64 / n, bytes = lines * pitch;
  static_assert(n == 2 || n == 4);

  static constexpr int row_of(int line, int slot) {
    return 4 * n * slot + 4 * (line % n) + line / n;
  }
  static constexpr u32 place(u32 row) {
    return (row % 4 * n + row / 4 % n) * pitch + row / (4 * n) * kRowBytes;
  }
  // Rows 4 (l / 32) + 0..3, 32 elements.
  static FLYDSL_DEVICE u32 column_lane(u32 lane) {
    return (lane % 16 / 4 * n + lane / 32) * pitch + column_byte(lane);
  }
};

// 64 keys of a wave. Rows by b128 hit 16 lines, whose pitch puts them at different places mod 256.
struct KeyTile : Lines<kKeysOfWave> {
  // Keys 32 block + l % 32, elements 16 step + 8 (l / 32) ..
  static FLYDSL_DEVICE u32 row_lane(u32 lane) { return place(lane % 32) + lane / 32 * 16; }
  static constexpr int row_immediate(int block, int step) { return place(32 * block) + 32 * step; }
  // Of all waves' tiles: keys 16 n + 8 half + 4 (l / 32) + 0..3, 32 elements.
  static constexpr int column_immediate(int n, int half) {
    return n / 4 * bytes + place(n % 4 * 16 + 8 * half);
  }
};

// kRows rows of Q or dO; in odd slots neighbouring 16-byte chunks change places. Rows by b128 hit 8 lines 32 bytes apart mod 256, each
// in an odd and in an even slot.
struct RowTile : Lines<kRows> {
  static_assert(lines == 8);
  static constexpr int lines_of_wave = lines / kWaves;

  // Of line `line`, lane l carries this row and 16-byte chunk.
  static FLYDSL_DEVICE u32 copied_row(u32 line, u32 lane) {
    return lane / kChunks * 8 + line % 2 * 4 + line / 2;
  }
  static FLYDSL_DEVICE u32 copied_chunk(u32 lane) { return lane % kChunks ^ lane / kChunks % 2; }
  // Rows 32 block + l % 32, elements 16 step + 8 (l / 32) ..
  static FLYDSL_DEVICE u32 row_lane(u32 lane) {
    const u32 row = lane % 32;
    return place(row) + (lane / 32 ^ row / 8 % 2) * 16;
  }
  static constexpr int row_immediate(int block, int step) { return place(32 * block) + 32 * step; }
  // Rows 16 step + 8 half + 4 (l / 32) + 0..3, elements 32 block ..; for half 1 with bit 4 of the lane's part flipped.
  static constexpr int column_immediate(int step, int half, int block) {
    return place(16 * step + 8 * half) + 64 * block;
  }
};

// dS of 256 keys and all rows, four keys together. Pieces of 32 and 64 bytes of some keys change places, so that 16 lanes that write 8
// bytes of 16 keys hit different places mod 128, and 32 that read 64 bytes of four keys mod 256.
struct DerivativeTile {
  static constexpr int key_bytes = 2 * kRows, pitch = 4 * key_bytes + 8, bytes = kKeys / 4 * pitch;

  // Byte `byte` of key `key` of four.
  static FLYDSL_DEVICE u32 place(u32 key, u32 byte) {
    const u32 flipped = kRowBlocks == 1 ? key / 2 * 32 : key / 2 * 64 + key % 2 * 32;
    return key * key_bytes + (byte ^ flipped);
  }
  // Rows 16 piece + 4 (l / 32) + 0..3 of key 32 block + l % 32 of the wave.
  static FLYDSL_DEVICE u32 write_lane(u32 wave, u32 lane, u32 piece) {
    return (wave * (kKeysOfWave / 4) + lane % 32 / 4) * pitch +
           place(lane % 4, piece * 32 + lane / 32 * 8);
  }
  // Rows 8 later.
  static constexpr int write_immediate(int block, int second) {
    return block * (32 / 4) * pitch + 16 * second;
  }
  // Keys 16 n + 8 half + 4 (l / 32) + 0..3, rows 32 block ..
  static FLYDSL_DEVICE u32 column_lane(u32 lane, u32 block) {
    return lane / 32 * pitch + place(lane % 16 / 4, block * 64 + column_byte(lane));
  }
  static constexpr int column_immediate(int n, int half) { return (4 * n + 2 * half) * pitch; }
};

// -lse / scale and -delta of the rows. The accumulators of a product are rows 8 n + 4 (l / 32) + 0..3, n < 4; a lane takes row l % 4
// of them from LDS, the others from its neighbours.
struct RowValues {
  static constexpr int bytes = 2 * 4 * kRows;
  static constexpr int delta_byte = 4 * kRows;
  static FLYDSL_DEVICE u32 lane_byte(u32 lane) { return lane / 32 * 16 + lane % 4 * 4; }
  static constexpr int immediate(bool delta, int block, int n) {
    return (delta ? delta_byte : 0) + 128 * block + 32 * n;
  }
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
