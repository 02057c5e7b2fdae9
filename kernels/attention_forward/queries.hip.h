// Query values with the sign of the scale applied.
//
// The scale's magnitude goes into the exponent (softmax.hip.h); folding it into q would round q
// again. Its sign is folded, exactly, so that the running maximum may be taken over raw products.
// Scale 0 takes every finite q as 0; a non-finite one becomes NaN, as its score 0 * inf or 0 * NaN
// is.
#pragma once

#include "attention_forward/problem.hip.h"
#include "common/elements.hip.h"
#include "common/memory.hip.h"

namespace flydsl::kernels {

template <class Element, Mask mask>
FLYDSL_DEVICE u32 signed_pair(const Problem<mask> &work, u32 pair) {
  if (work.q_and != 0) return (pair & work.q_and) ^ work.q_xor;
  constexpr u32 exponent = Element::exponent_bits;
  u32 result = 0;
  if ((pair & exponent) == exponent) result |= Element::quiet_nan;
  if ((pair >> 16 & exponent) == exponent) result |= Element::quiet_nan << 16;
  return result;
}

template <class Element, Mask mask>
FLYDSL_DEVICE u32x4 load_query_chunk(const Problem<mask> &work, i32 row, i32 byte) {
  u32x4 chunk = load_16_bytes(work.q + row * work.q_row_bytes + byte);
  for (int i = 0; i < 4; ++i) chunk[i] = signed_pair<Element>(work, chunk[i]);
  return chunk;
}

// The B operands of S^T = K Q^T: lane l holds row first_row + l % 32, elements 16 i + 8 (l / 32) +
// 0..7.
template <class Element, int head_dim, Mask mask>
FLYDSL_DEVICE void load_queries(const Problem<mask> &work, i32 row, u32 lane,
                                u32x4 (&q)[head_dim / 16]) {
  const i32 readable_row = smaller(row, work.seq_q - 1);
#pragma unroll
  for (int i = 0; i < head_dim / 16; ++i)
    q[i] = load_query_chunk<Element>(work, readable_row, 32 * i + 16 * (lane / 32));
}

}  // namespace flydsl::kernels
