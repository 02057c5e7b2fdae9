// Matrix products: D[32x32] = A[32x16] * B[16x32] + C, fp32 accumulation, one wave.
//
// Lane l, element j (CDNA4 ISA, "Matrix Arithmetic Instructions"; register layout of 32x32x16):
//   A: row l % 32, k = 8 (l / 32) + j        B: column l % 32, the same k
//   C, D: column l % 32, row 8 (i / 4) + 4 (l / 32) + i % 4, i < 16
#pragma once

#include "common/elements.hip.h"

namespace flydsl::kernels {

template <class Element>
FLYDSL_DEVICE f32x16 mfma_32x32x16(u32x4 a, u32x4 b, f32x16 c) {
  using operand = vec<typename Element::scalar, 8>;
  if constexpr (__is_same(Element, bf16)) {
    return __builtin_amdgcn_mfma_f32_32x32x16_bf16(bits_as<operand>(a), bits_as<operand>(b), c, 0,
                                                   0, 0);
  } else {
    return __builtin_amdgcn_mfma_f32_32x32x16_f16(bits_as<operand>(a), bits_as<operand>(b), c, 0, 0,
                                                  0);
  }
}

// D[16x16] = A[16x32] * B[32x16] + C. Lane l, element j:
//   A: row l % 16, k = 8 (l / 16) + j        B: column l % 16, the same k
//   C, D: column l % 16, row 4 (l / 16) + i, i < 4
template <class Element>
FLYDSL_DEVICE f32x4 mfma_16x16x32(u32x4 a, u32x4 b, f32x4 c) {
  using operand = vec<typename Element::scalar, 8>;
  if constexpr (__is_same(Element, bf16)) {
    return __builtin_amdgcn_mfma_f32_16x16x32_bf16(bits_as<operand>(a), bits_as<operand>(b), c, 0,
                                                   0, 0);
  } else {
    return __builtin_amdgcn_mfma_f32_16x16x32_f16(bits_as<operand>(a), bits_as<operand>(b), c, 0, 0,
                                                  0);
  }
}

}  // namespace flydsl::kernels
