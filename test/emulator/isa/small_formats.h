// Floats of 4 to 16 bits from their definitions: values by ldexp, rounding by search over all codes.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace flydsl::emu::test {

struct SmallFormat {
  int exponent_bits, mantissa_bits;
  enum Kind { kFinite, kOneNan, kIeee, kFnuz } kind;

  int bits() const { return 1 + exponent_bits + mantissa_bits; }
  int bias() const { return (1 << (exponent_bits - 1)) - 1 + (kind == kFnuz ? 1 : 0); }
  uint32_t sign() const { return 1u << (bits() - 1); }
  uint32_t largest() const {
    if (kind == kOneNan) return sign() - 2;
    if (kind == kIeee) return (((1u << exponent_bits) - 1) << mantissa_bits) - 1;
    return sign() - 1;
  }
  // As if every code without sign were a number: also what lies one step beyond the largest.
  double magnitude(uint32_t code) const {
    const uint32_t e = code >> mantissa_bits, m = code & ((1u << mantissa_bits) - 1);
    return e == 0 ? std::ldexp(double(m), 1 - bias() - mantissa_bits)
                  : std::ldexp(double(m + (1u << mantissa_bits)), int(e) - bias() - mantissa_bits);
  }
  double value(uint32_t code) const {
    const uint32_t m = code & (sign() - 1);
    if (kind == kFnuz && code == sign()) return NAN;
    const double s = code & sign() ? -1.0 : 1.0;
    if (m > largest()) return kind == kIeee && m == largest() + 1 ? s * INFINITY : NAN;
    return s * magnitude(m);
  }
  uint32_t nan_code() const {
    return kind == kFinite   ? sign() - 1
           : kind == kOneNan ? sign() - 1
           : kind == kIeee   ? sign() - 2
                             : sign();
  }
  uint32_t overflow(bool saturate) const {
    if (saturate || kind == kFinite) return largest();
    return kind == kIeee ? largest() + 1 : kind == kOneNan ? sign() - 1 : sign();
  }
  uint32_t with_sign(uint32_t code, bool negative) const {
    if (kind == kFnuz && (code == 0 || code == sign())) return code;
    return negative ? code | sign() : code;
  }
  // The code below |x|: the largest whose magnitude does not exceed it.
  uint32_t below(double x) const {
    uint32_t code = 0;
    while (code < largest() + 1 && magnitude(code + 1) <= x) ++code;
    return code;
  }
  uint32_t nearest(double x, bool saturate) const {
    const bool negative = std::signbit(x);
    if (std::isnan(x)) return with_sign(nan_code(), negative);
    const double a = std::fabs(x);
    uint32_t code = largest() + 1;
    if (a < magnitude(largest() + 1)) {
      const uint32_t low = below(a);
      const double d = a - magnitude(low), u = magnitude(low + 1) - a;
      code = d < u || (d == u && low % 2 == 0) ? low : low + 1;
    }
    return with_sign(code > largest() ? overflow(saturate) : code, negative);
  }
  // Up when the position between the neighbours, in steps of 2^-dropped, plus the random number
  // reaches one.
  uint32_t stochastic(double x, int dropped, uint32_t random, bool saturate) const {
    const bool negative = std::signbit(x);
    if (std::isnan(x)) return with_sign(nan_code(), negative);
    const double a = std::fabs(x);
    uint32_t code = largest() + 1;
    if (a < magnitude(largest() + 1)) {
      const uint32_t low = below(a);
      const double position = (a - magnitude(low)) / (magnitude(low + 1) - magnitude(low));
      const double steps = std::floor(std::ldexp(position, dropped));
      code = low + (steps + double(random >> (32 - dropped)) >= std::ldexp(1.0, dropped));
    }
    return with_sign(code > largest() ? overflow(saturate) : code, negative);
  }
};

constexpr SmallFormat kE4M3{4, 3, SmallFormat::kOneNan}, kE5M2{5, 2, SmallFormat::kIeee},
    kE4M3Fnuz{4, 3, SmallFormat::kFnuz}, kE5M2Fnuz{5, 2, SmallFormat::kFnuz},
    kE2M3{2, 3, SmallFormat::kFinite}, kE3M2{3, 2, SmallFormat::kFinite},
    kE2M1{2, 1, SmallFormat::kFinite};

}  // namespace flydsl::emu::test
