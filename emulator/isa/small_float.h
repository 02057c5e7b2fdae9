// Floating-point formats of 4, 6 and 8 bits: decoding to fp32 and encoding with one rounding.
//
// Definitions: OCP 8-bit Floating Point and OCP Microscaling Formats for E4M3, E5M2, E2M3, E3M2 and
// E2M1; the FNUZ forms of gfx942 have a bias one higher, no infinity, no negative zero, and one NaN,
// 0x80 (CDNA3 ISA, "FP8 and BF8"). What the formats leave open - the NaN that is written, overflow -
// follows AMD's host emulation of the conversions (HIP's amd_hip_ocp_host.hpp).
#pragma once

#include "emulator/isa/lanes.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

enum class Specials {
  kNone,      // every code is a finite number
  kOneNan,    // all ones but the sign is NaN; no infinity
  kInfinity,  // as IEEE 754
  kFnuz,      // 0x80 is NaN
};

template <int kExponent, int kMantissaBits, Specials kSpecials>
struct Format {
  static constexpr int kBits = 1 + kExponent + kMantissaBits, kMantissa = kMantissaBits;
  static constexpr int kBias = (1 << (kExponent - 1)) - 1 + (kSpecials == Specials::kFnuz);
  static constexpr int kMinimumExponent = 1 - kBias;  // of the subnormals too
  static constexpr uint32_t kSign = 1u << (kBits - 1), kMagnitude = kSign - 1;
  static constexpr Specials kKind = kSpecials;
  static constexpr uint32_t kInfinite = kMagnitude & ~((1u << kMantissaBits) - 1);  // kInfinity
  static constexpr uint32_t kLargest = kSpecials == Specials::kOneNan     ? kMagnitude - 1
                                       : kSpecials == Specials::kInfinity ? kInfinite - 1
                                                                          : kMagnitude;
};
using E4M3 = Format<4, 3, Specials::kOneNan>;
using E5M2 = Format<5, 2, Specials::kInfinity>;
using E4M3Fnuz = Format<4, 3, Specials::kFnuz>;
using E5M2Fnuz = Format<5, 2, Specials::kFnuz>;
using E2M3 = Format<2, 3, Specials::kNone>;
using E3M2 = Format<3, 2, Specials::kNone>;
using E2M1 = Format<2, 1, Specials::kNone>;

// Bits above the code are ignored.
template <class F>
inline uint32_t decode_small(uint32_t code) {
  const uint32_t magnitude = code & F::kMagnitude, sign = (code & F::kSign) << (32 - F::kBits);
  const uint32_t a = magnitude << (23 - F::kMantissa);
  const uint32_t normal = a + (uint32_t(127 - F::kBias) << 23);
  // One exponent higher a subnormal counts in units of the difference to the exponent's base.
  constexpr uint32_t kBase = uint32_t(128 - F::kBias) << 23;
  const uint32_t subnormal = as_u(as_f(a + kBase) - as_f(kBase));
  uint32_t u = a < 0x00800000u ? subnormal : normal;
  if (F::kKind == Specials::kOneNan) u = magnitude == F::kMagnitude ? 0x7fc00000u : u;
  if (F::kKind == Specials::kInfinity) {
    u = magnitude == F::kInfinite ? 0x7f800000u : u;
    u = magnitude > F::kInfinite ? 0x7fc00000u : u;
  }
  u |= sign;
  if (F::kKind == Specials::kFnuz) u = u == 0x80000000u ? 0x7fc00000u : u;
  return u;
}

// What an encoding does beside rounding.
struct Rounding {
  bool saturate;  // 8-bit formats: overflow and infinity give the largest number
  bool stochastic;
  int dropped_bits;  // stochastic: mantissa bits of the source format below the target's
  uint32_t random;   // its upper dropped_bits are added below the target's last bit
};

// The code of x. Stochastic rounding keeps dropped_bits below the last bit kept, truncates the rest,
// adds the random number and truncates.
template <class F>
inline uint32_t encode_small(double x, const Rounding &how) {
  const uint64_t u = as_q(x), a = u & ~(uint64_t(1) << 63);
  const uint32_t sign = u >> 63 ? F::kSign : 0;
  int e = int(a >> 52) - 1023;
  e = e < F::kMinimumExponent ? F::kMinimumExponent : e > 1000 ? 1000 : e;
  const double unit = as_d(uint64_t(1023 - e + F::kMantissa) << 52);  // 1 / unit of the last bit
  const double q = as_d(a) * unit;                                    // exact
  uint32_t r;
  if (how.stochastic) {
    const double steps = double(1u << how.dropped_bits);
    const uint64_t cut = uint64_t(int64_t(q < 1e6 ? q * steps : 0.0));
    r = uint32_t((cut + (how.random >> (32 - how.dropped_bits))) >> how.dropped_bits);
  } else {
    r = uint32_t(as_q(q + 4503599627370496.0));  // 2^52: rounds to an integer in the low bits
  }
  uint32_t code = r + (uint32_t(e - F::kMinimumExponent) << F::kMantissa);
  uint32_t over = F::kLargest;
  if (F::kKind != Specials::kNone && !how.saturate)
    over = F::kKind == Specials::kInfinity ? F::kInfinite
           : F::kKind == Specials::kFnuz   ? F::kSign
                                           : F::kMagnitude;
  const uint32_t nan = F::kKind == Specials::kNone       ? F::kLargest
                       : F::kKind == Specials::kInfinity ? F::kMagnitude - 1
                       : F::kKind == Specials::kFnuz     ? F::kSign
                                                         : F::kMagnitude;
  constexpr uint64_t kInfinityBits = 0x7ff0000000000000ull;
  code = code > F::kLargest || a >= kInfinityBits ? over : code;
  code = a > kInfinityBits ? nan : code;
  if (F::kKind == Specials::kFnuz) return code == 0 || code == F::kSign ? code : code | sign;
  return code | sign;
}

// Writes a field of `bits` bits per lane: op_sel[3] picks the half, op_sel[3:2] the byte; the rest
// of the register stays.
inline void put_field(Wave &w, const Op &op, const uint32_t *value, int bits) {
  const uint32_t place = bits == 16 ? op.op_sel >> 3 & 1 : op.op_sel >> 2 & 3;
  const uint32_t shift = place * uint32_t(bits), field = ((1u << bits) - 1) << shift;
  const uint32_t *row = w.v + op.o[0].index * 64;
  LANES w.out[i] = (row[i] & ~field) | (value[i] << shift & field);
  finish(w, op, w.out);
}

// 2^(byte - 127) as a factor; 255 is NaN (E8M0).
inline double e8m0_value(uint32_t byte) {
  return byte == 255 ? __builtin_nan("") : as_d(uint64_t(byte + 1023 - 127) << 52);
}

}  // namespace
}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
