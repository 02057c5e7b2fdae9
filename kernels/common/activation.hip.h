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
struct NormalTail {
  float half;   // half of erfc(|x| / sqrt 2)
  float power;  // exp(-x^2 / 2)
};
FLYDSL_DEVICE NormalTail normal_tail(float x) {
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
  const float first = exp2(-high), power = fma(first, low * -kLn2, first);
  return {0.5f * t * sum * power, power};
}
FLYDSL_DEVICE float gelu(float x) {
  const float half = normal_tail(x).half;
  return x * (x < 0.0f ? half : 1.0f - half);
}

// Derivatives, with errors below 2^-21 of 1. At infinities they are their limits, 0 and 1; that of NaN is NaN.
FLYDSL_DEVICE float relu_derivative(float x) {
  return x > 0.0f ? 1.0f : x <= 0.0f ? 0.0f : x;
}
// s + x s (1 - s) slope, s = 1 / (1 + exp(-v)), with 1 - s = exp(-v) s; x is not beyond where s differs from 0 and 1.
FLYDSL_DEVICE float sigmoid_derivative(float x, float v, float slope) {
  const float e = exp2(v * -kLog2E), s = reciprocal(1.0f + e);
  return fma(x * slope, e * s * s, s);
}
FLYDSL_DEVICE float silu_derivative(float x) {
  const float inside = clamped(x, 60.0f);
  return x != x ? x : sigmoid_derivative(inside, inside, 1.0f);
}
FLYDSL_DEVICE float gelu_tanh_derivative(float x) {
  constexpr float kTwiceRoot = 2 * 0.797884560802865356f;
  const float inside = clamped(x, 9.0f), square = inside * inside;
  const float v = kTwiceRoot * inside * fma(0.044715f, square, 1.0f);
  const float slope = kTwiceRoot * fma(3 * 0.044715f, square, 1.0f);
  return x != x ? x : sigmoid_derivative(inside, v, slope);
}
// Phi(x) + x phi(x).
FLYDSL_DEVICE float gelu_derivative(float x) {
  constexpr float kInverseRoot = 0.398942280401432678f;  // 1 / sqrt(2 pi)
  const NormalTail tail = normal_tail(x);
  const float below = x < 0.0f ? tail.half : 1.0f - tail.half;
  const float sum = fma(clamped(x, 20.0f) * kInverseRoot, tail.power, below);
  return x != x ? x : sum;
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

FLYDSL_DEVICE float derivative(float x, Activation activation) {
  switch (activation) {
    case Activation::relu:
      return relu_derivative(x);
    case Activation::gelu:
      return gelu_derivative(x);
    case Activation::gelu_tanh:
      return gelu_tanh_derivative(x);
    case Activation::silu:
      return silu_derivative(x);
    default:
      return 1.0f;
  }
}

}  // namespace flydsl::kernels
