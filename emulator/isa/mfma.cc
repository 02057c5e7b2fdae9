// Dense matrix instructions.
//
// Arithmetic: the ISA does not define the order of the sums. The model here, for every type: each
// element of the result starts from C and adds the products one by one in increasing k with a fused
// multiply-add in the accumulator's format, denormals kept, whatever MODE says. One function,
// accumulate(), holds it.
#include "emulator/isa/fp_lane.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

// An instruction does kBlocks independent products of M x K by K x M.
// Register layouts (AMD's public matrix instruction calculator for the CDNA3 forms; for the
// K-doubled gfx950 forms the same rule with twice the elements a lane):
//   A[i][k], B[k][j] of a block: a lane holds `per_lane` consecutive k;
//     lane = i + M * (k / per_lane + (K / per_lane) * block), element k % per_lane
//   C, D with M = 32: register 16 * block + 4 * (i / 8) + i % 4, lane j + 32 * (i / 4 % 2)
//          with M = 16: register 4 * block + i % 4, lane j + 16 * (i / 4)
//          with M = 4:  register i, lane j + 4 * block

enum Type { kF32, kF16, kBf16, kI8 };

// Element e of a lane: which half or byte of which register.
template <Type T>
inline void unpack(const uint32_t *rows, int e, uint32_t *out) {
  if (T == kF32) memcpy(out, rows + 64 * e, 256);
  if (T == kF16) {
    const uint32_t *r = rows + 64 * (e / 2), shift = e % 2 * 16;
    LANES out[i] = as_u(half_value(r[i] >> shift & 0xffff));
  }
  if (T == kBf16) {
    const uint32_t *r = rows + 64 * (e / 2), shift = e % 2 * 16;
    LANES out[i] = r[i] >> shift << 16;
  }
  if (T == kI8) {
    const uint32_t *r = rows + 64 * (e / 4), shift = e % 4 * 8;
    LANES out[i] = uint32_t(int32_t(int8_t(r[i] >> shift)));
  }
}

template <Type T, bool kExactProducts>
inline uint32_t accumulate(uint32_t a, uint32_t b, uint32_t c) {
  if (T == kI8) return c + a * b;
  if (kExactProducts) return as_u(as_f(a) * as_f(b) + as_f(c));
  return as_u(__builtin_fmaf(as_f(a), as_f(b), as_f(c)));
}

// cbsz, abid: block abid of each group of 2^cbsz blocks of A is used by the whole group. blgp
// permutes lanes of B: 1 and 2 broadcast the lower and upper 32 lanes, 3 rotates by 16, 4-7
// broadcast one group of 16 (CDNA3 ISA, "MFMA").
inline int a_block(const Op &op, int block) {
  return op.cbsz ? (block >> op.cbsz << op.cbsz) + (op.abid & ((1 << op.cbsz) - 1)) : block;
}
inline int b_lane(uint32_t blgp, int lane) {
  switch (blgp) {
    case 1:
      return lane & 31;
    case 2:
      return 32 + (lane & 31);
    case 3:
      return (lane + 16) & 63;
    case 4:
    case 5:
    case 6:
    case 7:
      return 16 * int(blgp - 4) + (lane & 15);
  }
  return lane;
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
inline bool products_exact(const uint32_t *a, const uint32_t *b, int count) {
#if defined(__FMA__)
  (void)a, (void)b, (void)count;
  return false;
#else
  if (T == kF32) return false;
  uint32_t bad = 0;
  for (int n = 0; n < 2; ++n)
    for (int i = 0; i < count; ++i) {
      const uint32_t magnitude = (n ? b[i] : a[i]) & 0x7fffffff, exponent = magnitude >> 23;
      bad |= uint32_t(magnitude != 0 && (exponent < 127 - 62 || exponent > 127 + 62));
    }
  return bad == 0;
#endif
}

template <Type T, int M, int K, int kBlocks>
void mfma(Wave &w, const Op &op) {
  constexpr int kPerLane = K * kBlocks * M / 64;
  constexpr int kRegisters = M * M * kBlocks / 64;
  constexpr int kGroups = K / kPerLane;
  alignas(64) uint32_t element[64];
  alignas(64) uint32_t a[kBlocks * M * K];  // [block][k][i]
  alignas(64) uint32_t b[kBlocks * K * M];  // [block][k][j]
  alignas(64) uint32_t c[kRegisters * 64];

  const uint32_t *pa = w.base[0] + op.o[1].index * 64, *pb = w.base[0] + op.o[2].index * 64;
  for (int e = 0; e < kPerLane; ++e) {
    unpack<T>(pa, e, element);
    for (int group = 0; group < kBlocks * kGroups; ++group) {
      const int block = group / kGroups, k = group % kGroups * kPerLane + e;
      memcpy(a + (block * K + k) * M, element + group * M, M * 4);
    }
    unpack<T>(pb, e, element);
    if (op.blgp) {
      uint32_t t[64];
      memcpy(t, element, sizeof t);
      for (int i = 0; i < 64; ++i) element[i] = t[b_lane(op.blgp, i)];
    }
    for (int group = 0; group < kBlocks * kGroups; ++group) {
      const int block = group / kGroups, k = group % kGroups * kPerLane + e;
      memcpy(b + (block * K + k) * M, element + group * M, M * 4);
    }
  }
  const Operand &oc = op.o[3];
  if (oc.kind == Kind::kVector) {
    memcpy(c, w.base[0] + oc.index * 64, sizeof c);
  } else {
    const uint32_t x = scalar32(w, op, 3);
    for (int i = 0; i < kRegisters * 64; ++i) c[i] = x;
  }
  const bool exact = products_exact<T>(a, b, kBlocks * M * K);
  for (int block = 0; block < kBlocks; ++block) {
    const uint32_t *ab = a + a_block(op, block) * M * K, *bb = b + block * K * M;
    uint32_t *rows[M];
    for (int i = 0; i < M; ++i) {
      const int reg = M == 32 ? 16 * block + 4 * (i / 8) + i % 4 : M == 16 ? 4 * block + i % 4 : i;
      const int lane = M == 32 ? 32 * (i / 4 % 2) : M == 16 ? 16 * (i / 4) : 4 * block;
      rows[i] = c + reg * 64 + lane;
    }
    constexpr int kStep = M == 16 ? 8 : 4;
    for (int i = 0; i < M; i += kStep) {
      if (exact)
        rows_times<T, M, kStep, true>(rows + i, ab + i, K, bb);
      else
        rows_times<T, M, kStep, false>(rows + i, ab + i, K, bb);
    }
  }
  // The hardware's NaN payload is not defined; the host's would depend on operand order.
  uint32_t *d = w.v + op.o[0].index * 64;
  for (int i = 0; i < kRegisters * 64; ++i)
    d[i] = T != kI8 && (c[i] & 0x7fffffff) > 0x7f800000u ? 0x7fc00000u : c[i];
  w.mfma_flops += 2ull * M * M * K * kBlocks;
}

// v_mfma_f64_16x16x4: A row l % 16, k = l / 16; C, D: register pair r, row r * 4 + l / 16, column l
// % 16. v_mfma_f64_4x4x4: 4 blocks; A row l % 4, block l / 4 % 4, k = l / 16; C, D: row l / 16,
// block l / 4 % 4, column l % 4.
void mfma_f64_16x16x4(Wave &w, const Op &op) {
  const uint32_t *pa = w.base[0] + op.o[1].index * 64, *pb = w.base[0] + op.o[2].index * 64;
  alignas(64) uint32_t d[8 * 64];
  for (int r = 0; r < 4; ++r)
    for (int l = 0; l < 64; ++l) {
      double acc = op.o[3].kind == Kind::kVector
                       ? as_d(wide(w.base[0] + (op.o[3].index + 2 * r) * 64, l))
                       : as_d(scalar64(w, op, 3));
      const int row = 4 * r + l / 16, column = l % 16;
      for (int k = 0; k < 4; ++k)
        acc = __builtin_fma(as_d(wide(pa, 16 * k + row)), as_d(wide(pb, 16 * k + column)), acc);
      set_wide(d + 128 * r, l, acc == acc ? as_q(acc) : 0x7ff8000000000000ull);
    }
  memcpy(w.v + op.o[0].index * 64, d, sizeof d);
  w.mfma_flops += 2048;
}
void mfma_f64_4x4x4(Wave &w, const Op &op) {
  const uint32_t *pa = w.base[0] + op.o[1].index * 64, *pb = w.base[0] + op.o[2].index * 64;
  alignas(64) uint32_t d[2 * 64];
  for (int l = 0; l < 64; ++l) {
    double acc = op.o[3].kind == Kind::kVector ? as_d(wide(w.base[0] + op.o[3].index * 64, l))
                                               : as_d(scalar64(w, op, 3));
    const int row = l / 16, block = l / 4 % 4, column = l % 4;
    for (int k = 0; k < 4; ++k)
      acc = __builtin_fma(as_d(wide(pa, 16 * k + 4 * block + row)),
                          as_d(wide(pb, 16 * k + 4 * block + column)), acc);
    set_wide(d, l, acc == acc ? as_q(acc) : 0x7ff8000000000000ull);
  }
  memcpy(w.v + op.o[0].index * 64, d, sizeof d);
  w.mfma_flops += 512;
}

}  // namespace

const Row rows_mfma[] = {
    {"v_mfma_f32_32x32x2_f32", "f=iif", mfma<kF32, 32, 2, 1>, kRowMfma},
    {"v_mfma_f32_16x16x4_f32", "f=iif", mfma<kF32, 16, 4, 1>, kRowMfma},
    {"v_mfma_f32_32x32x1_2b_f32", "f=iif", mfma<kF32, 32, 1, 2>, kRowMfma},
    {"v_mfma_f32_16x16x1_4b_f32", "f=iif", mfma<kF32, 16, 1, 4>, kRowMfma},
    {"v_mfma_f32_4x4x1_16b_f32", "f=iif", mfma<kF32, 4, 1, 16>, kRowMfma},
    {"v_mfma_f32_32x32x16_f16", "f=iif", mfma<kF16, 32, 16, 1>, kRowMfma},
    {"v_mfma_f32_16x16x32_f16", "f=iif", mfma<kF16, 16, 32, 1>, kRowMfma},
    {"v_mfma_f32_32x32x8_f16", "f=iif", mfma<kF16, 32, 8, 1>, kRowMfma},
    {"v_mfma_f32_16x16x16_f16", "f=iif", mfma<kF16, 16, 16, 1>, kRowMfma},
    {"v_mfma_f32_32x32x4_2b_f16", "f=iif", mfma<kF16, 32, 4, 2>, kRowMfma},
    {"v_mfma_f32_16x16x4_4b_f16", "f=iif", mfma<kF16, 16, 4, 4>, kRowMfma},
    {"v_mfma_f32_4x4x4_16b_f16", "f=iif", mfma<kF16, 4, 4, 16>, kRowMfma},
    {"v_mfma_f32_32x32x16_bf16", "f=iif", mfma<kBf16, 32, 16, 1>, kRowMfma},
    {"v_mfma_f32_16x16x32_bf16", "f=iif", mfma<kBf16, 16, 32, 1>, kRowMfma},
    {"v_mfma_f32_32x32x8_bf16", "f=iif", mfma<kBf16, 32, 8, 1>, kRowMfma},
    {"v_mfma_f32_16x16x16_bf16", "f=iif", mfma<kBf16, 16, 16, 1>, kRowMfma},
    {"v_mfma_f32_32x32x4_2b_bf16", "f=iif", mfma<kBf16, 32, 4, 2>, kRowMfma},
    {"v_mfma_f32_16x16x4_4b_bf16", "f=iif", mfma<kBf16, 16, 4, 4>, kRowMfma},
    {"v_mfma_f32_4x4x4_16b_bf16", "f=iif", mfma<kBf16, 4, 4, 16>, kRowMfma},
    {"v_mfma_i32_32x32x32_i8", "i=iii", mfma<kI8, 32, 32, 1>, kRowMfma},
    {"v_mfma_i32_16x16x64_i8", "i=iii", mfma<kI8, 16, 64, 1>, kRowMfma},
    {"v_mfma_i32_32x32x16_i8", "i=iii", mfma<kI8, 32, 16, 1>, kRowMfma},
    {"v_mfma_i32_16x16x32_i8", "i=iii", mfma<kI8, 16, 32, 1>, kRowMfma},
    {"v_mfma_i32_32x32x4_2b_i8", "i=iii", mfma<kI8, 32, 4, 2>, kRowMfma},
    {"v_mfma_i32_16x16x4_4b_i8", "i=iii", mfma<kI8, 16, 4, 4>, kRowMfma},
    {"v_mfma_i32_4x4x4_16b_i8", "i=iii", mfma<kI8, 4, 4, 16>, kRowMfma},
    {"v_mfma_f64_16x16x4_f64", "d=lld", mfma_f64_16x16x4, kRowMfma},
    {"v_mfma_f64_4x4x4_4b_f64", "d=lld", mfma_f64_4x4x4, kRowMfma},
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
