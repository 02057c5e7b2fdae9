// Products of 16-bit elements that are subnormal. gfx90a's matrix instructions of 16 bits count those as zeros, those of fp32 do not (X. Li et
// al., "FTTN", arXiv 2403.00232; PyTorch, "Numerical accuracy", AMD Instinct MI200): there, where a wave's operands have some, they become fp32.
#pragma once

#include "common/lanes.hip.h"
#include "common/mfma.hip.h"

namespace flydsl::kernels {

// Of eight elements. Less one, magnitudes of zeros are the largest numbers.
template <class Element>
FLYDSL_DEVICE bool has_subnormals(u32x4 eight) {
  using pair = vec<u16, 2>;
  constexpr u16 kSubnormals = __is_same(Element, bf16) ? 0x7f : 0x3ff;
  const auto less_one = [&](int word) FLYDSL_INLINED {
    return bits_as<pair>(eight[word] & 0x7fff7fff) - pair{1, 1};
  };
  pair least = less_one(0);
#pragma unroll
  for (int word = 1; word < 4; ++word) least = __builtin_elementwise_min(least, less_one(word));
  return least[0] < kSubnormals || least[1] < kSubnormals;
}

// Whether a wave's operands have some: of products that then must be `by_fp32`.
template <class Element, int count>
FLYDSL_DEVICE bool any_subnormals(const u32x4 (&operands)[count]) {
  if constexpr (!kFlushesSubnormals) return false;
  bool any = false;
#pragma unroll
  for (const u32x4 &operand : operands) any |= has_subnormals<Element>(operand);
  return ballot(any) != 0;
}

template <class Element>
FLYDSL_DEVICE f32x16 exact_mfma_32x32x16(bool by_fp32, u32x4 a, u32x4 b, f32x16 c) {
  if (!kFlushesSubnormals || FLYDSL_LIKELY(!by_fp32)) return mfma_32x32x16<Element>(a, b, c);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    c = __builtin_amdgcn_mfma_f32_32x32x2f32(element_of<Element>(a, i), element_of<Element>(b, i),
                                             c, 0, 0, 0);
  return c;
}
template <class Element>
FLYDSL_DEVICE f32x4 exact_mfma_16x16x32(bool by_fp32, u32x4 a, u32x4 b, f32x4 c) {
  if (!kFlushesSubnormals || FLYDSL_LIKELY(!by_fp32)) return mfma_16x16x32<Element>(a, b, c);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    c = __builtin_amdgcn_mfma_f32_16x16x4f32(element_of<Element>(a, i), element_of<Element>(b, i),
                                             c, 0, 0, 0);
  return c;
}

}  // namespace flydsl::kernels
