// Bringing a tile of the others, 64 rows of q and dout or of k and v, from global memory to LDS through registers, rows of any
// length and alignment, padded with zeros; with queries also their lse and delta. Work-groups of 4 waves.
//
// Rows past the end repeat the last one: their pairs are masked, and memory past the tensors is never read.
#pragma once

#include "attention_backward/two_way_tile.hip.h"
#include "attention_backward/work.hip.h"
#include "attention_forward/general/partial_rows.hip.h"

namespace flydsl::kernels {

// begin(tile), then write() between barriers.
template <Pass pass, int head_dim_qk, int head_dim_v>
struct StagerThroughRegisters {
  const Work<pass> &work;
  u32 item;
  u32x4 held_1[head_dim_qk / 32], held_2[head_dim_v / 32];
  float held_of_row;

  FLYDSL_DEVICE StagerThroughRegisters(const Work<pass> &work, u32 item) : work(work), item(item) {}

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
