// Element formats of scaled matrix products, and the instruction: D[32x32] = A[32x64] 2^sa * B[64x32] 2^sb + C.
//
// Lane l, with g = l / 32 (CDNA4 ISA, "Matrix Core"; bytes of its registers in order):
//   e4m3, e5m2: row l % 32, k = 16 g .. 16 g + 15, then 32 + 16 g ..     e2m1: k = 32 g .. 32 g + 31, the low half of a byte first
//   scale: of row l % 32 and k = 32 g .., so for bytes not of the elements that the lane holds
//   C, D: column l % 32, row 8 (i / 4) + 4 (l / 32) + i % 4, i < 16
#pragma once

#include "common/float8.hip.h"

namespace flydsl::kernels::scaled_gemm {

// As cbsz and blgp name them.
constexpr int kE4m3 = 0, kE5m2 = 1, kE2m1 = 4;

constexpr bool is_packed(int format) {
  return format == kE2m1;  // two elements a byte
}

#if FLYDSL_GFX950
// A chunk of 16 bytes as it lies in LDS.
template <int format>
FLYDSL_DEVICE u32x4 in_lds(u32x4 chunk) {
  return chunk;
}

struct Fragment {
  u32x4 low, high;  // high: of bytes only
};

// The scales are byte `byte_a` and `byte_b` of theirs.
template <int format_a, int format_b, int byte_a = 0, int byte_b = 0>
FLYDSL_DEVICE f32x16 scaled_product(const Fragment &a, const Fragment &b, u32 scale_a, u32 scale_b,
                                    f32x16 sum) {
  using operand = vec<int, 8>;
  return __builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(
      bits_as<operand>(a), bits_as<operand>(b), sum, format_a, format_b, byte_a,
      static_cast<int>(scale_a), byte_b, static_cast<int>(scale_b));
}

// D[16x16] = A[16x128] 2^sa * B[128x16] 2^sb + C. Lane l, with g = l / 16, has row l % 16 and, of bytes, k = 16 g .. and 64 + 16 g .., of e2m1 32 g ..,
// the scale of 32 g .., and of D column l % 16 and rows 4 g ..
template <int format_a, int format_b, int byte_a = 0, int byte_b = 0>
FLYDSL_DEVICE f32x4 scaled_product16(const Fragment &a, const Fragment &b, u32 scale_a, u32 scale_b,
                                     f32x4 sum) {
  using operand = vec<int, 8>;
  return __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(
      bits_as<operand>(a), bits_as<operand>(b), sum, format_a, format_b, byte_a,
      static_cast<int>(scale_a), byte_b, static_cast<int>(scale_b));
}

#else
// Eight values of e2m1 as bf16, in the order 0 2 4 6 1 3 5 7: looked up in a table of their bytes.
FLYDSL_DEVICE u32x4 widened_e2m1(u32 codes) {
  u32x4 result;
#pragma unroll
  for (u32 odd = 0; odd < 2; ++odd) {
    const u32 four = codes >> 4 * odd, places = four & 0x07070707;
    const u32 low = __builtin_amdgcn_perm(0xc0804000, 0xc0800000, places);
    const u32 high = __builtin_amdgcn_perm(0x40404040, 0x3f3f3f00, places) | (four & 0x08080808)
                                                                                 << 4;
    result[2 * odd] = __builtin_amdgcn_perm(high, low, 0x05010400);
    result[2 * odd + 1] = __builtin_amdgcn_perm(high, low, 0x07030602);
  }
  return result;
}

// A chunk of 8 elements as it lies in LDS: as bf16, which has all their values as normal numbers.
template <int format>
FLYDSL_DEVICE u32x4 in_lds(vec<u32, is_packed(format) ? 1 : 2> chunk) {
  if constexpr (is_packed(format)) {
    return widened_e2m1(chunk[0]);
  } else {
    constexpr Format kFormat = format == kE4m3 ? Format::e4m3 : Format::e5m2;
    return widened8<bf16, kFormat>(u32x4{chunk[0], chunk[1], 0, 0});
  }
}
#endif

}  // namespace flydsl::kernels::scaled_gemm
