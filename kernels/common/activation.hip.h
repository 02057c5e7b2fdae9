// Activation functions in fp32, with relative errors below 2^-20 where their results do not vanish.
#pragma once

#include "common/math.hip.h"

namespace flydsl::kernels {

// Numbers of flydsl_aot_activation (include/flydsl_aot/gemm.h).
enum class Activation : unsigned { none = 0, relu = 1, gelu = 2, gelu_tanh = 3, silu = 4 };

FLYDSL_DEVICE float relu(float x) {
  return x < 0.0f ? 0.0f : x;  // NaN stays
}

// x / (1 + exp(-x)). (At -infinity the product of it and 0: NaN, as the quotient.)
FLYDSL_DEVICE float silu(float x) {
  return x * reciprocal(1.0f + exp2(x * -kLog2E));
}

// x / 2 (1 + tanh u), without the cancellation at negative x: x / (1 + exp(-2 u)).
FLYDSL_DEVICE float gelu_tanh(float x) {
  constexpr float kTwiceRoot = 2 * 0.797884560802865356f;  // 2 sqrt(2 / pi)
  const float u = x * fma(0.044715f * x, x, 1.0f);
  return x * reciprocal(1.0f + exp2(u * (-kTwiceRoot * kLog2E)));
}

// x / 2 erfc(-x / sqrt 2), which keeps the relative accuracy at negative x, where 1 + erf cancels.
// erfc(z) = t p(t) exp(-z^2) with t = 1 / (1 + z / 2); p by weighted least squares at 400 Chebyshev nodes of z in [0, 14.2],
// relative error 4.5e-8. The exponent is kept in two parts; all in all relative errors are below 4e-7.
FLYDSL_DEVICE float gelu(float x) {
  constexpr float p[] = {0.282084346f, 0.282412112f,  0.242835104f, 0.203752473f,  -0.0291482340f,
                         0.281732619f, -0.490405589f, 0.286123514f, -0.0593863539f};
  const float magnitude = __builtin_fminf(__builtin_fabsf(x), 20.0f);  // erfc is 0 from there on
  const float t = reciprocal(fma(magnitude, 0.5f * 0.707106781186547524f, 1.0f));
  float sum = p[8];
#pragma unroll
  for (int i = 7; i >= 0; --i) sum = fma(sum, t, p[i]);
  constexpr float kHalfLog2E = 0.5f * kLog2E;
  constexpr float kHalfLog2ERest = static_cast<float>(0.721347520444481704 - kHalfLog2E);
  const float square = magnitude * magnitude;
  const float square_rest = fma(magnitude, magnitude, -square);
  const float high = square * kHalfLog2E;
  const float low =
      fma(square_rest, kHalfLog2E, fma(square, kHalfLog2ERest, fma(square, kHalfLog2E, -high)));
  const float power = exp2(-high);
  const float half = 0.5f * t * sum * fma(power, low * -kLn2, power);
  return x * (x < 0.0f ? half : 1.0f - half);
}

FLYDSL_DEVICE float activated(float x, Activation activation) {
  switch (activation) {
    case Activation::relu:
      return relu(x);
    case Activation::gelu:
      return gelu(x);
    case Activation::gelu_tanh:
      return gelu_tanh(x);
    case Activation::silu:
      return silu(x);
    default:
      return x;
  }
}

}  // namespace flydsl::kernels
