// Bringing tiles of the others to LDS by copies that pass no register, one tile ahead: begin(next tile) before computing on the
// current one, landed() before the barrier that publishes it. Work-groups of 4 waves, each of which carries one line of
// every block.
//
// Rows must be 16-byte aligned, head dims those of the class or less by 8, 16 or 24: columns past them, of which only
// the last block has some, repeat the last 8, which meet zeros or make gradients that are not stored. Rows past the end
// repeat the last one: their pairs are masked, and memory past the tensors is never read.
#pragma once

#include "attention_backward/two_way_tile.hip.h"
#include "attention_backward/work.hip.h"

namespace flydsl::kernels {

// One operand of the tiles of one head. `few_registers`: what a lane can compute again is not kept.
template <int blocks, bool few_registers>
struct TileSource {
  global_ptr<const char> next;  // the next tile's first row, if it is the one after the last
  i64 row_bytes;
  i32 used_bytes;
  u64 kept_offset;  // of this lane's part of the first block
  i32 kept_back;    // of this lane in the last block: from a column past the head dim to a real one

  FLYDSL_DEVICE TileSource(i64 stride, i32 head_dim, u32 wave)
      : next(nullptr), row_bytes(2 * stride), used_bytes(2 * head_dim) {
    const TilePart part = part_of_lane(wave);
    kept_offset = static_cast<u64>(part.row * row_bytes + part.byte);
    kept_back = back_of(part);
  }

  // `rows` of the tile exist, 64 or fewer.
  FLYDSL_DEVICE void copy(u32 wave, i32 rows, lds_ptr<char> to) {
    u64 offset = kept_offset;
    i32 back = kept_back;
    if (few_registers || FLYDSL_UNLIKELY(rows < kRowsOfTile)) {
      const TilePart part = part_of_lane(wave);
      offset = static_cast<u64>(smaller(part.row, rows - 1) * row_bytes + part.byte);
      back = back_of(part);
    }
    copy_blocks<0>(next + offset, back,
                   to + uniform_computed_here(wave * TwoWayTile<32>::line_bytes));
    next += kRowsOfTile * row_bytes;
  }

 private:
  static FLYDSL_DEVICE TilePart part_of_lane(u32 wave) {
    return TwoWayTile<32>::part(wave, lane_number_here());
  }
  FLYDSL_DEVICE i32 back_of(TilePart part) const {
    return smaller(0, used_bytes - 16 - 64 * (blocks - 1) - part.byte);
  }
  template <int block>
  static FLYDSL_DEVICE void copy_blocks(global_ptr<const char> from, i32 back, lds_ptr<char> to) {
    // The instruction's offset counts on both sides.
    constexpr int apart = TwoWayTile<32>::block_bytes - 64;
    if constexpr (block == blocks - 1) {
      copy_b128<64 * block>(to + apart * block, from + back);
    } else {
      copy_b128<64 * block>(to + apart * block, from);
      copy_blocks<block + 1>(from, back, to);
    }
  }
};

template <Pass pass, int head_dim_qk, int head_dim_v, bool few_registers>
struct StagerByCopies {
  const Work<pass> &work;
  u32 wave;
  TileSource<head_dim_qk / 32, few_registers> source_1;
  TileSource<head_dim_v / 32, few_registers> source_2;
  global_ptr<const char> next_of_rows;  // lse or delta

  FLYDSL_DEVICE StagerByCopies(const Work<pass> &work, u32 wave)
      : work(work),
        wave(wave),
        source_1(pass == Pass::keys ? fresh_arguments()->q_stride_s : fresh_arguments()->k_stride_s,
                 fresh_arguments()->head_dim_qk, wave),
        source_2(
            pass == Pass::keys ? fresh_arguments()->dout_stride_s : fresh_arguments()->v_stride_s,
            fresh_arguments()->head_dim_v, wave),
        next_of_rows(nullptr) {}

  // The next tile is `tile` of the work's head.
  FLYDSL_DEVICE void go_to(i32 tile) {
    source_1.next = work.other_row_1(tile * kRowsOfTile);
    source_2.next = work.other_row_2(tile * kRowsOfTile);
    if constexpr (pass == Pass::keys)
      next_of_rows =
          (global_ptr<const char>)((wave == 0 ? work.lse_of_rows() : work.delta_of_rows()) +
                                   tile * kRowsOfTile);
  }
  FLYDSL_DEVICE void begin(i32 tile, TilePlaces to) {
    const i32 rows = smaller(kRowsOfTile, work.other_count() - tile * kRowsOfTile);
    source_1.copy(wave, rows, to.tile_1);
    source_2.copy(wave, rows, to.tile_2);
    if constexpr (pass == Pass::keys) {
      if (wave < 2) copy_b32(wave == 0 ? to.lse : to.delta, next_of_rows + 4 * lane_number_here());
      next_of_rows += 4 * kRowsOfTile;
    }
  }
  FLYDSL_DEVICE void landed() const { wait_for_copies(); }
};

}  // namespace flydsl::kernels
