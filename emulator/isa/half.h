// fp16 and bf16 as bit patterns: exact conversions in integer arithmetic, equal at every SIMD level
// and vectorisable.
#pragma once

#include <stdint.h>

#include "emulator/isa/level.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

// fp32 -> fp16, round to nearest even; NaNs are quieted and keep the top of their payload.
inline uint32_t half_round(float x) {
  const uint32_t u = __builtin_bit_cast(uint32_t, x), sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
  const uint32_t normal = (a + 0xfff + (a >> 13 & 1) - 0x38000000u) >> 13;
  // Adding 0.5 aligns the units of fp16 subnormals (2^-24) with the last bit of the sum, which so
  // rounds them.
  const float magic = __builtin_bit_cast(float, a) + 0.5f;
  const uint32_t subnormal = __builtin_bit_cast(uint32_t, magic) - 0x3f000000u;
  uint32_t h = a < 0x38800000u ? subnormal : normal;
  h = a >= 0x47800000u ? 0x7c00u : h;
  h = a > 0x7f800000u ? 0x7e00u | (a >> 13 & 0x3ff) : h;
  return sign | h;
}

// fp32 -> fp16, round towards zero: overflow gives the largest finite value.
inline uint32_t half_truncate(float x) {
  const uint32_t u = __builtin_bit_cast(uint32_t, x), sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
  const uint32_t shift = 126 - (a >> 23 > 126 ? 126 : a >> 23);  // exponent 112 (2^-15) needs 14
  const uint32_t subnormal =
      shift > 24 ? 0 : ((a & 0x7fffff) | 0x800000) >> (shift > 31 ? 31 : shift);
  uint32_t h = a < 0x38800000u ? subnormal : (a - 0x38000000u) >> 13;
  h = a >= 0x47800000u ? 0x7bffu : h;
  h = a == 0x7f800000u ? 0x7c00u : h;
  h = a > 0x7f800000u ? 0x7e00u | (a >> 13 & 0x3ff) : h;
  return sign | h;
}

inline float half_value(uint32_t x) {
  const uint32_t sign = (x & 0x8000) << 16, a = (x & 0x7fff) << 13;
  const uint32_t normal = a + 0x38000000u;
  const float small =
      __builtin_bit_cast(float, a + 0x38800000u) - __builtin_bit_cast(float, 0x38800000u);
  uint32_t u = a >= 0x0f800000u ? normal + 0x38000000u : normal;
  // Rounding down, 0 is a difference of -0.
  u = a < 0x00800000u ? __builtin_bit_cast(uint32_t, small) & 0x7fffffff : u;
  return __builtin_bit_cast(float, u | sign);
}

inline uint32_t bf16_round(float x) {
  const uint32_t u = __builtin_bit_cast(uint32_t, x);
  const uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
  return (u & 0x7fffffff) > 0x7f800000u ? (u >> 16) | 0x40 : rounded;
}
// The largest number in place of an infinity, unless the source was infinite.
inline uint32_t finite_bf16(uint32_t r, bool infinite_source) {
  return (r & 0x7fff) == 0x7f80 && !infinite_source ? r - 1 : r;
}
inline float bf16_value(uint32_t x) {
  return __builtin_bit_cast(float, x << 16);
}

// double -> fp16 with a single rounding: round to odd in fp32 first, which keeps the information
// "not exact".
inline uint32_t half_round_double(double x) {
  const float f = float(x);
  uint32_t u = __builtin_bit_cast(uint32_t, f);
  const double back = f;
  // float() rounded to nearest; step back towards zero when it went up, then set the last bit when
  // inexact.
  const bool inexact = back != x && x == x;
  const bool up = (back > x) == (x > 0);
  u = inexact ? ((up ? u - 1 : u) | 1) : u;
  return half_round(__builtin_bit_cast(float, u));
}

}  // namespace
}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
