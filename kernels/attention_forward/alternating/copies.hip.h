// Copies of K and V tiles to LDS by a work-group of `waves` waves, a line (block_tile.hip.h) at a time. Complete
// tiles take an address in scalar registers and 32-bit offsets of the lanes, so that the vector unit
// computes none; where the end of the keys lies in a tile the last row is repeated.
#pragma once

#include "attention_forward/alternating/block_tile.hip.h"
#include "attention_forward/problem.hip.h"
#include "common/lds.hip.h"

namespace flydsl::kernels::alternating {

// The same value, for a scalar register: what is computed from it is not kept from before this point.
template <class Scalar>
FLYDSL_DEVICE Scalar computed_here(Scalar value) {
  asm volatile("" : "+s"(value));
  return value;
}

// The rows of one tensor that a wave copies: of each block lines `wave`, `wave` + `waves`, ...
template <class Layout, int waves>
struct TileCopies {
  static_assert(waves % 2 == 0 &&
                Layout::lines_of_block % waves == 0);  // places change by row / 4 % 4
  static constexpr int lines = Layout::blocks * Layout::lines_of_block / waves;  // of the wave
  static constexpr i32 keys = Layout::lines_of_block * Layout::line_rows;

  global_ptr<const char> rows;  // of the head
  i64 row_bytes;
  global_ptr<const char> tile;     // complete, the next one that copy() takes
  u32 lane_row, lane_byte_offset;  // in a tile, of the wave's first line
  u32 first_byte;                  // of the wave's first line in a buffer

  // `byte`: k_byte_of_lane or v_byte_of_lane.
  FLYDSL_DEVICE TileCopies(global_ptr<const char> rows, i64 row_bytes, u32 wave, u32 lane, u32 byte)
      : rows(rows), row_bytes(row_bytes) {
    lane_row = wave * Layout::line_rows + Layout::row_of_lane(lane);
    lane_byte_offset = lane_row * static_cast<u32>(row_bytes) + byte;
    first_byte = wave * Layout::line_bytes;
  }
  // Whether offsets in a tile fit 32 bits.
  FLYDSL_DEVICE bool near() const { return row_bytes >= 0 && row_bytes < (i64{1} << 32) / keys; }
  FLYDSL_DEVICE void begin_at(i32 number) { tile = rows + number * (keys * row_bytes); }
  // Without `more` it is copied again.
  FLYDSL_DEVICE void next_tile(bool more) {
    tile += more ? keys * row_bytes : 0;
    asm volatile("" : "+s"(tile));
  }

  static constexpr int rows_before(int line) {
    return line / Layout::blocks * waves * Layout::line_rows;
  }
  static constexpr int columns_before(int line) {  // in bytes
    return line % Layout::blocks * Layout::piece_bytes;
  }
  FLYDSL_DEVICE lds_ptr<char> place(int line, lds_ptr<char> to) const {
    return to + computed_here(first_byte) + line % Layout::blocks * Layout::block_bytes +
           line / Layout::blocks * waves * Layout::line_bytes;
  }
  FLYDSL_DEVICE void copy(int line, lds_ptr<char> to) {
    // clang 22 takes the scalar address only when it sees the 32 bits of the offset beside the copy.
    asm volatile("" : "+v"(lane_byte_offset));
    copy_b128(place(line, to),
              computed_here(tile + rows_before(line) * row_bytes + columns_before(line)) +
                  lane_byte_offset);
  }
  // `byte` as for the constructor.
  FLYDSL_DEVICE void copy_all(i32 number, lds_ptr<char> to, u32 byte, i32 seq_k) const {
#pragma unroll
    for (int line = 0; line < lines; ++line) {
      const i32 row =
          smaller(number * keys + static_cast<i32>(lane_row) + rows_before(line), seq_k - 1);
      copy_b128(place(line, to), rows + row * row_bytes + columns_before(line) + byte);
    }
  }
};

}  // namespace flydsl::kernels::alternating
