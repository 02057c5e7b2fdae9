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

// The same value, of which the compiler does not know it: what is computed from it is computed here, and
// not kept in registers from the start of the kernel.
FLYDSL_DEVICE u32 fresh(u32 value) {
  asm volatile("" : "+s"(value));
  return value;
}
FLYDSL_DEVICE u32 fresh_lane(u32 lane) {
  asm volatile("" : "+v"(lane));
  return lane;
}

// There are more vector registers left than scalar ones.
FLYDSL_DEVICE i64 in_lanes(i64 value) {
  asm volatile("" : "+v"(value));
  return value;
}

// The lines of one tile after the other that this wave copies. Rows are row_bytes apart in memory.
template <int head_dim, int pitch>
struct LineSource {
  using Layout = TileLayout<head_dim>;
  static constexpr int lines = Layout::lines / kWaves;  // of a tile
  // This lane's part of the next tile's first line, or of the next line, and with clamp() the rows that
  // exist after it.
  global_ptr<const char> next;
  i32 rows_after = 0;

  // Row of the tile that this lane copies of the first line.
  static FLYDSL_DEVICE i32 lane_row(u32 wave, u32 lane) {
    return static_cast<i32>(wave * lines + lane / Layout::lanes_of_row * Layout::lines);
  }
  // Where this wave's first line goes.
  static FLYDSL_DEVICE u32 place(u32 wave) { return fresh(wave * (lines * pitch)); }

  // `tensor` is row 0.
  FLYDSL_DEVICE LineSource(global_ptr<const char> tensor, i32 tile, i64 row_bytes, u32 wave,
                           u32 lane) {
    const u32 l = fresh_lane(lane);
    next = tensor + l % Layout::lanes_of_row * 16 +
           (tile * kKeysOfTile + lane_row(wave, l)) * row_bytes;
  }

  // Tiles of which all rows exist; `skipped` is the way from a tile's last line to the next tile's first.
  static FLYDSL_DEVICE i64 skipped(i64 row_bytes) { return (kKeysOfTile - lines + 1) * row_bytes; }
  FLYDSL_DEVICE void copy_next(int line, i64 row_bytes, i64 skipped, lds_ptr<char> to) {
    copy_b128(to + line * pitch, next);
    next += line + 1 < lines ? row_bytes : skipped;
    asm volatile("" : "+v"(next));
  }

  // The same for tile `tile` of `end` rows that exist: rows past the end repeat the last one.
  FLYDSL_DEVICE LineSource clamped(i32 tile, i32 end, i64 row_bytes, u32 wave, u32 lane) const {
    LineSource result = *this;
    result.rows_after = end - 1 - tile * kKeysOfTile - lane_row(wave, fresh_lane(lane));
    if (FLYDSL_UNLIKELY((tile + 1) * kKeysOfTile > end))
      result.next += smaller(result.rows_after, 0) * row_bytes;
    return result;
  }
  FLYDSL_DEVICE void copy_clamped(int line, i64 row_bytes, lds_ptr<char> to) {
    copy_b128(to + line * pitch, next);
    if (line + 1 < lines) next += rows_after > line ? row_bytes : 0;
    asm volatile("" : "+v"(next));
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

  FLYDSL_DEVICE KeySource(global_ptr<const char> tensor, i32 tile, i64 row_bytes, u32 wave,
                          u32 lane)
      : first(tensor, tile, row_bytes, wave, lane),
        second(tensor + 2 * 128, tile, row_bytes, wave, lane) {}

  // What LineSource says of both.
  struct Places {
    u32 first, second;
    FLYDSL_DEVICE explicit Places(u32 wave)
        : first(decltype(KeySource::first)::place(wave)),
          second(Layout::two ? Layout::First::k_bytes + decltype(KeySource::second)::place(wave)
                             : 0) {}
  };
  struct Skipped {
    i64 first, second;
    FLYDSL_DEVICE explicit Skipped(i64 row_bytes)
        : first(in_lanes(decltype(KeySource::first)::skipped(row_bytes))),
          second(Layout::two ? in_lanes(decltype(KeySource::second)::skipped(row_bytes)) : 0) {}
  };
  FLYDSL_DEVICE void copy_next(int line, i64 row_bytes, const Skipped &skipped, lds_ptr<char> to,
                               const Places &places) {
    if (line < first_lines)
      first.copy_next(line, row_bytes, skipped.first, to + places.first);
    else
      second.copy_next(line - first_lines, row_bytes, skipped.second, to + places.second);
  }
  FLYDSL_DEVICE void next_tile(i64 row_bytes) {
    first.next += kKeysOfTile * row_bytes;
    if constexpr (Layout::two) second.next += kKeysOfTile * row_bytes;
  }
  FLYDSL_DEVICE KeySource clamped(i32 tile, i32 end, i64 row_bytes, u32 wave, u32 lane) const {
    KeySource result = *this;
    result.first = first.clamped(tile, end, row_bytes, wave, lane);
    if constexpr (Layout::two) result.second = second.clamped(tile, end, row_bytes, wave, lane);
    return result;
  }
  FLYDSL_DEVICE void copy_clamped(int line, i64 row_bytes, lds_ptr<char> to, const Places &places) {
    if (line < first_lines)
      first.copy_clamped(line, row_bytes, to + places.first);
    else
      second.copy_clamped(line - first_lines, row_bytes, to + places.second);
  }
};

template <int head_dim>
using ValueSource = LineSource<head_dim, TileLayout<head_dim>::v_pitch>;

}  // namespace flydsl::kernels::pipelined
