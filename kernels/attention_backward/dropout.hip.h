// Dropout: which weights meet their values; the rule is in include/flydsl_aot/attention_forward.h.
#pragma once

#include "attention_backward/pairs.hip.h"
#include "common/philox.hip.h"

namespace flydsl::kernels {

FLYDSL_DEVICE u64 uniform(u64 value) {
  return uniform(static_cast<u32>(value)) | static_cast<u64>(uniform(static_cast<u32>(value >> 32)))
                                                << 32;
}

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
FLYDSL_DEVICE u32 kept_quadruple(const GradientHead &work, DropoutState state, i32 row, i32 key) {
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

// The value of lane 4 (l / 4) + `from` (quad_perm).
template <int from>
FLYDSL_DEVICE u32 of_quad_lane(u32 value) {
  return __builtin_amdgcn_update_dpp(0, value, from * 0x55, 0xf, 0xf, false);
}

// A bit an element of the lane's 16 pairs, set if kept.
FLYDSL_DEVICE u32 kept_pairs(const GradientHead &work, const TilePairs<Pass::queries> &pairs) {
  const DropoutState state = dropout_state();
  u32 kept = 0;
#pragma unroll
  for (int i = 0; i < 16; i += 4)
    kept |= kept_quadruple(work, state, pairs.row(i), pairs.key(i)) << i;
  return kept;
}

// Four neighbouring lanes have four keys that share random numbers: each asks for every fourth row, for all of them.
FLYDSL_DEVICE u32 kept_pairs(const GradientHead &work, const TilePairs<Pass::keys> &pairs) {
  const DropoutState state = dropout_state();
  const i32 number =
      pairs.own % 4;  // of the lane among the four: own rows start at multiples of 32
  u32 kept = 0;
#pragma unroll
  for (int i = 0; i < 16; i += 4) {
    const u32 keys = kept_quadruple(work, state, pairs.row(i) + number, pairs.own);
    const u32 of_rows[4] = {of_quad_lane<0>(keys), of_quad_lane<1>(keys), of_quad_lane<2>(keys),
                            of_quad_lane<3>(keys)};
#pragma unroll
    for (int row = 0; row < 4; ++row) kept |= (of_rows[row] >> number & 1) << (i + row);
  }
  return kept;
}

}  // namespace flydsl::kernels
