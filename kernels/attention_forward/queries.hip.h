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

template <class Element, int chunks>
FLYDSL_DEVICE void apply_sign(u32 q_and, u32 q_xor, u32x4 (&q)[chunks]) {
  if (FLYDSL_LIKELY(q_and != 0)) {
#pragma unroll
    for (u32x4 &chunk : q) chunk = (chunk & q_and) ^ q_xor;
    return;
  }
  constexpr u32 exponent = Element::exponent_bits;
#pragma unroll
  for (u32x4 &chunk : q) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const u32 low = (chunk[i] & exponent) == exponent ? Element::quiet_nan : 0;
      const u32 high = (chunk[i] >> 16 & exponent) == exponent ? Element::quiet_nan : 0;
      chunk[i] = low | high << 16;
    }
  }
}

// The B operands of S^T = K Q^T: lane l holds row first_row + l % 32, elements 16 i + 8 (l / 32) +
// 0..7.
template <class Element, int head_dim, Mask mask>
FLYDSL_DEVICE void load_queries(const Problem<mask> &work, i32 row, u32 lane,
                                u32x4 (&q)[head_dim / 16]) {
  const auto from = work.q_row(work.real_row(row)) + 16 * (lane / 32);
#pragma unroll
  for (int i = 0; i < head_dim / 16; ++i) q[i] = load_16_bytes(from + 32 * i);
  const Arguments args = fresh_arguments();
  apply_sign<Element>(args->q_and, args->q_xor, q);
}

// The same where rows may end among the last 32 elements, after a multiple of 8: zeros follow.
template <class Element, int chunks, Mask mask>
FLYDSL_DEVICE void load_class_queries(const Problem<mask> &work, i32 row, u32 lane,
                                      u32x4 (&q)[chunks]) {
  const Arguments args = fresh_arguments();
  const i32 first = static_cast<i32>(16 * (lane / 32));
  const auto from = work.q_row(work.real_row(row)) + first;
#pragma unroll
  for (int i = 0; i < chunks; ++i) {
    q[i] = u32x4{};
    if (i < chunks - 2 || 32 * i + first < 2 * args->head_dim_qk)
      q[i] = load_16_bytes(from + 32 * i);
  }
  apply_sign<Element>(args->q_and, args->q_xor, q);
}

}  // namespace flydsl::kernels
