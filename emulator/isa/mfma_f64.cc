// Matrix instructions on fp64: C first, then k upwards, one fused multiply-add each, as measured on
// CDNA2 and CDNA3 too (mfma_measured.h). `neg` flips the signs of A, B and C.
#include "emulator/isa/mfma.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

inline double signed_wide(const uint32_t *rows, int lane, const Op &op, int source) {
  const uint64_t sign = uint64_t(op.neg_lo >> source & 1) << 63;
  return as_d(wide(rows, lane) ^ sign);
}
inline double element_of_c(Wave &w, const Op &op, int pair, int lane) {
  if (op.o[3].kind == Kind::kVector)
    return signed_wide(w.base[0] + (op.o[3].index + 2 * uint32_t(pair)) * 64, lane, op, 2);
  return as_d(scalar64(w, op, 3) ^ uint64_t(op.neg_lo >> 2 & 1) << 63);
}
inline uint64_t bits_or_nan(double x) {
  return x == x ? as_q(x) : 0x7ff8000000000000ull;
}

// A row l % 16, k = l / 16; C, D: register pair r, row r * 4 + l / 16, column l % 16.
void mfma_16x16x4(Wave &w, const Op &op) {
  const uint32_t *pa = w.base[0] + op.o[1].index * 64, *pb = w.base[0] + op.o[2].index * 64;
  alignas(64) uint32_t d[8 * 64];
  for (int r = 0; r < 4; ++r)
    for (int l = 0; l < 64; ++l) {
      double acc = element_of_c(w, op, r, l);
      const int row = 4 * r + l / 16, column = l % 16;
      for (int k = 0; k < 4; ++k)
        acc = __builtin_fma(signed_wide(pa, 16 * k + row, op, 0),
                            signed_wide(pb, 16 * k + column, op, 1), acc);
      set_wide(d + 128 * r, l, bits_or_nan(acc));
    }
  memcpy(w.v + op.o[0].index * 64, d, sizeof d);
  w.mfma_flops += 2048;
}

// 4 blocks; A row l % 4, block l / 4 % 4, k = l / 16; C, D: row l / 16, block l / 4 % 4, column l % 4.
void mfma_4x4x4(Wave &w, const Op &op) {
  const uint32_t *pa = w.base[0] + op.o[1].index * 64, *pb = w.base[0] + op.o[2].index * 64;
  alignas(64) uint32_t d[2 * 64];
  for (int l = 0; l < 64; ++l) {
    double acc = element_of_c(w, op, 0, l);
    const int row = l / 16, block = l / 4 % 4, column = l % 4;
    for (int k = 0; k < 4; ++k)
      acc = __builtin_fma(signed_wide(pa, 16 * k + 4 * block + row, op, 0),
                          signed_wide(pb, 16 * k + 4 * block + column, op, 1), acc);
    set_wide(d, l, bits_or_nan(acc));
  }
  memcpy(w.v + op.o[0].index * 64, d, sizeof d);
  w.mfma_flops += 512;
}

}  // namespace

const Row rows_mfma_f64[] = {
    {"v_mfma_f64_16x16x4f64", "d=lld", mfma_16x16x4, kRowMfma},
    {"v_mfma_f64_16x16x4_f64", "d=lld", mfma_16x16x4, kRowMfma},
    {"v_mfma_f64_4x4x4f64", "d=lld", mfma_4x4x4, kRowMfma},
    {"v_mfma_f64_4x4x4_4b_f64", "d=lld", mfma_4x4x4, kRowMfma},
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
