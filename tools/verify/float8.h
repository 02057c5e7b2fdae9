// The OCP 8-bit formats e4m3 and e5m2 (OCP 8-bit Floating Point Specification 1.0, section 5), from their
// definition: sign, exponent, mantissa.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "flydsl_aot/types.h"

namespace flydsl::verify {

inline float float8_to_float(flydsl_aot_dtype dtype, uint8_t bits) {
  const bool e4m3 = dtype == FLYDSL_AOT_E4M3;
  const int mantissa_bits = e4m3 ? 3 : 2, bias = e4m3 ? 7 : 15;
  const int exponent = (bits & 0x7f) >> mantissa_bits;
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const float sign = bits & 0x80 ? -1.0f : 1.0f;
  if (e4m3 && (bits & 0x7f) == 0x7f) return NAN;
  if (!e4m3 && exponent == 31) return mantissa ? NAN : sign * INFINITY;
  const int significand = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
  return sign * std::ldexp(static_cast<float>(significand),
                           (exponent == 0 ? 1 : exponent) - bias - mantissa_bits);
}

// The nearest number, ties to even (IEEE 754-2019, 4.3.1); too large ones become the largest; NaN is NaN.
inline uint8_t float_to_float8(flydsl_aot_dtype dtype, float value) {
  const bool e4m3 = dtype == FLYDSL_AOT_E4M3;
  const int mantissa_bits = e4m3 ? 3 : 2, bias = e4m3 ? 7 : 15, largest = e4m3 ? 0x7e : 0x7b;
  const int sign = std::signbit(value) ? 0x80 : 0;
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) return 0x7f;
  if (std::isinf(value)) return static_cast<uint8_t>(sign | (e4m3 ? largest : 0x7c));
  if (magnitude == 0) return static_cast<uint8_t>(sign);
  const int of_float = static_cast<int>(std::bit_cast<uint32_t>(magnitude) >> 23) - 127;
  const int exponent = std::max(of_float, 1 - bias);
  // By a power of two, then to an integer: the last place of 2^23 is 1. A significand that rounds up to the next power of
  // two carries into the exponent field, as it should.
  const auto power =
      std::bit_cast<float>(static_cast<uint32_t>(127 + mantissa_bits - exponent) << 23);
  const int significand = static_cast<int>((magnitude * power + 0x1p23f) - 0x1p23f);
  const int code = ((exponent + bias - 1) << mantissa_bits) + significand;
  return static_cast<uint8_t>(sign | std::min(code, largest));
}

}  // namespace flydsl::verify
