// Transcendental functions as single instructions, about 1 ulp; denormal results are flushed.
#pragma once

#include "common/keywords.hip.h"

namespace flydsl::kernels {

constexpr float kLn2 = 0.693147180559945309f;
constexpr float kLog2E = 1.44269504088896341f;
constexpr float kInfinity = __builtin_inff();

#if defined(__NVPTX__)
FLYDSL_DEVICE float exp2(float x) {
  return __nvvm_ex2_approx_ftz_f(x);
}
FLYDSL_DEVICE float log2(float x) {
  return __nvvm_lg2_approx_ftz_f(x);
}
FLYDSL_DEVICE float reciprocal(float x) {
  return __nvvm_rcp_rn_ftz_f(x);
}
#else
FLYDSL_DEVICE float exp2(float x) {
  return __builtin_amdgcn_exp2f(x);
}
FLYDSL_DEVICE float log2(float x) {
  return __builtin_amdgcn_logf(x);
}
FLYDSL_DEVICE float reciprocal(float x) {
  return __builtin_amdgcn_rcpf(x);
}
#endif
FLYDSL_DEVICE float fma(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
FLYDSL_DEVICE float larger(float a, float b) {
  return __builtin_fmaxf(a, b);
}

FLYDSL_DEVICE float clamped(float x, float limit) {
  return __builtin_fminf(__builtin_fmaxf(x, -limit), limit);
}

// Relative error below 2^-21 everywhere: the quotient of the exponentials from 1 up, below it, where that
// would cancel, the continued fraction x / (1 + x^2 / (3 + x^2 / (5 + ...))) cut after six terms, whose
// own error is below 1e-9 there (DLMF 4.39.1).
FLYDSL_DEVICE float tanh(float x) {
  const float magnitude = __builtin_fabsf(x);
  const float t = exp2(magnitude * (-2.0f * kLog2E));
  const float large = (1.0f - t) * reciprocal(1.0f + t);
  const float y = x * x;
  const float numerator = fma(fma(21.0f, y, 1260.0f), y, 10395.0f);
  const float denominator = fma(fma(y + 210.0f, y, 4725.0f), y, 10395.0f);
  const float small = magnitude * numerator * reciprocal(denominator);
  return __builtin_copysignf(magnitude < 1.0f ? small : large, x);
}

}  // namespace flydsl::kernels
