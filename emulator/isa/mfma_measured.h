// The model `measured` of matrix arithmetic: what black-box tests of the hardware found, bit for bit,
// for CDNA2 and CDNA3 (P. Xie et al., "MMA-Sim: Bit-Accurate Reference Model of Tensor Cores and
// Matrix Cores", arXiv 2511.10909, and its published simulator; X. Li et al., "FTTN", arXiv
// 2403.00232 agrees that MI250X sums f16 products in groups and flushes subnormals).
//   fp32, fp64   one fused multiply-add a product, in increasing k: the model `fma`.
//   gfx90a f16, bf16: subnormal inputs count as zero; groups of 4 products (2 for bf16 without _1k)
//                are added in pairs in fp32, then to C, each sum flushed when subnormal.
//   gfx942 f16, bf16 (groups of 8), xf32 (groups of 4): the products of a group are truncated to 24
//                bits below the largest exponent among them and added exactly; the sum, rounded down
//                to 31 bits, and C, rounded down to 24 bits below the larger of both exponents, are
//                added and rounded to nearest even.
//   gfx942 fp8   groups of 16; even and odd products each as above, then both rounded down to 24 bits
//                below the larger exponent and added.
// gfx950 has not been measured: it takes the rules of gfx942, fp6 and fp4 those of fp8, and a scale
// belongs to the exponent of its number.
#pragma once

#include "emulator/isa/mfma.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

// One factor: its value, scale included, and its exponent, which for a subnormal of its type is the
// type's smallest.
struct Factor {
  double value = 0;
  int exponent = 0;
};
inline int exponent_of(double x) {
  return int(as_q(x) >> 52 & 0x7ff) - 1023;
}
inline Factor factor(uint32_t single, int minimum, int scale = 0) {
  const double x = double(as_f(single));
  const int e = exponent_of(x);
  return {scale ? x * as_d(uint64_t(1023 + scale) << 52) : x, (e < minimum ? minimum : e) + scale};
}
inline double power_of_two(int e) {
  return as_d(uint64_t(1023 + e) << 52);
}

enum class Grouping { kPairwise, kTruncated, kEvenOdd };

struct Fused {
  double sum;  // in units of 2^-24 of 2^exponent
  int exponent;
};
// Products first, first + step, ... of n, truncated below the largest exponent.
inline Fused truncated_sum(const Factor *a, const Factor *b, int n, int first, int step) {
  int top = -1000;
  for (int k = first; k < n; k += step) {
    const bool zero = a[k].value == 0 || b[k].value == 0;
    const int e = zero ? -126 : a[k].exponent + b[k].exponent;
    top = e > top ? e : top;
  }
  double sum = 0;
  for (int k = first; k < n; k += step)
    sum += __builtin_trunc(a[k].value * b[k].value * power_of_two(24 - top));
  return {sum, top};
}

inline float group_truncated(const Factor *a, const Factor *b, int n, float c, bool even_odd) {
  // Infinities and NaN, and products beyond fp32's range, decide alone.
  double special = double(c);
  for (int k = 0; k < n; ++k) {
    const double p = a[k].value * b[k].value;
    special += __builtin_fabs(p) >= power_of_two(128) ? __builtin_copysign(__builtin_inf(), p)
               : p != p                               ? p
                                                      : 0.0;
  }
  if (special - special != 0) return float(special);
  Fused s = truncated_sum(a, b, n, 0, even_odd ? 2 : 1);
  if (even_odd) {
    const Fused odd = truncated_sum(a, b, n, 1, 2);
    const int top = s.exponent > odd.exponent ? s.exponent : odd.exponent;
    s.sum = __builtin_floor(s.sum * power_of_two(s.exponent - top)) +
            __builtin_floor(odd.sum * power_of_two(odd.exponent - top));
    s.exponent = top;
  }
  int ec = exponent_of(double(c));
  ec = ec < -126 ? -126 : ec;
  const int top = s.exponent > ec ? s.exponent : ec;
  const double low = __builtin_floor(s.sum * power_of_two(s.exponent - top + 7));  // 2^-31
  double cc = __builtin_floor(double(c) * power_of_two(24 - top));                 // 2^-24
  if (even_odd && ec < top - 25) cc = 0;
  return float((low * power_of_two(-31) + cc * power_of_two(-24)) * power_of_two(top));
}

inline float flushed(float x) {
  return flush(x);
}
inline float pairwise(const Factor *a, const Factor *b, int n) {
  if (n == 1) return flushed(float(a[0].value * b[0].value));
  const int half = n / 2;
  return flushed(pairwise(a, b, half) + pairwise(a + half, b + half, n - half));
}
inline bool is_subnormal(const Factor &f, int minimum) {
  return f.value != 0 && exponent_of(f.value) < minimum;
}

// One element of the result. a and b hold n factors.
inline float measured_sum(Factor *a, Factor *b, int n, float c, Grouping how, int group,
                          int minimum) {
  if (how == Grouping::kPairwise) {
    for (int k = 0; k < n; ++k) {
      if (is_subnormal(a[k], minimum)) a[k].value = 0;
      if (is_subnormal(b[k], minimum)) b[k].value = 0;
    }
    c = flushed(c);
  }
  for (int k = 0; k < n; k += group) {
    const int size = n - k < group ? n - k : group;
    c = how == Grouping::kPairwise
            ? flushed(c + pairwise(a + k, b + k, size))
            : group_truncated(a + k, b + k, size, c, how == Grouping::kEvenOdd);
  }
  return c;
}

// How an instruction on elements of type T adds on this architecture; kPerLane elements a lane tell
// bf16 from bf16_1k.
struct Rule {
  Grouping how;
  int group;
};
inline Rule rule_of(Type t, Architecture architecture, bool short_bf16) {
  if (architecture == Architecture::kGfx90a)
    return {Grouping::kPairwise, t == kBf16 && short_bf16 ? 2 : 4};
  if (bits_of(t) <= 8) return {Grouping::kEvenOdd, 16};
  return {Grouping::kTruncated, t == kXf32 ? 4 : 8};
}

// c += a b for one block, a and b as [k][M] fp32.
template <Type TA, Type TB, int M>
void measured_block(uint32_t *const *rows, const uint32_t *a, int k_count, const uint32_t *b,
                    Rule rule) {
  Factor x[128], y[128];
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < M; ++j) {
      for (int k = 0; k < k_count; ++k) {
        x[k] = factor(a[k * M + i], minimum_exponent(TA));
        y[k] = factor(b[k * M + j], minimum_exponent(TB));
      }
      rows[i][j] = as_u(measured_sum(x, y, k_count, as_f(rows[i][j]), rule.how, rule.group,
                                     minimum_exponent(TA)));
    }
}

}  // namespace
}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
