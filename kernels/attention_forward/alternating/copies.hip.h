// Copies of K and V tiles to LDS by a work-group of `waves` waves, a line (tile_layout.hip.h) at a time. Complete
// tiles take an address in scalar registers and 32-bit offsets of the lanes, so that the vector unit
// computes none; where the end of the keys lies in a tile the last row is repeated.
#pragma once

#include "attention_forward/problem.hip.h"
#include "attention_forward/tile_layout.hip.h"
#include "common/lds.hip.h"

namespace flydsl::kernels::alternating {

// The same value, for a scalar register: what is computed from it is not kept from before this point.
template <class Scalar>
FLYDSL_DEVICE Scalar computed_here(Scalar value) {
  asm volatile("" : "+s"(value));
  return value;
}

// The rows of one tensor that a wave copies.
template <int head_dim, int waves, int pitch>
struct TileCopies {
  using Layout = TileLayout<head_dim>;
  static constexpr int lines = Layout::lines / waves;  // of the wave

  global_ptr<const char> rows;  // of the head
  i64 row_bytes;
  global_ptr<const char> tile;  // complete, the next one that copy() takes
  u32 lane_row, lane_offset;    // in a tile, of the wave's first line
  u32 first_byte;               // of the wave's first line in a buffer

  FLYDSL_DEVICE TileCopies(global_ptr<const char> rows, i64 row_bytes, u32 wave, u32 lane)
      : rows(rows), row_bytes(row_bytes) {
    lane_row = wave * lines + lane / Layout::lanes_of_row * Layout::lines;
    lane_offset = lane_row * static_cast<u32>(row_bytes) + lane % Layout::lanes_of_row * 16;
    first_byte = wave * lines * pitch;
  }
  // Whether offsets in a tile fit 32 bits.
  FLYDSL_DEVICE bool near() const {
    return row_bytes >= 0 && row_bytes < (i64{1} << 32) / kKeysOfTile;
  }
  FLYDSL_DEVICE void begin_at(i32 number) { tile = rows + number * (kKeysOfTile * row_bytes); }
  // Without `more` it is copied again.
  FLYDSL_DEVICE void next_tile(bool more) {
    tile += more ? kKeysOfTile * row_bytes : 0;
    asm volatile("" : "+s"(tile));
  }

  FLYDSL_DEVICE void copy(int line, lds_ptr<char> to) {
    // clang 22 takes the scalar address only when it sees the 32 bits of the offset beside the copy.
    asm volatile("" : "+v"(lane_offset));
    copy_b128(to + computed_here(first_byte) + line * pitch,
              computed_here(tile + line * row_bytes) + lane_offset);
  }
  FLYDSL_DEVICE void copy_all(i32 number, lds_ptr<char> to, u32 lane, i32 seq_k) const {
#pragma unroll
    for (int line = 0; line < lines; ++line) {
      const i32 row = smaller(number * kKeysOfTile + static_cast<i32>(lane_row) + line, seq_k - 1);
      copy_b128(to + computed_here(first_byte) + line * pitch,
                rows + row * row_bytes + lane % Layout::lanes_of_row * 16);
    }
  }
};

}  // namespace flydsl::kernels::alternating
