// Tiles of keys and values: where they lie in LDS, and what this wave copies of them.
//
// Rows of 192 elements do not fill lines (tile_layout.hip.h): such keys are kept as two tiles, one of their
// first 128 elements and one of the other 64.
#pragma once

#include "attention_forward/problem.hip.h"
#include "attention_forward/tile_layout.hip.h"
#include "common/lds.hip.h"

namespace flydsl::kernels::pipelined {

template <int head_dim>
struct KeyLayout {
  static_assert(head_dim == 128 || head_dim == 192);
  using First = TileLayout<128>;
  using Second = TileLayout<64>;
  static constexpr bool two = head_dim > 128;
  static constexpr int score_steps = head_dim / 16;
  static constexpr int bytes = First::k_bytes + (two ? Second::k_bytes : 0);

  static constexpr bool in_first(int step) { return step < First::score_steps; }
  // What TileLayout says, in the tile that holds `step`.
  static constexpr int immediate(int block, int step) {
    return in_first(step) ? First::k_immediate(block, step)
                          : First::k_bytes + Second::k_immediate(block, step - First::score_steps);
  }
};

// A lane's part of the addresses of fragments of keys, in each of the tiles.
template <int head_dim>
struct KeyLanes {
  using Layout = KeyLayout<head_dim>;
  lds_ptr<const char> first, second;

  FLYDSL_DEVICE KeyLanes(lds_ptr<const char> tile, u32 lane)
      : first(tile + Layout::First::k_lane(lane)),
        second(Layout::two ? tile + Layout::Second::k_lane(lane) : nullptr) {}
};

// A value of which the compiler does not know that it is the same in every step, so that it keeps
// nothing that is computed from it: there are not enough scalar registers.
FLYDSL_DEVICE u32 fresh(u32 value) {
  asm volatile("" : "+s"(value));
  return value;
}

// The lines of one tile after the other that this wave copies. Rows are row_bytes apart in memory.
template <int head_dim, int pitch>
struct LineSource {
  using Layout = TileLayout<head_dim>;
  static constexpr int lines = Layout::lines / kWaves;  // of a tile
  global_ptr<const char> row_0;                         // this lane's part of it
  global_ptr<const char> next;                          // this lane's part of the next line
  u32 wave;
  i32 lane_row;  // row in the tile that this lane copies of the first line

  FLYDSL_DEVICE LineSource(global_ptr<const char> tensor, u32 wave, u32 lane)
      : row_0(tensor + lane % Layout::lanes_of_row * 16),
        wave(wave),
        lane_row(static_cast<i32>(wave * lines + lane / Layout::lanes_of_row * Layout::lines)) {}

  FLYDSL_DEVICE lds_ptr<char> place(lds_ptr<char> tile, int line) const {
    return tile + (fresh(wave * (lines * pitch)) + line * pitch);
  }
  // Any tile; rows past the end repeat the last row.
  FLYDSL_DEVICE void copy(i32 tile, int line, i32 seq_k, i64 row_bytes, lds_ptr<char> to) const {
    const i32 row = tile * kKeysOfTile + lane_row + line;
    copy_b128(place(to, line), row_0 + (row < seq_k ? row : seq_k - 1) * row_bytes);
  }
  // Tiles of which all rows exist, in order from `tile`.
  FLYDSL_DEVICE void seek(i32 tile, i64 row_bytes) {
    next = row_0 + (tile * kKeysOfTile + lane_row) * row_bytes;
  }
  FLYDSL_DEVICE void copy_next(int line, i64 row_bytes, lds_ptr<char> to) {
    copy_b128(place(to, line), next);
    move(row_bytes);
  }
  FLYDSL_DEVICE void move(i64 bytes) {
    next += bytes;
    asm volatile("" : "+v"(next));
  }
  // After its last line: to the next tile, or back to the start of this one.
  FLYDSL_DEVICE void end_tile(bool go_on, i64 row_bytes) {
    move((go_on ? kKeysOfTile - lines : -lines) * row_bytes);
  }
};

// Both tiles of keys.
template <int head_dim>
struct KeySource {
  using Layout = KeyLayout<head_dim>;
  LineSource<128, Layout::First::k_pitch> first;
  LineSource<64, Layout::Second::k_pitch> second;
  static constexpr int first_lines = decltype(first)::lines;
  static constexpr int lines = first_lines + (Layout::two ? decltype(second)::lines : 0);

  FLYDSL_DEVICE KeySource(global_ptr<const char> tensor, u32 wave, u32 lane)
      : first(tensor, wave, lane), second(tensor + 2 * 128, wave, lane) {}

  FLYDSL_DEVICE void copy(i32 tile, int line, i32 seq_k, i64 row_bytes, lds_ptr<char> to) const {
    if (line < first_lines)
      first.copy(tile, line, seq_k, row_bytes, to);
    else
      second.copy(tile, line - first_lines, seq_k, row_bytes, to + Layout::First::k_bytes);
  }
  FLYDSL_DEVICE void seek(i32 tile, i64 row_bytes) {
    first.seek(tile, row_bytes);
    if constexpr (Layout::two) second.seek(tile, row_bytes);
  }
  FLYDSL_DEVICE void copy_next(int line, i64 row_bytes, lds_ptr<char> to) {
    if (line < first_lines)
      first.copy_next(line, row_bytes, to);
    else
      second.copy_next(line - first_lines, row_bytes, to + Layout::First::k_bytes);
  }
  FLYDSL_DEVICE void end_tile(bool go_on, i64 row_bytes) {
    first.end_tile(go_on, row_bytes);
    if constexpr (Layout::two) second.end_tile(go_on, row_bytes);
  }
};

template <int head_dim>
using ValueSource = LineSource<head_dim, TileLayout<head_dim>::v_pitch>;

}  // namespace flydsl::kernels::pipelined
