// Bringing tiles of keys and values from global memory to LDS, one tile ahead.
//
// Use, for each tile: begin(next tile) before computing on the current one, finish() after it,
// landed() before the barrier that publishes the tile. Each wave carries a quarter of the lines.
// Rows past the end repeat the last row: their scores are masked, and memory past the tensor is
// never read.
#pragma once

#include "attention_forward/problem.hip.h"
#include "attention_forward/tile_layout.hip.h"
#include "common/lds.hip.h"
#include "common/memory.hip.h"

namespace flydsl::kernels {

enum class Staging { direct, staged };

// The rows of one tensor that this wave carries.
template <int head_dim>
struct RowSource {
  using Layout = TileLayout<head_dim>;
  static constexpr int lines_of_wave = Layout::lines / kWaves;

  global_ptr<const char> base;  // this lane's part of row 0
  i64 row_bytes;
  i32 lane_row;     // row in the tile of this wave's first line
  u64 lane_offset;  // the same in bytes
  u64 tile_offset;  // of the next tile, if it is full; the same in all lanes

  FLYDSL_DEVICE RowSource(global_ptr<const char> tensor, i64 row_bytes, u32 wave, u32 lane,
                          i32 first_tile)
      : base(tensor + lane % Layout::lanes_of_row * 16), row_bytes(row_bytes) {
    lane_row = wave * lines_of_wave + lane / Layout::lanes_of_row * Layout::lines;
    lane_offset = static_cast<u64>(lane_row * row_bytes);
    tile_offset = static_cast<u64>(first_tile) * (kKeysOfTile * static_cast<u64>(row_bytes));
  }

  // Where this lane's part of a line of tile `tile` is. `full`: all 64 rows exist; tiles come in
  // order.
  template <bool full>
  FLYDSL_DEVICE global_ptr<const char> address(i32 tile, int line, i32 seq_k) const {
    if constexpr (full) return base + lane_offset + (tile_offset + line * row_bytes);
    return base + smaller(tile * kKeysOfTile + lane_row + line, seq_k - 1) * row_bytes;
  }
  FLYDSL_DEVICE void next_tile() { tile_offset += kKeysOfTile * row_bytes; }
};

// Both tensors.
template <int head_dim>
struct TileSource {
  using Layout = TileLayout<head_dim>;
  static constexpr int lines_of_wave = RowSource<head_dim>::lines_of_wave;
  RowSource<head_dim> k, v;
  u32 first_line;
  i32 seq_k;

  template <Mask mask>
  FLYDSL_DEVICE TileSource(const Problem<mask> &work, u32 wave, u32 lane)
      : k(work.k_row(0), 2 * fresh_arguments()->k_stride_s, wave, lane, work.first_tile()),
        v(work.v_row(0), 2 * fresh_arguments()->v_stride_s, wave, lane, work.first_tile()),
        first_line(wave * lines_of_wave),
        seq_k(work.seq_k) {}

  // Calls use_k(line, address) and use_v(line, address) for the wave's lines of the tile.
  template <class UseK, class UseV>
  FLYDSL_DEVICE void each_line(i32 tile, UseK use_k, UseV use_v) {
    if (FLYDSL_LIKELY((tile + 1) * kKeysOfTile <= seq_k)) {
#pragma unroll
      for (int line = 0; line < lines_of_wave; ++line)
        use_k(line, k.template address<true>(tile, line, seq_k));
#pragma unroll
      for (int line = 0; line < lines_of_wave; ++line)
        use_v(line, v.template address<true>(tile, line, seq_k));
    } else {
#pragma unroll
      for (int line = 0; line < lines_of_wave; ++line)
        use_k(line, k.template address<false>(tile, line, seq_k));
#pragma unroll
      for (int line = 0; line < lines_of_wave; ++line)
        use_v(line, v.template address<false>(tile, line, seq_k));
    }
    k.next_tile();
    v.next_tile();
  }

  FLYDSL_DEVICE u32 k_line(int line) const {
    return (first_line + line) * Layout::k_pitch;
  }
  FLYDSL_DEVICE u32 v_line(int line) const {
    return (first_line + line) * Layout::v_pitch;
  }
};

template <int head_dim, Staging staging>
struct Stager;

// Copies to LDS that pass no register; needs 16-byte aligned rows.
template <int head_dim>
struct Stager<head_dim, Staging::direct> {
  TileSource<head_dim> source;

  template <Mask mask>
  FLYDSL_DEVICE Stager(const Problem<mask> &work, u32 wave, u32 lane) : source(work, wave, lane) {}

  FLYDSL_DEVICE void begin(i32 tile, lds_ptr<char> k_to, lds_ptr<char> v_to) {
    source.each_line(
        tile,
        [&](int line, global_ptr<const char> from) { copy_b128(k_to + source.k_line(line), from); },
        [&](int line, global_ptr<const char> from) {
          copy_b128(v_to + source.v_line(line), from);
        });
  }
  FLYDSL_DEVICE void finish(lds_ptr<char>, lds_ptr<char>) {}
  FLYDSL_DEVICE void landed() { wait_for_copies(); }
};

// Through registers, for rows of any alignment.
template <int head_dim>
struct Stager<head_dim, Staging::staged> {
  TileSource<head_dim> source;
  u32 lane_byte;  // of a line
  u32x4 k_held[TileSource<head_dim>::lines_of_wave], v_held[TileSource<head_dim>::lines_of_wave];

  template <Mask mask>
  FLYDSL_DEVICE Stager(const Problem<mask> &work, u32 wave, u32 lane)
      : source(work, wave, lane), lane_byte(lane * 16) {}

  FLYDSL_DEVICE void begin(i32 tile, lds_ptr<char>, lds_ptr<char>) {
    source.each_line(
        tile, [&](int line, global_ptr<const char> from) { k_held[line] = load_16_bytes(from); },
        [&](int line, global_ptr<const char> from) { v_held[line] = load_16_bytes(from); });
  }
  FLYDSL_DEVICE void finish(lds_ptr<char> k_to, lds_ptr<char> v_to) {
#pragma unroll
    for (int line = 0; line < source.lines_of_wave; ++line) {
      write_b128(k_to + source.k_line(line) + lane_byte, k_held[line]);
      write_b128(v_to + source.v_line(line) + lane_byte, v_held[line]);
    }
  }
  FLYDSL_DEVICE void landed() {}
};

}  // namespace flydsl::kernels
