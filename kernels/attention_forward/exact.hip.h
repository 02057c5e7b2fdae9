// The slow path: one row, computed by the whole wave straight from global memory.
//
// For rows whose fast result is not finite, or whose scores are so large that the fast path's
// rounding matters. Hidden keys never take part, not even as 0 * NaN; equal scores weigh exactly
// the same, since the maximum is subtracted before the scale is applied.
#pragma once

#include "attention_forward/queries.hip.h"
#include "common/math.hip.h"

namespace flydsl::kernels {

template <class Element>
FLYDSL_DEVICE float element_of(u32x4 chunk, int i) {
  return to_float<Element>(static_cast<u16>(chunk[i / 2] >> (i % 2 * 16)));
}

// q . k, with the scale's sign.
template <class Element, int head_dim, Mask mask>
FLYDSL_DEVICE float exact_score(const Problem<mask> &work, i32 row, i32 key) {
  float score = 0.0f;
#pragma unroll 1
  for (i32 byte = 0; byte < 2 * head_dim; byte += 16) {
    u32x4 q[1] = {load_16_bytes(work.q + row * work.q_row_bytes + byte)};
    apply_sign<Element>(work, q);
    const u32x4 k = load_16_bytes(work.k + key * work.k_row_bytes + byte);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      score = fma(element_of<Element>(q[0], i), element_of<Element>(k, i), score);
  }
  return score;
}

template <class Element, int head_dim, Mask mask>
FLYDSL_DEVICE void exact_row(const Problem<mask> &work, i32 row, u32 lane) {
  constexpr int elements = head_dim / kWaveLanes;
  const i32 last_key = work.last_key(row);
  const float c = work.scale_log2;
  // 2^((score - top) c); the test keeps equal infinities out of the subtraction.
  const auto rescaled = [&](float top, float new_top) {
    return top == new_top ? 1.0f : exp2((top - new_top) * c);
  };

  // Maximum and sum of weights, a lane a key.
  float top = -kInfinity, sum = 0.0f;
#pragma unroll 1
  for (i32 first = 0; first <= last_key; first += kWaveLanes) {
    const i32 key = first + static_cast<i32>(lane);
    if (key > last_key) continue;
    const float score = exact_score<Element, head_dim>(work, row, key);
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
  float o[elements] = {};
#pragma unroll 1
  for (i32 first = 0; first <= last_key; first += kWaveLanes) {
    const i32 key = first + static_cast<i32>(lane);
    float weight = 0.0f;
    bool visible = false;
    if (key <= last_key) {
      const float score = exact_score<Element, head_dim>(work, row, key);
      visible = score != -kInfinity;
      weight = exp2((score - top) * c) * inverse;
    }
#pragma unroll 1
    for (u64 left = ballot(visible); left != 0; left &= left - 1) {
      const u32 from = __builtin_ctzll(left);
      const float p = broadcast(weight, from);
      const auto values =
          (global_ptr<const u16>)(work.v + (first + static_cast<i32>(from)) * work.v_row_bytes);
#pragma unroll
      for (int i = 0; i < elements; ++i)
        o[i] = fma(p, to_float<Element>(values[lane + i * kWaveLanes]), o[i]);
    }
  }

  const auto out = (global_ptr<typename Element::scalar>)(work.out + row * work.out_row_bytes);
#pragma unroll
  for (int i = 0; i < elements; ++i)
    out[lane + i * kWaveLanes] = static_cast<typename Element::scalar>(o[i]);
  if (work.lse && lane == 0)
    work.lse[row * work.lse_row_elements] =
        sum == 0.0f ? -kInfinity : fma(top, c, log2(sum)) * kLn2;
}

}  // namespace flydsl::kernels
