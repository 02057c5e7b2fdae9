// What the matrix instructions share: element types, the inner loop of the default model, results.
//
// Arithmetic: the ISA does not define the order of the sums. Two models (README.md of this folder):
// `fma` starts from C and adds the products one by one in increasing k, each with a fused
// multiply-add in the accumulator's format, denormals kept, whatever MODE says (here); `measured` is
// in mfma_measured.h.
#pragma once

#include "emulator/isa/fp_lane.h"
#include "emulator/isa/small_float.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

enum Type { kF32, kXf32, kF16, kBf16, kI8, kFp8, kBf8, kFp8Fnuz, kBf8Fnuz, kFp6, kBf6, kFp4 };

constexpr int bits_of(Type t) {
  return t <= kXf32 ? 32 : t <= kBf16 ? 16 : t < kFp6 ? 8 : t < kFp4 ? 6 : 4;
}
// Exponent of the type's smallest normal number and its subnormals.
constexpr int minimum_exponent(Type t) {
  switch (t) {
    case kF16:
    case kBf8:
      return -14;
    case kFp8:
      return -6;
    case kFp8Fnuz:
      return -7;
    case kBf8Fnuz:
      return -15;
    case kFp6:
    case kFp4:
      return 0;
    case kBf6:
      return -2;
    default:
      return -126;
  }
}

template <Type T>
inline uint32_t decode(uint32_t x) {
  if (T == kXf32) {  // to TF32, by truncation (measured: mfma_measured.h); a NaN stays one
    const uint32_t quiet = (x & 0x7fffffff) > 0x7f800000u ? 0x400000 : 0;
    return (x & ~0x1fffu) | quiet;
  }
  if (T == kF16) return as_u(half_value(x & 0xffff));
  if (T == kBf16) return x << 16;
  if (T == kI8) return uint32_t(int32_t(int8_t(x)));
  if (T == kFp8) return decode_small<E4M3>(x);
  if (T == kBf8) return decode_small<E5M2>(x);
  if (T == kFp8Fnuz) return decode_small<E4M3Fnuz>(x);
  if (T == kBf8Fnuz) return decode_small<E5M2Fnuz>(x);
  if (T == kFp6) return decode_small<E2M3>(x);
  if (T == kBf6) return decode_small<E3M2>(x);
  if (T == kFp4) return decode_small<E2M1>(x);
  return x;
}

// Element e of 64 lanes, as fp32 or a 32-bit integer.
template <Type T>
inline void unpack(const uint32_t *rows, int e, uint32_t *out) {
  constexpr int kBits = bits_of(T);
  const uint32_t *r = rows + 64 * (e * kBits / 32), shift = uint32_t(e * kBits % 32);
  if (kBits == 6 && shift > 26) {
    LANES out[i] = decode<T>(r[i] >> shift | r[64 + i] << (32 - shift));
  } else {
    LANES out[i] = decode<T>(r[i] >> shift);
  }
}

template <Type T, bool kExactProducts>
inline uint32_t accumulate(uint32_t a, uint32_t b, uint32_t c) {
  if (T == kI8) return c + a * b;
  if (kExactProducts) return as_u(as_f(a) * as_f(b) + as_f(c));
  return as_u(__builtin_fmaf(as_f(a), as_f(b), as_f(c)));
}

// The host's widest vectors for the inner loop; compilers do not find this shape by themselves for
// every M.
#if defined(__AVX512F__)
struct Vector {
  static constexpr int kLanes = 16;
  __m512 x;
  static Vector load(const uint32_t *p) { return {_mm512_loadu_ps(p)}; }
  static Vector spread(uint32_t u) { return {_mm512_set1_ps(as_f(u))}; }
  void store(uint32_t *p) const { _mm512_storeu_ps(p, x); }
  void add_product(Vector a, Vector b) { x = _mm512_fmadd_ps(a.x, b.x, x); }
};
#elif defined(__FMA__)
struct Vector {
  static constexpr int kLanes = 8;
  __m256 x;
  static Vector load(const uint32_t *p) {
    return {_mm256_loadu_ps(reinterpret_cast<const float *>(p))};
  }
  static Vector spread(uint32_t u) { return {_mm256_set1_ps(as_f(u))}; }
  void store(uint32_t *p) const { _mm256_storeu_ps(reinterpret_cast<float *>(p), x); }
  void add_product(Vector a, Vector b) { x = _mm256_fmadd_ps(a.x, b.x, x); }
};
#else
struct Vector {
  static constexpr int kLanes = 64;  // none: the plain loop is used
  static Vector load(const uint32_t *) { return {}; }
  static Vector spread(uint32_t) { return {}; }
  void store(uint32_t *) const {}
  void add_product(Vector, Vector) {}
};
#endif

// kRows rows of the result: c[r][j] += sum over k of a[k][r] * b[k][j], several rows at a time to
// keep the host's multipliers busy. a and b are [k][M].
template <Type T, int M, int kRows, bool kExactProducts>
inline void rows_times(uint32_t *const *c, const uint32_t *a, int k_count, const uint32_t *b) {
  if constexpr (T != kI8 && M % Vector::kLanes == 0) {
    constexpr int kVectors = M / Vector::kLanes;
    Vector acc[kRows][kVectors];
    for (int r = 0; r < kRows; ++r)
      for (int v = 0; v < kVectors; ++v) acc[r][v] = Vector::load(c[r] + v * Vector::kLanes);
    for (int k = 0; k < k_count; ++k)
      for (int v = 0; v < kVectors; ++v) {
        const Vector row = Vector::load(b + k * M + v * Vector::kLanes);
        for (int r = 0; r < kRows; ++r) acc[r][v].add_product(Vector::spread(a[k * M + r]), row);
      }
    for (int r = 0; r < kRows; ++r)
      for (int v = 0; v < kVectors; ++v) acc[r][v].store(c[r] + v * Vector::kLanes);
    return;
  }
  uint32_t acc[kRows][M];
  for (int r = 0; r < kRows; ++r)
    for (int j = 0; j < M; ++j) acc[r][j] = c[r][j];
  for (int k = 0; k < k_count; ++k)
    for (int r = 0; r < kRows; ++r) {
      const uint32_t x = a[k * M + r];
      for (int j = 0; j < M; ++j)
        acc[r][j] = accumulate<T, kExactProducts>(x, b[k * M + j], acc[r][j]);
    }
  for (int r = 0; r < kRows; ++r)
    for (int j = 0; j < M; ++j) c[r][j] = acc[r][j];
}

// Without a fused multiply-add in the host a call a product would be needed; but where every
// product is a normal fp32 number or zero and has at most 24 bits, multiplying first loses nothing
// and the sum rounds the same.
template <Type T>
inline bool products_exact(const uint32_t *a, int a_count, const uint32_t *b, int b_count) {
#if defined(__FMA__)
  (void)a, (void)a_count, (void)b, (void)b_count;
  return false;
#else
  if (T == kF32 || T == kI8) return false;
  uint32_t bad = 0;
  for (int n = 0; n < 2; ++n)
    for (int i = 0; i < (n ? b_count : a_count); ++i) {
      const uint32_t magnitude = (n ? b[i] : a[i]) & 0x7fffffff, exponent = magnitude >> 23;
      bad |= uint32_t(magnitude != 0 && (exponent < 127 - 62 || exponent > 127 + 62));
    }
  return bad == 0;
#endif
}

// c += a b for one block: rows point to the block's rows in c.
template <Type T, int M>
inline void block_times(uint32_t *const *rows, const uint32_t *a, int k_count, const uint32_t *b,
                        bool exact) {
  constexpr int kStep = M == 16 ? 8 : 4;
  for (int i = 0; i < M; i += kStep) {
    if (exact)
      rows_times<T, M, kStep, true>(rows + i, a + i, k_count, b);
    else
      rows_times<T, M, kStep, false>(rows + i, a + i, k_count, b);
  }
}

// Row i of the result of a block: C, D with
//   M = 32: register 16 * block + 4 * (i / 8) + i % 4, lane j + 32 * (i / 4 % 2)
//   M = 16: register 4 * block + i % 4, lane j + 16 * (i / 4)
//   M = 4:  register i, lane j + 4 * block
template <int M>
inline void result_rows(uint32_t *c, int block, uint32_t **rows) {
  for (int i = 0; i < M; ++i) {
    const int reg = M == 32 ? 16 * block + 4 * (i / 8) + i % 4 : M == 16 ? 4 * block + i % 4 : i;
    const int lane = M == 32 ? 32 * (i / 4 % 2) : M == 16 ? 16 * (i / 4) : 4 * block;
    rows[i] = c + reg * 64 + lane;
  }
}

// C: registers, or one value for all.
inline void load_c(Wave &w, const Op &op, int n, uint32_t *c, int registers) {
  if (op.o[n].kind == Kind::kVector) {
    memcpy(c, w.base[0] + op.o[n].index * 64, size_t(registers) * 256);
  } else {
    const uint32_t x = scalar32(w, op, n);
    for (int i = 0; i < registers * 64; ++i) c[i] = x;
  }
}
// The hardware's NaN payload is not defined; the host's would depend on operand order.
template <bool kInteger>
inline void store_d(Wave &w, const Op &op, const uint32_t *c, int registers) {
  uint32_t *d = w.v + op.o[0].index * 64;
  for (int i = 0; i < registers * 64; ++i)
    d[i] = !kInteger && (c[i] & 0x7fffffff) > 0x7f800000u ? 0x7fc00000u : c[i];
}

}  // namespace
}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
