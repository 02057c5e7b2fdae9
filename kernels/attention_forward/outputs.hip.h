// O^T += V^T P^T of one tile, and the store of finished rows. A lane owns query column l % 32; its
// element i of block b is head-dim element 32 b + 8 (i / 4) + 4 (l / 32) + i % 4.
#pragma once

#include "attention_forward/arguments.hip.h"
#include "attention_forward/fragments.hip.h"
#include "common/lanes.hip.h"
#include "common/memory.hip.h"
#include "common/mfma.hip.h"

namespace flydsl::kernels {

// `values`(step, block): the A operand of O^T = V^T P^T for keys 16 step .., head-dim elements
// 32 block + l % 32.
template <class Values, int blocks, int ahead = kFragmentsAhead>
struct ValueFragments {
  const Values &values;
  u32x4 v[ahead + 1];

  // Reads the first ones.
  FLYDSL_DEVICE explicit ValueFragments(const Values &values) : values(values) {
#pragma unroll
    for (int n = 0; n < ahead; ++n) v[n] = fragment(n);
  }
  FLYDSL_DEVICE u32x4 fragment(int n) const {
    return values(n / blocks, n % blocks);
  }

  template <class Element, int steps>
  FLYDSL_DEVICE void accumulate(const u32x4 (&p)[steps], f32x16 (&o)[blocks]) {
#pragma unroll
    for (int n = 0; n < steps * blocks; ++n) {
      if (n + ahead < steps * blocks) v[(n + ahead) % (ahead + 1)] = fragment(n + ahead);
      fragment_slot();
      o[n % blocks] = mfma_32x32x16<Element>(v[n % (ahead + 1)], p[n / blocks], o[n % blocks]);
      fragment_slot();
    }
  }
};

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
