// Arithmetic of one lane whose result the ISA fixes beyond IEEE 754: NaN choice, minimum and
// maximum, transcendentals.
#pragma once

#include "emulator/isa/lanes.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

constexpr float kInfinity = __builtin_inff();

inline bool is_nan(float x) {
  return (as_u(x) & 0x7fffffff) > 0x7f800000u;
}
inline float quiet(float x) {
  return as_f(as_u(x) | 0x400000);
}

// Which NaN an operation returns: the first NaN operand, quieted, else the default NaN. Written out
// because the host chooses by operand order, which the compiler is free to change.
inline float nan_of(float r, float a, float b) {
  const uint32_t n = is_nan(a) ? as_u(a) | 0x400000 : is_nan(b) ? as_u(b) | 0x400000 : 0x7fc00000u;
  return as_f(is_nan(r) ? n : as_u(r));
}
inline float nan_of(float r, float a, float b, float c) {
  const uint32_t n = is_nan(a)   ? as_u(a) | 0x400000
                     : is_nan(b) ? as_u(b) | 0x400000
                     : is_nan(c) ? as_u(c) | 0x400000
                                 : 0x7fc00000u;
  return as_f(is_nan(r) ? n : as_u(r));
}
inline float add(float a, float b) {
  return nan_of(a + b, a, b);
}
inline float sub(float a, float b) {
  return nan_of(a - b, a, b);
}
inline float mul(float a, float b) {
  return nan_of(a * b, a, b);
}
inline float fma(float a, float b, float c) {
  return nan_of(__builtin_fmaf(a, b, c), a, b, c);
}

// V_MIN_F32, V_MAX_F32 (CDNA3 ISA): a NaN loses against a number, -0 < +0; in IEEE mode a
// signalling NaN wins, quieted.
inline uint32_t order(uint32_t u) {
  return u ^ (uint32_t(int32_t(u) >> 31) | 0x80000000u);
}
// Conditions are joined with & and |, so that lanes stay free of branches.
inline uint32_t pick(bool first, uint32_t a, uint32_t b, bool ieee) {
  uint32_t r = first ? a : b;
  r = is_nan(as_f(b)) ? a : r;
  r = is_nan(as_f(a)) ? b : r;
  const uint32_t signalling = ieee ? 0x7f800000u : 0xffffffffu;
  const bool b_wins = ((b & 0x7fffffff) > signalling) & ((b & 0x400000) == 0);
  const bool a_wins = ((a & 0x7fffffff) > signalling) & ((a & 0x400000) == 0);
  r = b_wins ? b | 0x400000 : r;
  return a_wins ? a | 0x400000 : r;
}
inline uint32_t minimum_number(uint32_t a, uint32_t b, bool ieee) {
  return pick(order(a) < order(b), a, b, ieee);
}
inline uint32_t maximum_number(uint32_t a, uint32_t b, bool ieee) {
  return pick(order(a) > order(b), a, b, ieee);
}
// The same on fp16: of two NaNs the second, as it is when MODE.IEEE is 0.
template <auto F>
inline uint32_t pick_half(uint32_t a, uint32_t b, bool ieee) {
  const bool both = ((a & 0x7fff) > 0x7c00) & ((b & 0x7fff) > 0x7c00);
  const uint32_t r = half_round(as_f(F(as_u(half_value(a)), as_u(half_value(b)), ieee)));
  return (both & !ieee) ? b & 0xffff : r;
}

// V_MINIMUM_F32, V_MAXIMUM_F32: NaN wins.
inline float minimum(float a, float b) {
  return is_nan(a) || is_nan(b)            ? nan_of(__builtin_nanf(""), a, b)
         : order(as_u(a)) < order(as_u(b)) ? a
                                           : b;
}
inline float maximum(float a, float b) {
  return is_nan(a) || is_nan(b)            ? nan_of(__builtin_nanf(""), a, b)
         : order(as_u(a)) > order(as_u(b)) ? a
                                           : b;
}

// The transcendental unit flushes fp32 denormals on the way in and out (CDNA3 ISA, "VOP1").
inline float flush(float x) {
  return as_f((as_u(x) & 0x7f800000) ? as_u(x) : as_u(x) & 0x80000000u);
}

// 2^x in fp64 arithmetic, rounded once: within 0.5000001 ulp, and the same at every SIMD level
// because it uses only exactly rounded multiplications and additions. Taylor series of 2^f, |f| <=
// 1/2; its remainder is below 2^-42.
inline float exp2_lane(float value) {
  const float in = flush(value);
  const float x = in > 130.0f ? 130.0f : in < -160.0f ? -160.0f : in;
  const float shifted = x + 12582912.0f;  // 1.5 * 2^23: rounds to an integer
  const float n = shifted - 12582912.0f;
  const double t = double(x - n) * 0.693147180559945309417;
  double p = 1.0 / 39916800;
  p = p * t + 1.0 / 3628800;
  p = p * t + 1.0 / 362880;
  p = p * t + 1.0 / 40320;
  p = p * t + 1.0 / 5040;
  p = p * t + 1.0 / 720;
  p = p * t + 1.0 / 120;
  p = p * t + 1.0 / 24;
  p = p * t + 1.0 / 6;
  p = p * t + 0.5;
  p = p * t + 1.0;
  p = p * t + 1.0;
  // Two steps keep both powers of two normal fp32 numbers.
  const int32_t k = int32_t(n), k1 = k / 2, k2 = k - k1;
  const double scale =
      double(as_f(uint32_t(k1 + 127) << 23)) * double(as_f(uint32_t(k2 + 127) << 23));
  const float r = flush(float(p * scale));
  return is_nan(in) ? quiet(in) : r;
}

// log2(x): mantissa in [sqrt(1/2), sqrt(2)), then the series of atanh((m-1)/(m+1)).
inline float log2_lane(float value) {
  const float x = flush(value);
  const uint32_t u = as_u(x) - 0x3f3504f3u;
  const int32_t e = int32_t(u) >> 23;
  const double m = double(as_f((u & 0x7fffff) + 0x3f3504f3u));
  const double s = (m - 1.0) / (m + 1.0), z = s * s;
  double p = 1.0 / 19;
  p = p * z + 1.0 / 17;
  p = p * z + 1.0 / 15;
  p = p * z + 1.0 / 13;
  p = p * z + 1.0 / 11;
  p = p * z + 1.0 / 9;
  p = p * z + 1.0 / 7;
  p = p * z + 1.0 / 5;
  p = p * z + 1.0 / 3;
  p = p * z + 1.0;
  float r = float(double(e) + p * s * 2.885390081777926814720);
  r = x == 0 ? -kInfinity : r;
  r = x < 0 ? as_f(0x7fc00000) : r;
  r = x == kInfinity ? kInfinity : r;
  return is_nan(x) ? quiet(x) : r;
}

inline float rcp_lane(float value) {
  const float x = flush(value);
  return is_nan(x) ? quiet(x) : flush(1.0f / x);
}
inline float sqrt_lane(float value) {
  const float x = flush(value);
  return nan_of(__builtin_sqrtf(x), x, x);
}
inline float rsq_lane(float value) {
  const float x = flush(value);
  return nan_of(float(1.0 / __builtin_sqrt(double(x))), x, x);
}

constexpr double kTwoPi = 6.283185307179586476925;
inline float turn(float x) {
  return x - __builtin_floorf(x);
}
// V_SIN_F32: input in turns, valid to +-256; beyond that 0 (sin) and 1 (cos).
inline float sin_lane(float v) {
  const float x = flush(v);
  if (!(__builtin_fabsf(x) <= 256.0f)) return x - x == 0 ? 0.0f : as_f(0x7fc00000);
  return flush(float(__builtin_sin(double(turn(x)) * kTwoPi)));
}
inline float cos_lane(float v) {
  const float x = flush(v);
  if (!(__builtin_fabsf(x) <= 256.0f)) return x - x == 0 ? 1.0f : as_f(0x7fc00000);
  return flush(float(__builtin_cos(double(turn(x)) * kTwoPi)));
}

}  // namespace
}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
