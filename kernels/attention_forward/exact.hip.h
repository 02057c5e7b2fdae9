// The slow path: one row, computed by the whole wave straight from global memory.
//
// For rows whose fast result is not finite, or whose scores are so large that the fast path's
// rounding matters. Hidden keys never take part, not even as 0 * NaN; equal scores weigh exactly
// the same, since the maximum is subtracted before the scale is applied.
//
// `Row` says what the row is made of:
//   elements                 outputs a lane: lane l has elements l, l + 64, ...
//   first_key, last_key      keys it may see, inclusive
//   c                        weights are 2^(score c), c > 0
//   sink                     score of the attention sink, -inf without one
//   score(key)               -inf: not visible
//   kept(weight, key)        the weight that meets the key's value
//   value(key, element)      0 past the last element
//   store(element, x), store_lse(x)
#pragma once

#include "common/lanes.hip.h"
#include "common/math.hip.h"

namespace flydsl::kernels {

template <class Row>
FLYDSL_DEVICE void exact_row(const Row &row, u32 lane) {
  const float c = row.c;
  // 2^((score - top) c); the test keeps equal infinities out of the subtraction.
  const auto rescaled = [&](float top, float new_top) {
    return top == new_top ? 1.0f : exp2((top - new_top) * c);
  };

  // Maximum and sum of weights, a lane a key.
  float top = -kInfinity, sum = 0.0f;
#pragma unroll 1
  for (i32 first = row.first_key; first <= row.last_key; first += kWaveLanes) {
    const i32 key = first + static_cast<i32>(lane);
    if (key > row.last_key) continue;
    const float score = row.score(key);
    if (score == -kInfinity) continue;
    const float new_top = larger(top, score);
    sum = fma(sum, rescaled(top, new_top), exp2((score - new_top) * c));
    top = new_top;
  }
  const float lane_top = top;
  top = max_of_wave(top, lane);
  sum = sum_of_wave(sum * rescaled(lane_top, top), lane);

  // Outputs, a lane an element. Weights are normalised first: large values must not overflow a sum
  // that the quotient brings back.
  const float inverse = reciprocal(sum);
  float o[Row::elements] = {};
#pragma unroll 1
  for (i32 first = row.first_key; first <= row.last_key; first += kWaveLanes) {
    const i32 key = first + static_cast<i32>(lane);
    float weight = 0.0f;
    bool visible = false;
    if (key <= row.last_key) {
      const float score = row.score(key);
      visible = score != -kInfinity;
      weight = row.kept(exp2((score - top) * c) * inverse, key);
    }
#pragma unroll 1
    for (u64 left = ballot(visible); left != 0; left &= left - 1) {
      const u32 from = __builtin_ctzll(left);
      const float p = broadcast(weight, from);
#pragma unroll
      for (int i = 0; i < Row::elements; ++i)
        o[i] = fma(p, row.value(first + static_cast<i32>(from), lane + i * kWaveLanes), o[i]);
    }
  }

  // The sink is one more weight, which meets no value. What it scales the others by goes to the outputs in two factors: one
  // alone would underflow where the sink is 2^126 times the largest weight.
  float half = 1.0f, rest = 1.0f;
  if (!(row.sink == -kInfinity)) {
    const float top_of_all = larger(top, row.sink);
    const float of_keys = sum;
    sum = rescaled(row.sink, top_of_all);
    if (of_keys != 0.0f) {  // else outputs are 0, whatever the sink is
      if (top != top_of_all) half = exp2((top - top_of_all) * (0.5f * c));
      sum = fma(of_keys * half, half, sum);
      rest = half * of_keys / sum;
    }
    top = top_of_all;
  }
#pragma unroll
  for (int i = 0; i < Row::elements; ++i) row.store(lane + i * kWaveLanes, o[i] * half * rest);
  if (lane == 0) row.store_lse(sum == 0.0f ? -kInfinity : fma(top, c, log2(sum)) * kLn2);
}

}  // namespace flydsl::kernels
