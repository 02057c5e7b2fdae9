// Dense matrix instructions on fp32, xf32, f16, bf16, fp8 and integers.
#include "emulator/isa/mfma.h"

#include "emulator/isa/mfma_measured.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

// An instruction does kBlocks independent products of M x K by K x M.
// Register layouts (AMD's public matrix instruction calculator for the CDNA2 and CDNA3 forms; for
// the K-doubled gfx950 forms the same rule with twice the elements a lane):
//   A[i][k], B[k][j] of a block: a lane holds `per_lane` consecutive k;
//     lane = i + M * (k / per_lane + (K / per_lane) * block), element k % per_lane
//   C, D: result_rows() in mfma.h

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

template <Type TA, int M, int K, int kBlocks, Type TB = TA>
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
    unpack<TA>(pa, e, element);
    for (int group = 0; group < kBlocks * kGroups; ++group) {
      const int block = group / kGroups, k = group % kGroups * kPerLane + e;
      memcpy(a + (block * K + k) * M, element + group * M, M * 4);
    }
    unpack<TB>(pb, e, element);
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
  load_c(w, op, 3, c, kRegisters);
  const bool measured = TA != kF32 && TA != kI8 && (op.flags & kMeasured);
  const bool exact = products_exact<TA>(a, kBlocks * M * K, b, kBlocks * M * K);
  for (int block = 0; block < kBlocks; ++block) {
    const uint32_t *ab = a + a_block(op, block) * M * K, *bb = b + block * K * M;
    uint32_t *rows[M];
    result_rows<M>(c, block, rows);
    if (measured)
      measured_block<TA, TB, M>(rows, ab, K, bb, rule_of(TA, op.architecture, kPerLane == 2));
    else
      block_times<TA, M>(rows, ab, K, bb, exact);
  }
  store_d<TA == kI8>(w, op, c, kRegisters);
  w.mfma_flops += 2ull * M * M * K * kBlocks;
}

// fp8 means FNUZ on gfx942 and OCP on gfx950.
template <bool kBfA, bool kBfB, int M, int K>
void mfma8(Wave &w, const Op &op) {
  if (op.architecture == Architecture::kGfx942)
    mfma<kBfA ? kBf8Fnuz : kFp8Fnuz, M, K, 1, kBfB ? kBf8Fnuz : kFp8Fnuz>(w, op);
  else
    mfma<kBfA ? kBf8 : kFp8, M, K, 1, kBfB ? kBf8 : kFp8>(w, op);
}

}  // namespace

#define ROW(name, function) \
  { name, "f=iif", function, kRowMfma }
#define ROW_I8(name, function) \
  { name, "i=iii", function, kRowMfma }

// Two spellings: gfx90a's, and that of gfx942 and gfx950.
const Row rows_mfma[] = {
    ROW("v_mfma_f32_32x32x2f32", (mfma<kF32, 32, 2, 1>)),
    ROW("v_mfma_f32_32x32x2_f32", (mfma<kF32, 32, 2, 1>)),
    ROW("v_mfma_f32_16x16x4f32", (mfma<kF32, 16, 4, 1>)),
    ROW("v_mfma_f32_16x16x4_f32", (mfma<kF32, 16, 4, 1>)),
    ROW("v_mfma_f32_32x32x1f32", (mfma<kF32, 32, 1, 2>)),
    ROW("v_mfma_f32_32x32x1_2b_f32", (mfma<kF32, 32, 1, 2>)),
    ROW("v_mfma_f32_16x16x1f32", (mfma<kF32, 16, 1, 4>)),
    ROW("v_mfma_f32_16x16x1_4b_f32", (mfma<kF32, 16, 1, 4>)),
    ROW("v_mfma_f32_4x4x1f32", (mfma<kF32, 4, 1, 16>)),
    ROW("v_mfma_f32_4x4x1_16b_f32", (mfma<kF32, 4, 1, 16>)),
    ROW("v_mfma_f32_32x32x4_xf32", (mfma<kXf32, 32, 4, 1>)),
    ROW("v_mfma_f32_16x16x8_xf32", (mfma<kXf32, 16, 8, 1>)),

    ROW("v_mfma_f32_32x32x16_f16", (mfma<kF16, 32, 16, 1>)),
    ROW("v_mfma_f32_16x16x32_f16", (mfma<kF16, 16, 32, 1>)),
    ROW("v_mfma_f32_32x32x8f16", (mfma<kF16, 32, 8, 1>)),
    ROW("v_mfma_f32_32x32x8_f16", (mfma<kF16, 32, 8, 1>)),
    ROW("v_mfma_f32_16x16x16f16", (mfma<kF16, 16, 16, 1>)),
    ROW("v_mfma_f32_16x16x16_f16", (mfma<kF16, 16, 16, 1>)),
    ROW("v_mfma_f32_32x32x4f16", (mfma<kF16, 32, 4, 2>)),
    ROW("v_mfma_f32_32x32x4_2b_f16", (mfma<kF16, 32, 4, 2>)),
    ROW("v_mfma_f32_16x16x4f16", (mfma<kF16, 16, 4, 4>)),
    ROW("v_mfma_f32_16x16x4_4b_f16", (mfma<kF16, 16, 4, 4>)),
    ROW("v_mfma_f32_4x4x4f16", (mfma<kF16, 4, 4, 16>)),
    ROW("v_mfma_f32_4x4x4_16b_f16", (mfma<kF16, 4, 4, 16>)),

    ROW("v_mfma_f32_32x32x16_bf16", (mfma<kBf16, 32, 16, 1>)),
    ROW("v_mfma_f32_16x16x32_bf16", (mfma<kBf16, 16, 32, 1>)),
    ROW("v_mfma_f32_32x32x8bf16_1k", (mfma<kBf16, 32, 8, 1>)),
    ROW("v_mfma_f32_32x32x8_bf16", (mfma<kBf16, 32, 8, 1>)),
    ROW("v_mfma_f32_16x16x16bf16_1k", (mfma<kBf16, 16, 16, 1>)),
    ROW("v_mfma_f32_16x16x16_bf16", (mfma<kBf16, 16, 16, 1>)),
    ROW("v_mfma_f32_32x32x4bf16_1k", (mfma<kBf16, 32, 4, 2>)),
    ROW("v_mfma_f32_32x32x4_2b_bf16", (mfma<kBf16, 32, 4, 2>)),
    ROW("v_mfma_f32_16x16x4bf16_1k", (mfma<kBf16, 16, 4, 4>)),
    ROW("v_mfma_f32_16x16x4_4b_bf16", (mfma<kBf16, 16, 4, 4>)),
    ROW("v_mfma_f32_4x4x4bf16_1k", (mfma<kBf16, 4, 4, 16>)),
    ROW("v_mfma_f32_4x4x4_16b_bf16", (mfma<kBf16, 4, 4, 16>)),
    ROW("v_mfma_f32_32x32x4bf16", (mfma<kBf16, 32, 4, 1>)),
    ROW("v_mfma_f32_16x16x8bf16", (mfma<kBf16, 16, 8, 1>)),
    ROW("v_mfma_f32_32x32x2bf16", (mfma<kBf16, 32, 2, 2>)),
    ROW("v_mfma_f32_16x16x2bf16", (mfma<kBf16, 16, 2, 4>)),
    ROW("v_mfma_f32_4x4x2bf16", (mfma<kBf16, 4, 2, 16>)),

    ROW("v_mfma_f32_32x32x16_fp8_fp8", (mfma8<false, false, 32, 16>)),
    ROW("v_mfma_f32_32x32x16_fp8_bf8", (mfma8<false, true, 32, 16>)),
    ROW("v_mfma_f32_32x32x16_bf8_fp8", (mfma8<true, false, 32, 16>)),
    ROW("v_mfma_f32_32x32x16_bf8_bf8", (mfma8<true, true, 32, 16>)),
    ROW("v_mfma_f32_16x16x32_fp8_fp8", (mfma8<false, false, 16, 32>)),
    ROW("v_mfma_f32_16x16x32_fp8_bf8", (mfma8<false, true, 16, 32>)),
    ROW("v_mfma_f32_16x16x32_bf8_fp8", (mfma8<true, false, 16, 32>)),
    ROW("v_mfma_f32_16x16x32_bf8_bf8", (mfma8<true, true, 16, 32>)),

    ROW_I8("v_mfma_i32_32x32x32_i8", (mfma<kI8, 32, 32, 1>)),
    ROW_I8("v_mfma_i32_16x16x64_i8", (mfma<kI8, 16, 64, 1>)),
    ROW_I8("v_mfma_i32_32x32x16_i8", (mfma<kI8, 32, 16, 1>)),
    ROW_I8("v_mfma_i32_16x16x32_i8", (mfma<kI8, 16, 32, 1>)),
    ROW_I8("v_mfma_i32_32x32x8i8", (mfma<kI8, 32, 8, 1>)),
    ROW_I8("v_mfma_i32_16x16x16i8", (mfma<kI8, 16, 16, 1>)),
    ROW_I8("v_mfma_i32_32x32x4i8", (mfma<kI8, 32, 4, 2>)),
    ROW_I8("v_mfma_i32_32x32x4_2b_i8", (mfma<kI8, 32, 4, 2>)),
    ROW_I8("v_mfma_i32_16x16x4i8", (mfma<kI8, 16, 4, 4>)),
    ROW_I8("v_mfma_i32_16x16x4_4b_i8", (mfma<kI8, 16, 4, 4>)),
    ROW_I8("v_mfma_i32_4x4x4i8", (mfma<kI8, 4, 4, 16>)),
    ROW_I8("v_mfma_i32_4x4x4_16b_i8", (mfma<kI8, 4, 4, 16>)),
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
