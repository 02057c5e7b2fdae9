// bf16 and fp16 bit patterns to float and back, rounding to nearest, ties to even (IEEE
// 754-2019, 4.3.1).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "flydsl_aot/types.h"

namespace flydsl::verify {

inline float bf16_to_float(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

inline uint16_t float_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

inline float fp16_to_float(uint16_t bits) {
  const uint32_t sign = uint32_t{bits} >> 15 << 31;
  const uint32_t exponent = (bits >> 10) & 0x1f, mantissa = bits & 0x3ff;
  if (exponent == 0x1f) return mantissa ? NAN : std::bit_cast<float>(sign | 0x7f800000);
  if (exponent != 0)  // the biases are 15 and 127
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float subnormal = static_cast<float>(mantissa) * 0x1p-24f;
  return sign ? -subnormal : subnormal;
}

inline uint16_t float_to_fp16(float value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7e00;
  if (magnitude >= 65520.0f)
    return sign | 0x7c00;      // half way from 65504 to 65536 rounds up, to infinity
  if (magnitude < 0x1p-14f) {  // subnormal: a multiple of 2^-24, the last place of 1/2
    const uint32_t sum = std::bit_cast<uint32_t>(magnitude + 0.5f);
    return static_cast<uint16_t>(sign | (sum - std::bit_cast<uint32_t>(0.5f)));
  }
  const uint32_t bits = std::bit_cast<uint32_t>(magnitude) - (uint32_t{112} << 23);
  // A significand that rounds up to the next power of two carries into the exponent field, as it should.
  return static_cast<uint16_t>(sign | ((bits + 0xfff + ((bits >> 13) & 1)) >> 13));
}

inline float to_float(flydsl_aot_dtype dtype, uint16_t bits) {
  return dtype == FLYDSL_AOT_BF16 ? bf16_to_float(bits) : fp16_to_float(bits);
}

inline uint16_t from_float(flydsl_aot_dtype dtype, float value) {
  return dtype == FLYDSL_AOT_BF16 ? float_to_bf16(value) : float_to_fp16(value);
}

}  // namespace flydsl::verify
