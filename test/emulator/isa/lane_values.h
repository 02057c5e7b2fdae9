// Plain reference arithmetic, written for these tests from the formats' definitions.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace flydsl::emu::test {

inline float float_of(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}
inline uint32_t bits_of(float x) {
  uint32_t u;
  std::memcpy(&u, &x, 4);
  return u;
}

// Value of a 16-bit float with `exponent_bits` exponent bits, in double.
inline double small_float_value(uint32_t bits, int exponent_bits) {
  const int mantissa_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const uint32_t exponent = bits >> mantissa_bits & ((1u << exponent_bits) - 1);
  const uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  if (exponent == (1u << exponent_bits) - 1) return mantissa ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(double(mantissa), 1 - bias - mantissa_bits);
  return sign *
         std::ldexp(double(mantissa | 1u << mantissa_bits), int(exponent) - bias - mantissa_bits);
}
inline double half(uint32_t bits) {
  return small_float_value(bits, 5);
}
inline double bf16(uint32_t bits) {
  return small_float_value(bits, 8);
}

// The nearest 16-bit float, ties to even, found by bisection over the ordered bit patterns.
inline uint32_t nearest_small_float(double x, int exponent_bits) {
  const uint32_t sign = std::signbit(x) ? 0x8000 : 0, infinity = ((1u << exponent_bits) - 1)
                                                                 << (15 - exponent_bits);
  const double magnitude = std::fabs(x);
  if (std::isinf(x)) return sign | infinity;
  uint32_t low = 0, high = infinity;  // value(low) <= magnitude < value(high)
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    (small_float_value(middle, exponent_bits) <= magnitude ? low : high) = middle;
  }
  const double below = small_float_value(low, exponent_bits);
  // The value "infinity" stands for in rounding: one step past the largest finite number.
  const double above = high == infinity ? 2 * below - small_float_value(low - 1, exponent_bits)
                                        : small_float_value(high, exponent_bits);
  const double d_low = magnitude - below, d_high = above - magnitude;
  return sign | (d_low < d_high || (d_low == d_high && low % 2 == 0) ? low : high);
}

// A small deterministic generator (xorshift64*).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint32_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return uint32_t(state_ * 0x2545f4914f6cdd1dull >> 32);
  }
  float uniform() { return float(next()) * 0x1p-31f - 1.0f; }  // [-1, 1]

 private:
  uint64_t state_;
};

}  // namespace flydsl::emu::test
