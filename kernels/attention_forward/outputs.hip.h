// O^T += V^T P^T of one tile, and the store of finished rows. A lane owns query column l % 32; its
// element i of block b is head-dim element 32 b + 8 (i / 4) + 4 (l / 32) + i % 4.
#pragma once

#include "attention_forward/problem.hip.h"
#include "attention_forward/tile_layout.hip.h"
#include "common/lds.hip.h"
#include "common/memory.hip.h"
#include "common/mfma.hip.h"

namespace flydsl::kernels {

// The A operands of O^T = V^T P^T for 16 keys.
template <int head_dim>
FLYDSL_DEVICE void read_values(lds_ptr<const char> v_lane, int step, u32x4 (&v)[head_dim / 32]) {
  using Layout = TileLayout<head_dim>;
#pragma unroll
  for (int block = 0; block < head_dim / 32; ++block) {
    const u32x2 low = read_transposed_b64(v_lane + Layout::v_immediate(step, 0, block));
    const u32x2 high = read_transposed_b64(v_lane + Layout::v_immediate(step, 1, block));
    v[block] = u32x4{low[0], low[1], high[0], high[1]};
  }
}

// `v` holds the operands of the first 16 keys.
template <class Element, int head_dim>
FLYDSL_DEVICE void accumulate_tile(lds_ptr<const char> v_lane, u32x4 (&v)[head_dim / 32],
                                   const u32x4 (&p)[4], f32x16 (&o)[head_dim / 32]) {
#pragma unroll
  for (int step = 0; step < 4; ++step) {
    if (step != 0) read_values<head_dim>(v_lane, step, v);
#pragma unroll
    for (int block = 0; block < head_dim / 32; ++block)
      o[block] = mfma_32x32x16<Element>(v[block], p[step], o[block]);
  }
}

// Stores factor * o of this lane's row as 16-byte pieces: lanes l and l + 32 hold alternate
// quadruples of the row and exchange them first. All lanes must be active; `write` says whether the
// lane stores.
template <class Element, int head_dim>
FLYDSL_DEVICE void store_row(global_ptr<char> row, u32 lane, bool write, float factor,
                             const f32x16 (&o)[head_dim / 32]) {
  u32x4 pieces[head_dim / 16];
#pragma unroll
  for (int piece = 0; piece < head_dim / 16; ++piece) {
    const f32x16 &block = o[piece / 2];
    const int i = piece % 2 * 8;
    const auto pair = [&](int j) {
      return round_pair<Element>(block[i + j] * factor, block[i + j + 1] * factor);
    };
    const u32x2 first = swap_halves(pair(0), pair(4));
    const u32x2 second = swap_halves(pair(2), pair(6));
    pieces[piece] = u32x4{first[0], second[0], first[1], second[1]};
  }
  if (!write) return;
#pragma unroll
  for (int piece = 0; piece < head_dim / 16; ++piece)
    store_16_bytes(row + 32 * piece + 16 * (lane / 32), pieces[piece]);
}

}  // namespace flydsl::kernels
