// The 16-bit element types: storage, conversion to and from fp32.
#pragma once

#include "common/vectors.hip.h"

namespace flydsl::kernels {

struct bf16 {
#if FLYDSL_NO_BF16
  using scalar = u16;
#else
  using scalar = __bf16;
#endif
  static constexpr u32 exponent_bits = 0x7f80;
  static constexpr u32 quiet_nan = 0x7fc0;
};

struct fp16 {
  using scalar = _Float16;
  static constexpr u32 exponent_bits = 0x7c00;
  static constexpr u32 quiet_nan = 0x7e00;
};

// Two elements in one register, rounded to nearest even (v_cvt_pk_bf16_f32, v_cvt_pk_f16_f32).
template <class Element>
FLYDSL_DEVICE u32 round_pair(float low, float high) {
#if FLYDSL_NO_BF16
  if constexpr (__is_same(Element, bf16)) return rounded_bf16_pair(low, high);
#endif
  return bits_as<u32>(__builtin_convertvector(f32x2{low, high}, vec<typename Element::scalar, 2>));
}

template <class Element>
FLYDSL_DEVICE float to_float(u16 bits) {
#if FLYDSL_NO_BF16
  if constexpr (__is_same(Element, bf16)) return bits_as<float>(static_cast<u32>(bits) << 16);
#endif
  return static_cast<float>(bits_as<typename Element::scalar>(bits));
}

// Element i of 8 in four registers.
template <class Element>
FLYDSL_DEVICE float element_of(u32x4 chunk, int i) {
  return to_float<Element>(static_cast<u16>(chunk[i / 2] >> (i % 2 * 16)));
}

}  // namespace flydsl::kernels
