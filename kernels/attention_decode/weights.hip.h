// Online softmax of a tile of 32 keys x 16 rows, as in attention_forward/softmax.hip.h. A lane owns row
// lane % 16; element i of block b is key 16 b + 4 (lane / 16) + i. The row's reference is common to
// its four lanes, sum and highest score are of the lane's keys only.
#pragma once

#include "attention_forward/softmax.hip.h"

namespace flydsl::kernels {

// Over the four lanes of a row, in each of them.
FLYDSL_DEVICE float max_of_row(float value, u32 lane) {
  return max_of_halves(larger(value, lane_xor(value, lane, 16)));
}
FLYDSL_DEVICE float sum_of_row(float value, u32 lane) {
  return sum_of_halves(value + lane_xor(value, lane, 16));
}

// Turns scores into the B operand of O^T = V^T P^T (order of keys: TileLayout::value_byte).
template <class Element, int blocks>
FLYDSL_DEVICE u32x4 weigh(const f32x4 (&s)[2], float c, u32 lane, RowState &row,
                          f32x4 (&o)[blocks]) {
  float top = larger(s[0][0], s[1][0]);
#pragma unroll
  for (int i = 1; i < 4; ++i) top = larger(larger(top, s[0][i]), s[1][i]);
  row.highest = larger(row.highest, top);

  if (FLYDSL_UNLIKELY(ballot(fma(top, c, -row.reference) > kHeadroom<Element>) != 0)) {
    // Rows that do not exceed keep theirs: a row's bits do not depend on its neighbours.
    top = max_of_row(top, lane);
    const bool exceeds = fma(top, c, -row.reference) > kHeadroom<Element>;
    const float reference = exceeds ? fma(top, c, -kShift<Element>) : row.reference;
    const float factor = exp2(row.reference - reference);
    row.reference = reference;
    row.sum *= factor;
#pragma unroll
    for (f32x4 &block : o) block *= factor;
  }

  float sum = 0.0f;
  u32x4 p;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float low = exp2(fma(s[i / 2][i % 2 * 2], c, -row.reference));
    const float high = exp2(fma(s[i / 2][i % 2 * 2 + 1], c, -row.reference));
    sum += low;
    sum += high;
    p[i] = round_pair<Element>(low, high);
  }
  row.sum += sum;
  return p;
}

}  // namespace flydsl::kernels
