// Binary floating point in integers, rounded once as MODE says: for what the host cannot do directly (fp16 under
// rounding and denormal modes, the fused steps of division). Not for speed.
#pragma once

#include <stdint.h>

#include "emulator/isa/level.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

using wide_bits = unsigned __int128;
constexpr uint32_t kSaturate = 4;

// Bits of a format with kExponent and kFraction bits, right-aligned in a uint64_t.
template <int kExponent, int kFraction>
struct Soft {
  static constexpr int bias = (1 << (kExponent - 1)) - 1, fraction = kFraction;
  static constexpr int least = 1 - bias - kFraction;  // exponent of a denormal's last bit
  static constexpr uint64_t sign = uint64_t(1) << (kExponent + kFraction);
  static constexpr uint64_t inf = ((uint64_t(1) << kExponent) - 1) << kFraction;
  static constexpr uint64_t quiet = uint64_t(1) << (kFraction - 1), nan = inf | quiet;
  static constexpr uint64_t fraction_mask = (uint64_t(1) << kFraction) - 1;

  static int exponent(uint64_t x) { return int((x & inf) >> kFraction); }
  static bool is_nan(uint64_t x) { return (x & (sign - 1)) > inf; }
  static bool is_inf(uint64_t x) { return (x & (sign - 1)) == inf; }
  static bool is_zero(uint64_t x) { return (x & (sign - 1)) == 0; }
  static uint64_t flush(uint64_t x) { return exponent(x) ? x : x & sign; }
  // A finite value is significand(x) * 2^unit(x).
  static uint64_t significand(uint64_t x) {
    return (x & fraction_mask) | (exponent(x) ? fraction_mask + 1 : 0);
  }
  static int unit(uint64_t x) { return (exponent(x) ? exponent(x) - 1 : 0) + least; }

  // The value n * 2^e; the last bit of n may stand for anything smaller than itself ("sticky").
  // `round` as in MODE: 0 nearest even, 1 up, 2 down, 3 towards zero; with kSaturate the largest number in place
  // of an infinity.
  static uint64_t pack(bool negative, wide_bits n, int e, uint32_t round) {
    const uint64_t s = negative ? sign : 0;
    const bool saturate = round & kSaturate;
    round &= 3;
    if (!n) return s;
    const uint64_t high = uint64_t(n >> 64);
    const int top = high ? 127 - __builtin_clzll(high) : 63 - __builtin_clzll(uint64_t(n));
    int last = top + e - kFraction;  // exponent of the last bit that is kept
    if (last < least) last = least;
    const int shift = last - e;
    wide_bits kept = shift <= 0 ? n << -shift : shift > 127 ? 0 : n >> shift;
    const wide_bits rest = shift <= 0 ? 0 : shift > 127 ? n : n & ((wide_bits(1) << shift) - 1);
    const wide_bits half = shift > 0 && shift < 128 ? wide_bits(1) << (shift - 1) : 0;
    const bool above = rest > half && half, tie = rest == half && half;
    const bool up =
        round == 0 ? above || (tie && (kept & 1)) : rest != 0 && round == (negative ? 2u : 1u);
    kept += up;
    if (kept >> (kFraction + 1)) {
      kept >>= 1;
      ++last;
    }
    const int field = kept >> kFraction ? last - least + 1 : 0;
    if (field >= (1 << kExponent) - 1) {
      const bool infinite = !saturate && (round == 0 || round == (negative ? 2u : 1u));
      return s | (infinite ? inf : inf - 1);
    }
    return s | uint64_t(field) << kFraction | (uint64_t(kept) & fraction_mask);
  }

  static wide_bits shift_sticky(wide_bits n, int by) {
    if (by <= 0) return n;
    if (by > 127) return n != 0;
    return n >> by | ((n & ((wide_bits(1) << by) - 1)) != 0);
  }

  // a * b + c, times 2^power. The first NaN wins, quieted.
  static uint64_t fma(uint64_t a, uint64_t b, uint64_t c, uint32_t round, int power = 0) {
    if (is_nan(a)) return a | quiet;
    if (is_nan(b)) return b | quiet;
    if (is_nan(c)) return c | quiet;
    const uint64_t s = (a ^ b) & sign, down = (round & 3) == 2 ? sign : 0;
    if (is_inf(a) || is_inf(b)) {
      const bool invalid = is_zero(a) || is_zero(b) || (is_inf(c) && (c & sign) != s);
      return invalid ? nan : s | inf;
    }
    if (is_inf(c)) return c;
    wide_bits p = wide_bits(significand(a)) * significand(b), q = significand(c);
    int pe = unit(a) + unit(b), qe = unit(c);
    if (!p && !q) return s == (c & sign) ? s : down;
    if (!p) return pack(c & sign, q, qe + power, round);
    if (!q) return pack(s != 0, p, pe + power, round);
    // Both to the same exponent below bit 126; what falls off stays as a sticky bit.
    const auto raise = [](wide_bits &n, int &e) {
      while (!(n >> 125)) {
        n <<= 1;
        --e;
      }
    };
    raise(p, pe);
    raise(q, qe);
    const int e = pe > qe ? pe : qe;
    p = shift_sticky(p, e - pe);
    q = shift_sticky(q, e - qe);
    if (s == (c & sign)) return pack(s != 0, p + q, e + power, round);
    if (p == q) return down;
    return p > q ? pack(s != 0, p - q, e + power, round) : pack(s == 0, q - p, e + power, round);
  }
  static uint64_t mul(uint64_t a, uint64_t b, uint32_t round) {
    const uint64_t r = fma(a, b, 0, round);
    return is_zero(r) ? (a ^ b) & sign : r;
  }
  static uint64_t add(uint64_t a, uint64_t c, uint32_t round) {
    return fma(a, uint64_t(bias) << kFraction, c, round);
  }
  static uint64_t scale(uint64_t x, int power, uint32_t round) {
    if (is_nan(x)) return x | quiet;
    return is_inf(x) ? x : pack(x & sign, significand(x), unit(x) + power, round);
  }
};

using SoftHalf = Soft<5, 10>;
using SoftSingle = Soft<8, 23>;
using SoftDouble = Soft<11, 52>;

// fp32 to fp16 in a rounding mode; NaNs are quieted and keep the top of their payload.
inline uint32_t half_of_single(uint32_t x, uint32_t round) {
  const uint32_t s = x >> 16 & 0x8000;
  if (SoftSingle::is_nan(x)) return s | 0x7e00 | (x >> 13 & 0x3ff);
  if (SoftSingle::is_inf(x)) return s | 0x7c00;
  return uint32_t(SoftHalf::pack(s != 0, SoftSingle::significand(x), SoftSingle::unit(x), round));
}

}  // namespace
}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
