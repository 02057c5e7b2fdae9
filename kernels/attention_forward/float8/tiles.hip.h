// Tiles of the e4m3 instances: K lies in LDS as bytes, V widened to 16 bits (tile_layout.hip.h).
#pragma once

#include "attention_forward/problem.hip.h"
#include "attention_forward/tile_layout.hip.h"

namespace flydsl::kernels::float8 {

// Lines as in TileLayout, which see also for the banks.
template <int head_dim>
struct KeyTile {
  static_assert(head_dim == 64 || head_dim == 128, "whole matrix instructions, 16 bytes a lane");
  static constexpr int rows_of_line = 1024 / head_dim;
  static constexpr int lines = kKeysOfTile / rows_of_line;
  static constexpr int pitch = 1024 + 16;
  static constexpr int bytes = lines * pitch;
  static constexpr int lane_bytes = 16, lanes_of_row = head_dim / lane_bytes;

  // Byte of the A operand of S^T = K Q^T for keys 32 block + l % 32: of 64 elements from 64 step on, a lane has 16 at 16 (l / 32)
  // in registers 0 to 3, and those 32 further on, chunk 1, in registers 4 to 7 (CDNA4 ISA, 32x32x64 of 8 bits).
  static FLYDSL_DEVICE u32 lane_part(u32 lane) {
    const u32 row = lane % 32;
    return row % lines * pitch + row / lines * head_dim + lane / 32 * 16;
  }
  static constexpr int immediate(int block, int step, int chunk) {
    return 32 * block / lines * head_dim + 64 * step + 32 * chunk;
  }
};

// How values pass from memory, 8 bytes a lane, to TileLayout's lines, 16 bytes a lane.
template <int head_dim>
struct ValueTile : TileLayout<head_dim> {
  static constexpr int lane_bytes = 8;
};

// The rows of one tensor that a wave carries, as RowSource.
template <class Tile>
struct Rows {
  static constexpr int lines_of_wave = Tile::lines / kWaves;
  global_ptr<const char> tensor;  // row 0
  i64 row_bytes;
  u32 wave, lane;
  global_ptr<const char>
      next;  // this lane's part of its row in the wave's first line, of the tile that is fetched next, if it is complete

  FLYDSL_DEVICE Rows(global_ptr<const char> tensor, i64 row_bytes, u32 wave, u32 lane)
      : tensor(tensor), row_bytes(row_bytes), wave(wave), lane(lane) {}

  // Where this lane's part of a line of tile `tile` is; past the last key, in the last one's row.
  template <bool complete>
  FLYDSL_DEVICE global_ptr<const char> address(i32 tile, int line, i32 seq_k) const {
    if constexpr (complete) return next + line * row_bytes;
    return part(smaller(tile * kKeysOfTile + lane_row() + line, seq_k - 1));
  }
  // To the next tile, or not.
  FLYDSL_DEVICE void advance(bool exists) {
    next += exists ? kKeysOfTile * row_bytes : 0;
    asm volatile("" ::"v"(next));  // not later than here
  }
  FLYDSL_DEVICE void start_at(i32 tile) { next = part(i64{kKeysOfTile} * tile + lane_row()); }

 private:
  // Computed anew where they are needed: registers are scarce.
  FLYDSL_DEVICE i32 lane_row() const {
    return static_cast<i32>(wave * lines_of_wave +
                            computed_here(lane) / Tile::lanes_of_row * Tile::lines);
  }
  FLYDSL_DEVICE global_ptr<const char> part(i64 row) const {
    return tensor + row * row_bytes + computed_here(lane) % Tile::lanes_of_row * Tile::lane_bytes;
  }
};

}  // namespace flydsl::kernels::float8
