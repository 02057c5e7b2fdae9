// S^T = K Q^T of one tile, and its mask. A lane owns query column l % 32; its element i of block b
// is key 32 b + 8 (i / 4) + 4 (l / 32) + i % 4 of the tile.
#pragma once

#include "common/lds.hip.h"
#include "common/math.hip.h"
#include "common/mfma.hip.h"

namespace flydsl::kernels {

// `keys`(block, step): the A operand of keys 32 block + l % 32, elements 16 step + 8 (l / 32) + 0..7.
template <class Element, class Keys, int steps>
FLYDSL_DEVICE void score_tile(const Keys &keys, const u32x4 (&q)[steps], f32x16 (&s)[2]) {
#pragma unroll
  for (int step = 0; step < steps; ++step) {
#pragma unroll
    for (int block = 0; block < 2; ++block)
      s[block] = mfma_32x32x16<Element>(keys(block, step), q[step],
                                        step == 0 ? f32x16{} : s[block]);
  }
}

template <class Element, class Layout>
FLYDSL_DEVICE void score_tile(lds_ptr<const char> k_lane, const u32x4 (&q)[Layout::score_steps],
                              f32x16 (&s)[2]) {
  const auto keys = [&](int block, int step) {
    return read_b128(k_lane + Layout::k_immediate(block, step));
  };
  score_tile<Element>(keys, q, s);
}

// The keys of this tile that the lane's row may see are first_key .. last_key, counted from the
// lane's first.
FLYDSL_DEVICE void mask_tile(i32 first_key, i32 last_key, f32x16 (&s)[2]) {
#pragma unroll
  for (int block = 0; block < 2; ++block) {
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const i32 key = 32 * block + 8 * (i / 4) + i % 4;
      s[block][i] = first_key <= key && key <= last_key ? s[block][i] : -kInfinity;
    }
  }
}
FLYDSL_DEVICE void mask_tile(i32 last_key, f32x16 (&s)[2]) {
  mask_tile(0, last_key, s);
}

}  // namespace flydsl::kernels
