// O^T += V^T P^T of one tile, and the store of finished rows. A lane owns query column l % 32; its
// element i of block b is head-dim element 32 b + 8 (i / 4) + 4 (l / 32) + i % 4.
#pragma once

#include "attention_forward/arguments.hip.h"
#include "common/lanes.hip.h"
#include "common/lds.hip.h"
#include "common/memory.hip.h"
#include "common/mfma.hip.h"

namespace flydsl::kernels {

// The A operands of O^T = V^T P^T for 16 keys: `values`(step, block) is that of keys 16 step ..,
// head-dim elements 32 block + l % 32.
template <class Values, int blocks>
FLYDSL_DEVICE void read_values(const Values &values, int step, u32x4 (&v)[blocks]) {
#pragma unroll
  for (int block = 0; block < blocks; ++block) v[block] = values(step, block);
}

// `v` holds the operands of the first 16 keys.
template <class Element, class Values, int blocks>
FLYDSL_DEVICE void accumulate_tile(const Values &values, u32x4 (&v)[blocks], const u32x4 (&p)[4],
                                   f32x16 (&o)[blocks]) {
#pragma unroll
  for (int step = 0; step < 4; ++step) {
    if (step != 0) read_values(values, step, v);
#pragma unroll
    for (int block = 0; block < blocks; ++block)
      o[block] = mfma_32x32x16<Element>(v[block], p[step], o[block]);
  }
}

// The same from a layout with one address a lane.
template <class Layout>
struct LaneValues {
  lds_ptr<const char> v_lane;
  FLYDSL_DEVICE u32x4 operator()(int step, int block) const {
    const u32x2 low = read_transposed_b64(v_lane + Layout::v_immediate(step, 0, block));
    const u32x2 high = read_transposed_b64(v_lane + Layout::v_immediate(step, 1, block));
    return u32x4{low[0], low[1], high[0], high[1]};
  }
};
template <class Layout>
FLYDSL_DEVICE void read_values(lds_ptr<const char> v_lane, int step,
                               u32x4 (&v)[Layout::value_blocks]) {
  read_values(LaneValues<Layout>{v_lane}, step, v);
}
template <class Element, class Layout>
FLYDSL_DEVICE void accumulate_tile(lds_ptr<const char> v_lane, u32x4 (&v)[Layout::value_blocks],
                                   const u32x4 (&p)[4], f32x16 (&o)[Layout::value_blocks]) {
  accumulate_tile<Element>(LaneValues<Layout>{v_lane}, v, p, o);
}

// factor * o of this lane's row in the element type, as 16-byte pieces: lanes l and l + 32 hold
// alternate quadruples of the row and exchange them, so that piece n is elements 16 n + 8 (l / 32) +
// 0..7. All lanes must be active.
template <class Element, int blocks>
FLYDSL_DEVICE void pieces_of_row(float factor, const f32x16 (&o)[blocks],
                                 u32x4 (&pieces)[2 * blocks]) {
#pragma unroll
  for (int piece = 0; piece < 2 * blocks; ++piece) {
    const f32x16 &block = o[piece / 2];
    const int i = piece % 2 * 8;
    const auto pair = [&](int j) {
      return round_pair<Element>(block[i + j] * factor, block[i + j + 1] * factor);
    };
    const u32x2 first = swap_halves(pair(0), pair(4));
    const u32x2 second = swap_halves(pair(2), pair(6));
    pieces[piece] = u32x4{first[0], second[0], first[1], second[1]};
  }
}

// Stores the row; `write` says whether the lane does.
template <class Element, int blocks>
FLYDSL_DEVICE void store_row(global_ptr<char> row, u32 lane, bool write, float factor,
                             const f32x16 (&o)[blocks]) {
  u32x4 pieces[2 * blocks];
  pieces_of_row<Element>(factor, o, pieces);
  if (!write) return;
#pragma unroll
  for (int piece = 0; piece < 2 * blocks; ++piece)
    store_16_bytes(row + 32 * piece + 16 * (lane / 32), pieces[piece]);
}

// The same where the row may end among the last block's elements, after a multiple of 8.
template <class Element, int blocks>
FLYDSL_DEVICE void store_class_row(global_ptr<char> row, u32 lane, bool write, float factor,
                                   const f32x16 (&o)[blocks]) {
  u32x4 pieces[2 * blocks];
  pieces_of_row<Element>(factor, o, pieces);
  if (!write) return;
  const i32 row_bytes = 2 * fresh_arguments()->head_dim_v;
#pragma unroll
  for (int piece = 0; piece < 2 * blocks; ++piece) {
    const i32 at = 32 * piece + static_cast<i32>(16 * (lane / 32));
    if (piece < 2 * blocks - 2 || at < row_bytes) store_16_bytes(row + at, pieces[piece]);
  }
}

}  // namespace flydsl::kernels
