// Transcendental functions as single instructions, about 1 ulp; denormal results are flushed.
#pragma once

#include "common/keywords.hip.h"

namespace flydsl::kernels {

constexpr float kLn2 = 0.693147180559945309f;
constexpr float kInfinity = __builtin_inff();

FLYDSL_DEVICE float exp2(float x) {
  return __builtin_amdgcn_exp2f(x);
}
FLYDSL_DEVICE float log2(float x) {
  return __builtin_amdgcn_logf(x);
}
FLYDSL_DEVICE float reciprocal(float x) {
  return __builtin_amdgcn_rcpf(x);
}
FLYDSL_DEVICE float fma(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
FLYDSL_DEVICE float larger(float a, float b) {
  return __builtin_fmaxf(a, b);
}

}  // namespace flydsl::kernels
