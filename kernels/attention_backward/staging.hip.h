// Bringing a tile of the others, 64 rows (or 32) of q and dout or of k and v, from global memory to LDS through registers, rows of any
// length and alignment, padded with zeros; with queries also their lse and delta. Work-groups of 4 waves.
//
// Rows past the end repeat the last one: their pairs are masked, and memory past the tensors is never read.
#pragma once

#include "attention_backward/two_way_tile.hip.h"
#include "attention_backward/work.hip.h"
#include "attention_forward/general/partial_rows.hip.h"

namespace flydsl::kernels {

// begin(tile), then write() between barriers, or write_1() and write_2(), as often as wanted.
template <Pass pass, int head_dim_qk, int head_dim_v, int rows = kRowsOfTile>
struct StagerThroughRegisters {
  using Tile = TwoWayTile<32, rows>;
  // Of a row, 64 bytes of it at once, or 128.
  static constexpr int kItemsOfRow = 256 / rows, kBlocksAtOnce = kItemsOfRow / 4;
  static constexpr int held_of(int head_dim) {
    return (head_dim / 32 + kBlocksAtOnce - 1) / kBlocksAtOnce;
  }
  const Work<pass> &work;
  u32 item;
  u32x4 held_1[held_of(head_dim_qk)], held_2[held_of(head_dim_v)];
  float held_of_row;

  FLYDSL_DEVICE StagerThroughRegisters(const Work<pass> &work, u32 item) : work(work), item(item) {}

  FLYDSL_DEVICE void begin(i32 tile) {
    const Arguments args = fresh_arguments();
    const i32 other = work.real_other(tile * rows + static_cast<i32>(item / kItemsOfRow));
    fetch(work.other_row_1(other), args->head_dim_qk, held_1);
    fetch(work.other_row_2(other), args->head_dim_v, held_2);
    if constexpr (pass == Pass::keys) {
      const i64 at = tile * rows + static_cast<i64>(item % rows);
      if (item < 2 * rows)
        held_of_row = (item < rows ? work.lse_of_rows() : work.delta_of_rows())[at];
    }
  }
  FLYDSL_DEVICE void write(TilePlaces to) const {
    write_1(to);
    write_2(to);
  }
  FLYDSL_DEVICE void write_1(TilePlaces to) const {
    write_blocks<head_dim_qk>(held_1, to.tile_1);
    if constexpr (pass == Pass::keys) {
      if (item < 2 * rows)
        *(lds_ptr<float>)((item < rows ? to.lse : to.delta) + 4 * (item % rows)) = held_of_row;
    }
  }
  FLYDSL_DEVICE void write_2(TilePlaces to) const { write_blocks<head_dim_v>(held_2, to.tile_2); }

 private:
  template <int count>
  FLYDSL_DEVICE void fetch(global_ptr<const char> from, i32 head_dim, u32x4 (&held)[count]) const {
    const i32 first = static_cast<i32>(computed_here(8 * (item % kItemsOfRow)));
#pragma unroll
    for (int i = 0; i < count; ++i)
      held[i] = load_elements(from, 32 * kBlocksAtOnce * i + first, head_dim);
  }
  template <int head_dim, int count>
  FLYDSL_DEVICE void write_blocks(const u32x4 (&held)[count], lds_ptr<char> to) const {
    const u32 block = item % kItemsOfRow / 4;
    to += block * Tile::block_bytes + Tile::byte_of(item / kItemsOfRow, item % 4);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if (kBlocksAtOnce * (i + 1) <= head_dim / 32 || kBlocksAtOnce * i + block < head_dim / 32)
        write_b128(to + kBlocksAtOnce * Tile::block_bytes * i, held[i]);
    }
  }
};

}  // namespace flydsl::kernels
