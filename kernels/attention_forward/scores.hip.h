// S^T = K Q^T of one tile, and its mask. A lane owns query column l % 32; its element i of block b
// is key 32 b + 8 (i / 4) + 4 (l / 32) + i % 4 of the tile.
#pragma once

#include "attention_forward/fragments.hip.h"
#include "common/math.hip.h"
#include "common/mfma.hip.h"

namespace flydsl::kernels {

// `keys`(block, step): the A operand of keys 32 block + l % 32, elements 16 step + 8 (l / 32) + 0..7.
template <class Element, int ahead = kFragmentsAhead, class Keys, int steps, int blocks>
FLYDSL_DEVICE void score_tile(const Keys &keys, const u32x4 (&q)[steps], f32x16 (&s)[blocks]) {
  const auto fragment = [&](int n) { return keys(n % blocks, n / blocks); };
  u32x4 k[ahead + 1];
#pragma unroll
  for (int n = 0; n < ahead; ++n) k[n] = fragment(n);
#pragma unroll
  for (int n = 0; n < blocks * steps; ++n) {
    if (n + ahead < blocks * steps) k[(n + ahead) % (ahead + 1)] = fragment(n + ahead);
    fragment_slot();
    s[n % blocks] = mfma_32x32x16<Element>(k[n % (ahead + 1)], q[n / blocks],
                                           n < blocks ? f32x16{} : s[n % blocks]);
    fragment_slot();
  }
}

// The keys of this tile that the lane's row may see are first_key .. last_key, counted from the
// lane's first.
template <int blocks>
FLYDSL_DEVICE void mask_tile(i32 first_key, i32 last_key, f32x16 (&s)[blocks]) {
#pragma unroll
  for (int block = 0; block < blocks; ++block) {
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const i32 key = 32 * block + 8 * (i / 4) + i % 4;
      s[block][i] = first_key <= key && key <= last_key ? s[block][i] : -kInfinity;
    }
  }
}
template <int blocks>
FLYDSL_DEVICE void mask_tile(i32 last_key, f32x16 (&s)[blocks]) {
  mask_tile(0, last_key, s);
}

}  // namespace flydsl::kernels
