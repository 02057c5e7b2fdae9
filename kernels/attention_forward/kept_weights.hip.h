// Dropout: which weights meet their values. The rule is in include/flydsl_aot/attention_forward.h: it depends on the element's place
// in the problem only, not on tiles. (attention_backward too.)
#pragma once

#include "attention_forward/head.hip.h"
#include "common/philox.hip.h"

namespace flydsl::kernels {

// Read where it is needed: four scalar registers less to keep.
struct DropoutState {
  u64 seed, offset;
};
FLYDSL_DEVICE DropoutState dropout_state() {
  const Arguments args = fresh_arguments();
  DropoutState state = {args->dropout_seed, args->dropout_offset};
  if (args->dropout_seed_device)
    state.seed = uniform(*(global_ptr<const u64>)args->dropout_seed_device);
  if (args->dropout_offset_device)
    state.offset += uniform(*(global_ptr<const u64>)args->dropout_offset_device);
  return state;
}

// One bit a key of the four from 4 (key / 4) on, set if kept.
FLYDSL_DEVICE u32 kept_quadruple(const Head &work, DropoutState state, i32 row, i32 key) {
  const Arguments args = fresh_arguments();
  const u64 keys = state.offset + static_cast<u32>(key) / 4;
  const u64 rows = (static_cast<u64>(work.batch) * args->heads_q + work.head) * args->seq_q + row;
  const u32x4 words =
      philox_4x32_10(state.seed, u32x4{static_cast<u32>(keys), static_cast<u32>(keys >> 32),
                                       static_cast<u32>(rows), static_cast<u32>(rows >> 32)});
  const u32 threshold = args->dropout_threshold;
  u32 kept = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) kept |= words[i] >= threshold ? 1u << i : 0u;
  return kept;
}

}  // namespace flydsl::kernels
