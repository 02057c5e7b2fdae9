// V_MFMA_F32_*_F8F6F4 and V_MFMA_SCALE_F32_*: fp8, fp6 and fp4 in any mix, with or without scales.
// cbsz and blgp are the formats of A and B, not broadcasts (CDNA4 ISA, "Matrix Core").
#include "emulator/isa/mfma.h"
#include "emulator/isa/mfma_measured.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

// A lane holds 32 elements of row (column) l % M, with g = l / M:
//   fp8: registers 0-3 k = 16 g .., registers 4-7 k = K / 2 + 16 g ..
//   fp6, fp4: k = 32 g ..
// Scales: lane l has in the byte that op_sel and op_sel_hi name the E8M0 scale of row l % M and of
// k = 32 (l / M) .. , counted in k, not in where the elements are.
template <int M>
constexpr int k_of(bool byte_format, int group, int e) {
  return !byte_format ? 32 * group + e : e < 16 ? 16 * group + e : 1024 / M + 16 * group + e - 16;
}

constexpr Type kFormats[] = {kFp8, kBf8, kFp6, kBf6, kFp4};

struct Scales {
  alignas(64) float low[64], high[64];  // factors of a lane's elements 0-15 and 16-31
};

// [k][i] from registers.
template <Type T, int M, bool kScaled>
void unpack_operand(const uint32_t *rows, const Scales &s, uint32_t *out) {
  constexpr bool kByte = bits_of(T) == 8;
  alignas(64) uint32_t element[64];
  for (int e = 0; e < 32; ++e) {
    unpack<T>(rows, e, element);
    if (kScaled) {
      const float *f = kByte && e >= 16 ? s.high : s.low;
      LANES element[i] = as_u(as_f(element[i]) * f[i]);
    }
    for (int g = 0; g < 64 / M; ++g) memcpy(out + k_of<M>(kByte, g, e) * M, element + g * M, M * 4);
  }
}
template <int M, bool kScaled>
void unpack_format(uint32_t format, const uint32_t *rows, const Scales &s, uint32_t *out) {
  switch (format) {
    case 0:
      return unpack_operand<kFp8, M, kScaled>(rows, s, out);
    case 1:
      return unpack_operand<kBf8, M, kScaled>(rows, s, out);
    case 2:
      return unpack_operand<kFp6, M, kScaled>(rows, s, out);
    case 3:
      return unpack_operand<kBf6, M, kScaled>(rows, s, out);
    default:
      return unpack_operand<kFp4, M, kScaled>(rows, s, out);
  }
}

// The E8M0 bytes of one operand by block and row, and as factors of each lane's elements.
template <int M>
void read_scales(Wave &w, const Op &op, int n, int side, uint32_t format, uint8_t *bytes,
                 Scales &s) {
  const uint32_t *p = source(w, op, n);
  const uint32_t byte = (op.op_sel_hi >> side & 1) << 1 | (op.op_sel >> side & 1);
  for (int l = 0; l < 64; ++l) bytes[l] = uint8_t(p[l] >> (8 * byte));
  for (int l = 0; l < 64; ++l)
    for (int half = 0; half < 2; ++half) {
      const int block = k_of<M>(format < 2, l / M, 16 * half) / 32;
      const uint32_t x = bytes[block * M + l % M];
      (half ? s.high : s.low)[l] = as_f(x == 255 ? 0x7fc00000u : x == 0 ? 0x00400000u : x << 23);
    }
}

// Factors up to 2^111 keep every fp8 number finite in fp32; tiny ones keep its three or four bits.
inline bool scales_small(const uint8_t *bytes) {
  int large = 0;
  for (int i = 0; i < 64; ++i) large |= bytes[i] > 238 && bytes[i] < 255;
  return !large;
}

// a b + c rounded once, for products beyond fp32's range: the sum in fp64 is rounded to odd, so that
// the second rounding sees whether it was exact.
inline float fma_wide(double product, float c) {
  const double q = double(c), s = product + q, bb = s - product;
  const double error = (product - (s - bb)) + (q - bb);
  uint64_t u = as_q(s);
  if (error != 0 && error == error) u = ((error < 0) != (s < 0) ? u - 1 : u) | 1;
  return float(as_d(u));
}

template <int M, bool kScaled>
void mfma_f8f6f4(Wave &w, const Op &op) {
  constexpr int K = 2048 / M, kRegisters = M * M / 64;
  alignas(64) uint32_t a[K * M], b[K * M], c[kRegisters * 64];
  if (op.cbsz > 4 || op.blgp > 4) return fault(w, op, -1, "this matrix format is not defined");
  const uint32_t *pa = w.base[0] + op.o[1].index * 64, *pb = w.base[0] + op.o[2].index * 64;
  Scales sa, sb;
  uint8_t bytes_a[64], bytes_b[64];
  if (kScaled) {
    read_scales<M>(w, op, 4, 0, op.cbsz, bytes_a, sa);
    read_scales<M>(w, op, 5, 1, op.blgp, bytes_b, sb);
  }
  const bool measured = op.flags & kMeasured;
  const bool fast = !measured && (!kScaled || (scales_small(bytes_a) && scales_small(bytes_b)));
  load_c(w, op, 3, c, kRegisters);
  uint32_t *rows[M];
  result_rows<M>(c, 0, rows);
  if (fast) {
    unpack_format<M, kScaled>(op.cbsz, pa, sa, a);
    unpack_format<M, kScaled>(op.blgp, pb, sb, b);
    block_times<kFp8, M>(rows, a, K, b, products_exact<kFp8>(a, K * M, b, K * M));
  } else {
    unpack_format<M, false>(op.cbsz, pa, sa, a);
    unpack_format<M, false>(op.blgp, pb, sb, b);
    const int lowest_a = minimum_exponent(kFormats[op.cbsz]),
              lowest_b = minimum_exponent(kFormats[op.blgp]);
    auto scaled = [](uint32_t x, int lowest, uint32_t byte) {
      Factor f = factor(x, lowest, int(byte) - 127);
      if (byte == 255) f.value = __builtin_nan("");
      return f;
    };
    for (int i = 0; i < M; ++i)
      for (int j = 0; j < M; ++j) {
        Factor x[K], y[K];
        for (int k = 0; k < K; ++k) {
          const int block = k / 32 * M;
          x[k] = scaled(a[k * M + i], lowest_a, kScaled ? bytes_a[block + i] : 127);
          y[k] = scaled(b[k * M + j], lowest_b, kScaled ? bytes_b[block + j] : 127);
        }
        float sum = as_f(rows[i][j]);
        if (measured) {
          const Rule rule = rule_of(kFp8, op.architecture, false);
          sum = measured_sum(x, y, K, sum, rule.how, rule.group, 0);
        } else {
          for (int k = 0; k < K; ++k) sum = fma_wide(x[k].value * y[k].value, sum);
        }
        rows[i][j] = as_u(sum);
      }
  }
  store_d<false>(w, op, c, kRegisters);
  w.mfma_flops += 2ull * M * M * K;
}

}  // namespace

const Row rows_mfma_scaled[] = {
    {"v_mfma_f32_16x16x128_f8f6f4", "f=iif", mfma_f8f6f4<16, false>, kRowMfma},
    {"v_mfma_f32_32x32x64_f8f6f4", "f=iif", mfma_f8f6f4<32, false>, kRowMfma},
    {"v_mfma_scale_f32_16x16x128_f8f6f4", "f=iifii", mfma_f8f6f4<16, true>, kRowMfma | kRowPacked},
    {"v_mfma_scale_f32_32x32x64_f8f6f4", "f=iifii", mfma_f8f6f4<32, true>, kRowMfma | kRowPacked},
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
