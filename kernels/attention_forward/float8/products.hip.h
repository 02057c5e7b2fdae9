// S^T = K Q^T of e4m3 values: D[32x32] = A[32x64] B[64x32] + C, twice the rate of 16 bits, products exact.
#pragma once

#include "attention_forward/pipelined/accumulators.hip.h"

namespace flydsl::kernels::float8 {

using u32x8 = vec<u32, 8>;

FLYDSL_DEVICE u32x8 joined(u32x4 low, u32x4 high) {
  return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
}

FLYDSL_DEVICE f32x16 mfma_32x32x64(u32x8 a, u32x8 b, f32x16 c) {
  using operand = vec<int, 8>;
  // Formats 0 are e4m3, a scale of the constant 0 is none.
  return __builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(bits_as<operand>(a), bits_as<operand>(b),
                                                         c, 0, 0, 0, 0, 0, 0);
}

// With Q^T in named accumulation registers behind those of O^T (pipelined/accumulators.hip.h):
//   a[128 + 8 (steps half + step) ..]    Q^T, columns of rows 32 half .., elements 64 step ..
template <int head_dim>
constexpr int q_register(int half, int step) {
  return 128 + 8 * (head_dim / 64 * half + step);
}

template <int head_dim, int half, int step>
FLYDSL_DEVICE void score(u32x8 k, f32x16 &s) {
  constexpr int first = q_register<head_dim>(half, step), last = first + 7;
  if constexpr (step == 0) {
    asm volatile("v_mfma_f32_32x32x64_f8f6f4 %0, %1, a[%2:%3], 0"
                 : "=&v"(s)
                 : "v"(k), "n"(first), "n"(last));
  } else {
    asm volatile("v_mfma_f32_32x32x64_f8f6f4 %0, %1, a[%2:%3], %0"
                 : "+v"(s)
                 : "v"(k), "n"(first), "n"(last));
  }
}

}  // namespace flydsl::kernels::float8
