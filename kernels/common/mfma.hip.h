// Matrix products: D[32x32] = A[32x16] * B[16x32] + C, fp32 accumulation, one wave.
//
// Lane l, element j (CDNA4 ISA, "Matrix Arithmetic Instructions"; register layout of 32x32x16):
//   A: row l % 32, k = 8 (l / 32) + j        B: column l % 32, the same k
//   C, D: column l % 32, row 8 (i / 4) + 4 (l / 32) + i % 4, i < 16
//
// Before gfx950 two products of half the depth, of elements 0 to 3 and 4 to 7 of both operands: k = 4 (l / 32) + j there, so that
// operands meet in another order of k, the same for both; C and D are laid out alike (CDNA3 ISA, the same chapter).
#pragma once

#include "common/elements.hip.h"
#include "common/isa.hip.h"

namespace flydsl::kernels {

// Products of half the depth: `first` is 0 or 2.
template <class Element>
FLYDSL_DEVICE f32x16 mfma_32x32x8(u32x4 a, u32x4 b, int first, f32x16 c) {
  const u32x2 a_part = {a[first], a[first + 1]}, b_part = {b[first], b[first + 1]};
  if constexpr (__is_same(Element, bf16)) {
    return __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(bits_as<vec<short, 4>>(a_part),
                                                    bits_as<vec<short, 4>>(b_part), c, 0, 0, 0);
  } else {
    return __builtin_amdgcn_mfma_f32_32x32x8f16(bits_as<vec<_Float16, 4>>(a_part),
                                                bits_as<vec<_Float16, 4>>(b_part), c, 0, 0, 0);
  }
}
template <class Element>
FLYDSL_DEVICE f32x4 mfma_16x16x16(u32x4 a, u32x4 b, int first, f32x4 c) {
  const u32x2 a_part = {a[first], a[first + 1]}, b_part = {b[first], b[first + 1]};
  if constexpr (__is_same(Element, bf16)) {
    return __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(bits_as<vec<short, 4>>(a_part),
                                                     bits_as<vec<short, 4>>(b_part), c, 0, 0, 0);
  } else {
    return __builtin_amdgcn_mfma_f32_16x16x16f16(bits_as<vec<_Float16, 4>>(a_part),
                                                 bits_as<vec<_Float16, 4>>(b_part), c, 0, 0, 0);
  }
}

template <class Element>
FLYDSL_DEVICE f32x16 mfma_32x32x16(u32x4 a, u32x4 b, f32x16 c) {
  using operand = vec<typename Element::scalar, 8>;
  if constexpr (!kGfx950) {
    return mfma_32x32x8<Element>(a, b, 2, mfma_32x32x8<Element>(a, b, 0, c));
  } else if constexpr (__is_same(Element, bf16)) {
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
  if constexpr (!kGfx950) {
    return mfma_16x16x16<Element>(a, b, 2, mfma_16x16x16<Element>(a, b, 0, c));
  } else if constexpr (__is_same(Element, bf16)) {
    return __builtin_amdgcn_mfma_f32_16x16x32_bf16(bits_as<operand>(a), bits_as<operand>(b), c, 0,
                                                   0, 0);
  } else {
    return __builtin_amdgcn_mfma_f32_16x16x32_f16(bits_as<operand>(a), bits_as<operand>(b), c, 0, 0,
                                                  0);
  }
}

}  // namespace flydsl::kernels
