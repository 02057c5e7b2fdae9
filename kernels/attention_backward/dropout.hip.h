// Dropout: which of a tile's weights meet their values.
#pragma once

#include "attention_backward/pairs.hip.h"
#include "attention_forward/kept_weights.hip.h"

namespace flydsl::kernels {

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
