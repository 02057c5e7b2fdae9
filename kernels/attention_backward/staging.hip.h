// Bringing a tile of the others, 64 rows of q and dout or of k and v, from global memory to LDS; with queries also their
// lse and delta. Work-groups of 4 waves.
//
// Rows past the end repeat the last one: their pairs are masked, and memory past the tensors is never read.
#pragma once

#include "attention_backward/two_way_tile.hip.h"
#include "attention_backward/work.hip.h"
#include "attention_forward/general/partial_rows.hip.h"

namespace flydsl::kernels {

enum class Staging { direct, staged };

// A tile's places in LDS: operands of the score products, lse and delta of 64 rows each.
struct TilePlaces {
  lds_ptr<char> tile_1, tile_2, lse, delta;
};

template <Pass pass, int head_dim_qk, int head_dim_v, Staging staging>
struct Stager;

// Copies that pass no register, one tile ahead: begin(next tile) before computing on the current one, landed() before
// the barrier that publishes it. Rows must be 16-byte aligned, head dims those of the class or less by 8, 16 or 24:
// columns past them, of which only the last block has some, repeat the last 8, which meet zeros or make gradients that
// are not stored.
template <Pass pass, int head_dim_qk, int head_dim_v>
struct Stager<pass, head_dim_qk, head_dim_v, Staging::direct> {
  const Work<pass> &work;
  u32 wave;

  FLYDSL_DEVICE Stager(const Work<pass> &work, u32 item)
      : work(work), wave(uniform(item / kWaveLanes)) {}

  FLYDSL_DEVICE void begin(i32 tile, TilePlaces to) const {
    const Arguments args = fresh_arguments();
    const i64 stride_1 = pass == Pass::keys ? args->q_stride_s : args->k_stride_s;
    const i64 stride_2 = pass == Pass::keys ? args->dout_stride_s : args->v_stride_s;
    copy_tile<head_dim_qk / 32>(work.other_row_1(tile * kRowsOfTile), 2 * stride_1,
                                2 * args->head_dim_qk, tile, to.tile_1);
    copy_tile<head_dim_v / 32>(work.other_row_2(tile * kRowsOfTile), 2 * stride_2,
                               2 * args->head_dim_v, tile, to.tile_2);
    if constexpr (pass == Pass::keys) {
      const i64 at = tile * kRowsOfTile + static_cast<i64>(lane_number_here());
      if (wave == 0) copy_b32(to.lse, (global_ptr<const char>)(work.lse_of_rows() + at));
      if (wave == 1) copy_b32(to.delta, (global_ptr<const char>)(work.delta_of_rows() + at));
    }
  }
  FLYDSL_DEVICE void landed() const { wait_for_copies(); }

 private:
  // `first`: the tile's first row.
  template <int blocks>
  FLYDSL_DEVICE void copy_tile(global_ptr<const char> first, i64 row_bytes, i32 used_bytes,
                               i32 tile, lds_ptr<char> to) const {
    const TilePart part = TwoWayTile<32>::part(wave, lane_number_here());
    const i32 row = smaller(part.row, work.other_count() - 1 - tile * kRowsOfTile);
    const i32 back = smaller(0, used_bytes - 16 - 64 * (blocks - 1) - part.byte);
    copy_blocks<0, blocks>(first + row * row_bytes + part.byte, back,
                           to + uniform_computed_here(wave * TwoWayTile<32>::line_bytes));
  }
  template <int block, int blocks>
  FLYDSL_DEVICE void copy_blocks(global_ptr<const char> from, i32 back, lds_ptr<char> to) const {
    // The instruction's offset counts on both sides.
    constexpr int apart = TwoWayTile<32>::block_bytes - 64;
    if constexpr (block == blocks - 1) {
      copy_b128<64 * block>(to + apart * block, from + back);
    } else {
      copy_b128<64 * block>(to + apart * block, from);
      copy_blocks<block + 1, blocks>(from, back, to);
    }
  }
};

// Through registers, rows of any length and alignment, padded with zeros: begin(tile), then write() between barriers.
template <Pass pass, int head_dim_qk, int head_dim_v>
struct Stager<pass, head_dim_qk, head_dim_v, Staging::staged> {
  const Work<pass> &work;
  u32 item;
  u32x4 held_1[head_dim_qk / 32], held_2[head_dim_v / 32];
  float held_of_row;

  FLYDSL_DEVICE Stager(const Work<pass> &work, u32 item) : work(work), item(item) {}

  FLYDSL_DEVICE void begin(i32 tile) {
    const Arguments args = fresh_arguments();
    const i32 other = work.real_other(tile * kRowsOfTile + static_cast<i32>(item / 4));
    fetch(work.other_row_1(other), args->head_dim_qk, held_1);
    fetch(work.other_row_2(other), args->head_dim_v, held_2);
    if constexpr (pass == Pass::keys) {
      const i64 at = tile * kRowsOfTile + static_cast<i64>(item % kWaveLanes);
      if (item < 2 * kWaveLanes)
        held_of_row = (item < kWaveLanes ? work.lse_of_rows() : work.delta_of_rows())[at];
    }
  }
  FLYDSL_DEVICE void write(TilePlaces to) {
    const u32 at = TwoWayTile<32>::byte_of(item / 4, item % 4);
    write_blocks(held_1, to.tile_1 + at);
    write_blocks(held_2, to.tile_2 + at);
    if constexpr (pass == Pass::keys) {
      if (item < 2 * kWaveLanes)
        *(lds_ptr<float>)((item < kWaveLanes ? to.lse : to.delta) + 4 * (item % kWaveLanes)) =
            held_of_row;
    }
  }

 private:
  template <int blocks>
  FLYDSL_DEVICE void fetch(global_ptr<const char> from, i32 head_dim, u32x4 (&held)[blocks]) const {
    const i32 first = static_cast<i32>(computed_here(8 * (item % 4)));
#pragma unroll
    for (int i = 0; i < blocks; ++i) held[i] = load_elements(from, 32 * i + first, head_dim);
  }
  template <int blocks>
  FLYDSL_DEVICE void write_blocks(const u32x4 (&held)[blocks], lds_ptr<char> to) const {
#pragma unroll
    for (int i = 0; i < blocks; ++i) write_b128(to + TwoWayTile<32>::block_bytes * i, held[i]);
  }
};

}  // namespace flydsl::kernels
