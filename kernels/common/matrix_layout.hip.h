// Which elements of a product of 16 x 16 matrices a lane holds, for each kind of matrix instruction: arithmetic only, so that a test on
// the host applies the same maps (test/kernels/matrix_layout_test.cc).
//
// Of D[16 x 16] = A[16 x depth] B[depth x 16] + C, lane l holds
//   of A row l % 16, of B column l % 16, and of both k_of(l, j) as element j: `run` neighbours from a multiple of `run` on, then maybe others
//   of C and D column l % 16, and row_of(l, i) as sum i
//
// Sums become an operand of another product, their rows its k, without a look at the other matrix: element j of lane l is the sum that
// source_of(l, j) names, of its own or of lane l ^ 16.
#pragma once

namespace flydsl::kernels {

struct SumSource {
  unsigned block, sum;  // of 16 rows, of the block's sums
  bool of_other_half;   // of lane l ^ 16
};

// v_mfma_f32_16x16x16_f16 and _bf16 of gfx90a, gfx942 and gfx950 (CDNA3 ISA, "Matrix Arithmetic Instructions").
struct MfmaLayout {
  static constexpr unsigned lanes = 64, depth = 16, elements = 4, run = 4, sums = 4;
  static constexpr unsigned k_of(unsigned lane, unsigned j) { return 4 * (lane / 16) + j; }
  static constexpr unsigned row_of(unsigned lane, unsigned i) { return 4 * (lane / 16) + i; }
  static constexpr SumSource source_of(unsigned, unsigned j) { return {0, j, false}; }
};

// v_wmma_f32_16x16x16_f16 and _bf16 of gfx11, waves of 32 (RDNA3 ISA, "Wave Matrix Multiply Accumulate"; AMD's matrix instruction
// calculator, rdna3): both halves of the wave hold all of A and B, and share the rows of C and D in turn.
struct WmmaLayoutGfx11 {
  static constexpr unsigned lanes = 32, depth = 16, elements = 16, run = 8, sums = 8;
  static constexpr unsigned k_of(unsigned, unsigned j) { return j; }
  static constexpr unsigned row_of(unsigned lane, unsigned i) { return 2 * i + lane / 16; }
  static constexpr SumSource source_of(unsigned lane, unsigned j) {
    return {0, j / 2, j % 2 != lane / 16};
  }
};

// The same instructions of gfx12 (RDNA4 ISA, the same chapter; the calculator, rdna4): the halves share k and rows, eight each.
struct WmmaLayoutGfx12 {
  static constexpr unsigned lanes = 32, depth = 16, elements = 8, run = 8, sums = 8;
  static constexpr unsigned k_of(unsigned lane, unsigned j) { return 8 * (lane / 16) + j; }
  static constexpr unsigned row_of(unsigned lane, unsigned i) { return 8 * (lane / 16) + i; }
  static constexpr SumSource source_of(unsigned, unsigned j) { return {0, j, false}; }
};

// v_wmma_f32_16x16x32_f16 and _bf16 of gfx1250 (Triton's WMMA version 3 with kWidth 8, and ROCm's rocjitsu, which names the CDNA5 ISA,
// 7.12.2): twice that of gfx12, one after the other in k.
struct WmmaLayoutGfx1250 {
  static constexpr unsigned lanes = 32, depth = 32, elements = 16, run = 8, sums = 8;
  static constexpr unsigned k_of(unsigned lane, unsigned j) {
    return 16 * (j / 8) + 8 * (lane / 16) + j % 8;
  }
  static constexpr unsigned row_of(unsigned lane, unsigned i) { return 8 * (lane / 16) + i; }
  static constexpr SumSource source_of(unsigned, unsigned j) { return {j / 8, j % 8, false}; }
};

}  // namespace flydsl::kernels
