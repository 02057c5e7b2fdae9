// Dropout: weights are cleared (kept_weights.hip.h says which), and scaled by 1 / (1 - p) once, with the row.
#pragma once

#include "attention_forward/general/work.hip.h"
#include "attention_forward/kept_weights.hip.h"
#include "common/elements.hip.h"

namespace flydsl::kernels {

// Clears the dropped ones of a tile's weights, whose order is that of weigh_tile; the lane's first key
// is `first_key`.
template <int steps>
FLYDSL_DEVICE void drop_weights(const GeneralWork &work, i32 row, i32 first_key,
                                u32x4 (&p)[steps]) {
  const DropoutState state = dropout_state();
#pragma unroll
  for (int quadruple = 0; quadruple < 2 * steps; ++quadruple) {
    const u32 kept = kept_quadruple(work, state, row, first_key + 8 * quadruple);
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const u32 low = kept >> 2 * pair & 1 ? 0xffffu : 0u;
      const u32 high = kept >> (2 * pair + 1) & 1 ? 0xffff0000u : 0u;
      p[quadruple / 2][quadruple % 2 * 2 + pair] &= low | high;
    }
    __builtin_amdgcn_sched_barrier(0);  // one at a time: eight would not fit the registers
  }
}

// Writes the seed and offset that were used, once, for the caller's backward pass.
FLYDSL_DEVICE void store_dropout_state() {
  const Arguments args = fresh_arguments();
  if (!args->dropout_seed_out && !args->dropout_offset_out) return;
  const DropoutState state = dropout_state();
  if (args->dropout_seed_out) *(global_ptr<u64>)args->dropout_seed_out = state.seed;
  if (args->dropout_offset_out) *(global_ptr<u64>)args->dropout_offset_out = state.offset;
}

// Writes for every key of the lane's row whether it is kept: `parts` lanes share a row, and take quadruples in turn.
FLYDSL_DEVICE void store_kept(const GeneralWork &work, i32 row, u32 part, u32 parts = 2) {
  const Arguments args = fresh_arguments();
  if (!args->kept || row >= work.seq_q) return;
  const auto to = (global_ptr<u8>)args->kept + work.batch * args->kept_stride_b +
                  work.head * args->kept_stride_h + row * args->kept_stride_q;
  const i64 stride = args->kept_stride_k;
  const DropoutState state = dropout_state();
#pragma unroll 1
  for (i32 key = static_cast<i32>(4 * part); key < work.seq_k; key += static_cast<i32>(4 * parts)) {
    const u32 kept = kept_quadruple(work, state, row, key);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (key + i < work.seq_k) to[(key + i) * stride] = static_cast<u8>(kept >> i & 1);
    }
  }
}

}  // namespace flydsl::kernels
