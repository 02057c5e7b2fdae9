// V_SMFMAC_*: D += A B, where A stores two of every four k (4:2 sparsity) and an index which.
//
// Layouts: of A a lane holds K / 2 * M / 64 consecutive stored elements of row l % M, which stand for
// twice as many consecutive k. B: as the dense forms of the same K, that is consecutive k in the
// gfx942 forms (AMD's matrix instruction calculator); the gfx950 forms with twice the K hold k in two
// halves, the second from K / 2 on (Composable Kernel's description of these instructions).
// Index: two bits a stored element, its k inside its four. Lanes need `index_bits`; smaller ones than
// 32 come from the part of the register that abid names, or the lowest when cbsz is not 0 (CDNA3 ISA,
// "Sparse matrices"; LLVM's MLIR verifier for the gfx950 forms).
#include "emulator/isa/mfma.h"
#include "emulator/isa/mfma_measured.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

template <Type TA, int M, int K, bool kHalves, Type TB = TA>
void smfmac(Wave &w, const Op &op) {
  constexpr int kStored = K / 2 * M / 64, kPerLane = K * M / 64;  // elements of A and B a lane
  constexpr int kIndexBits = 2 * kStored, kRegisters = M * M / 64;
  alignas(64) uint32_t a[K / 2 * M];  // [stored][i]
  uint8_t where[K / 2 * M];           // their k
  alignas(64) uint32_t b[K * M], c[kRegisters * 64], element[64];

  const uint32_t *pa = w.base[0] + op.o[1].index * 64, *pb = w.base[0] + op.o[2].index * 64;
  const uint32_t *index = source(w, op, 3);
  const uint32_t set = kIndexBits == 32 || op.cbsz ? 0 : op.abid & (32 / kIndexBits - 1);
  for (int e = 0; e < kStored; ++e) {
    unpack<TA>(pa, e, element);
    for (int l = 0; l < 64; ++l) {
      const int group = l / M, s = group * kStored + e;
      const uint32_t bits = index[l] >> (set * kIndexBits % 32) >> (2 * e) & 3;
      a[s * M + l % M] = element[l];
      where[s * M + l % M] = uint8_t(group * kPerLane + 4 * (e / 2) + int(bits));
    }
  }
  for (int e = 0; e < kPerLane; ++e) {
    unpack<TB>(pb, e, element);
    for (int group = 0; group < 64 / M; ++group) {
      const int k = !kHalves           ? group * kPerLane + e
                    : e < kPerLane / 2 ? group * kPerLane / 2 + e
                                       : K / 2 + group * kPerLane / 2 + e - kPerLane / 2;
      memcpy(b + k * M, element + group * M, M * 4);
    }
  }
  load_c(w, op, 0, c, kRegisters);
  uint32_t *rows[M];
  result_rows<M>(c, 0, rows);
  const bool measured = TA != kI8 && (op.flags & kMeasured);
  const bool exact = products_exact<TA>(a, K / 2 * M, b, K * M);
  for (int i = 0; i < M; ++i) {
    // The rows of B that this row of A meets, and its elements as an [s][1] matrix.
    alignas(64) uint32_t met[K / 2 * M], x[K / 2];
    for (int s = 0; s < K / 2; ++s) {
      x[s] = a[s * M + i];
      memcpy(met + s * M, b + where[s * M + i] * M, M * 4);
    }
    if (measured) {
      const Rule rule = rule_of(TA, op.architecture, false);
      for (int j = 0; j < M; ++j) {
        Factor fa[K / 2], fb[K / 2];
        for (int s = 0; s < K / 2; ++s) {
          fa[s] = factor(x[s], minimum_exponent(TA));
          fb[s] = factor(met[s * M + j], minimum_exponent(TB));
        }
        rows[i][j] = as_u(measured_sum(fa, fb, K / 2, as_f(rows[i][j]), rule.how, rule.group,
                                       minimum_exponent(TA)));
      }
    } else {
      for (int s = 0; s < K / 2; ++s) {
        uint32_t *row = rows[i];
        for (int j = 0; j < M; ++j)
          row[j] = exact ? accumulate<TA, true>(x[s], met[s * M + j], row[j])
                         : accumulate<TA, false>(x[s], met[s * M + j], row[j]);
      }
    }
  }
  store_d<TA == kI8>(w, op, c, kRegisters);
  w.mfma_flops += 2ull * M * M * K;
}

// fp8 means FNUZ on gfx942 and OCP on gfx950.
template <bool kBfA, bool kBfB, int M, int K, bool kHalves>
void smfmac8(Wave &w, const Op &op) {
  if (op.architecture == Architecture::kGfx942)
    smfmac<kBfA ? kBf8Fnuz : kFp8Fnuz, M, K, kHalves, kBfB ? kBf8Fnuz : kFp8Fnuz>(w, op);
  else
    smfmac<kBfA ? kBf8 : kFp8, M, K, kHalves, kBfB ? kBf8 : kFp8>(w, op);
}

}  // namespace

#define ROW(name, function) \
  { name, "f&iii", function, kRowMfma }
#define ROW_I8(name, function) \
  { name, "i&iii", function, kRowMfma }

const Row rows_smfmac[] = {
    ROW("v_smfmac_f32_16x16x32_f16", (smfmac<kF16, 16, 32, false>)),
    ROW("v_smfmac_f32_32x32x16_f16", (smfmac<kF16, 32, 16, false>)),
    ROW("v_smfmac_f32_16x16x32_bf16", (smfmac<kBf16, 16, 32, false>)),
    ROW("v_smfmac_f32_32x32x16_bf16", (smfmac<kBf16, 32, 16, false>)),
    ROW("v_smfmac_f32_16x16x64_fp8_fp8", (smfmac8<false, false, 16, 64, false>)),
    ROW("v_smfmac_f32_16x16x64_fp8_bf8", (smfmac8<false, true, 16, 64, false>)),
    ROW("v_smfmac_f32_16x16x64_bf8_fp8", (smfmac8<true, false, 16, 64, false>)),
    ROW("v_smfmac_f32_16x16x64_bf8_bf8", (smfmac8<true, true, 16, 64, false>)),
    ROW("v_smfmac_f32_32x32x32_fp8_fp8", (smfmac8<false, false, 32, 32, false>)),
    ROW("v_smfmac_f32_32x32x32_fp8_bf8", (smfmac8<false, true, 32, 32, false>)),
    ROW("v_smfmac_f32_32x32x32_bf8_fp8", (smfmac8<true, false, 32, 32, false>)),
    ROW("v_smfmac_f32_32x32x32_bf8_bf8", (smfmac8<true, true, 32, 32, false>)),
    ROW_I8("v_smfmac_i32_16x16x64_i8", (smfmac<kI8, 16, 64, false>)),
    ROW_I8("v_smfmac_i32_32x32x32_i8", (smfmac<kI8, 32, 32, false>)),

    ROW("v_smfmac_f32_16x16x64_f16", (smfmac<kF16, 16, 64, true>)),
    ROW("v_smfmac_f32_32x32x32_f16", (smfmac<kF16, 32, 32, true>)),
    ROW("v_smfmac_f32_16x16x64_bf16", (smfmac<kBf16, 16, 64, true>)),
    ROW("v_smfmac_f32_32x32x32_bf16", (smfmac<kBf16, 32, 32, true>)),
    ROW("v_smfmac_f32_16x16x128_fp8_fp8", (smfmac8<false, false, 16, 128, true>)),
    ROW("v_smfmac_f32_16x16x128_fp8_bf8", (smfmac8<false, true, 16, 128, true>)),
    ROW("v_smfmac_f32_16x16x128_bf8_fp8", (smfmac8<true, false, 16, 128, true>)),
    ROW("v_smfmac_f32_16x16x128_bf8_bf8", (smfmac8<true, true, 16, 128, true>)),
    ROW("v_smfmac_f32_32x32x64_fp8_fp8", (smfmac8<false, false, 32, 64, true>)),
    ROW("v_smfmac_f32_32x32x64_fp8_bf8", (smfmac8<false, true, 32, 64, true>)),
    ROW("v_smfmac_f32_32x32x64_bf8_fp8", (smfmac8<true, false, 32, 64, true>)),
    ROW("v_smfmac_f32_32x32x64_bf8_bf8", (smfmac8<true, true, 32, 64, true>)),
    ROW_I8("v_smfmac_i32_16x16x128_i8", (smfmac<kI8, 16, 128, true>)),
    ROW_I8("v_smfmac_i32_32x32x64_i8", (smfmac<kI8, 32, 64, true>)),
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
