// 8-bit floating-point formats (OCP 8-bit Floating Point Specification 1.0), widened to 16 bits: exact,
// since bf16 and fp16 have every value of both.
#pragma once

#include "common/elements.hip.h"

namespace flydsl::kernels {

// Numbers as in kernel arguments.
enum class Format : u32 { wide = 0, e4m3 = 1, e5m2 = 2 };

FLYDSL_DEVICE f32x2 pair_of_float8(u32 bytes, bool high, Format format) {
  // The instruction's half of the register must be a constant.
  if (format == Format::e4m3)
    return high ? __builtin_amdgcn_cvt_pk_f32_fp8(bytes, true)
                : __builtin_amdgcn_cvt_pk_f32_fp8(bytes, false);
  return high ? __builtin_amdgcn_cvt_pk_f32_bf8(bytes, true)
              : __builtin_amdgcn_cvt_pk_f32_bf8(bytes, false);
}

// Two of four elements as a pair of 16-bit ones, in one instruction: a scale of 1 makes it a conversion.
template <class Element, Format format = Format::e4m3>
FLYDSL_DEVICE u32 widened_pair(u32 bytes, bool high) {
  static_assert(format != Format::wide, "of 8-bit elements");
  if constexpr (__is_same(Element, bf16) && format == Format::e4m3) {
    return bits_as<u32>(high ? __builtin_amdgcn_cvt_scalef32_pk_bf16_fp8(bytes, 1.0f, true)
                             : __builtin_amdgcn_cvt_scalef32_pk_bf16_fp8(bytes, 1.0f, false));
  } else if constexpr (__is_same(Element, bf16)) {
    return bits_as<u32>(high ? __builtin_amdgcn_cvt_scalef32_pk_bf16_bf8(bytes, 1.0f, true)
                             : __builtin_amdgcn_cvt_scalef32_pk_bf16_bf8(bytes, 1.0f, false));
  } else if constexpr (format == Format::e4m3) {
    return bits_as<u32>(high ? __builtin_amdgcn_cvt_scalef32_pk_f16_fp8(bytes, 1.0f, true)
                             : __builtin_amdgcn_cvt_scalef32_pk_f16_fp8(bytes, 1.0f, false));
  } else {
    return bits_as<u32>(high ? __builtin_amdgcn_cvt_scalef32_pk_f16_bf8(bytes, 1.0f, true)
                             : __builtin_amdgcn_cvt_scalef32_pk_f16_bf8(bytes, 1.0f, false));
  }
}

// Eight elements from eight bytes in the first two registers.
template <class Element>
FLYDSL_DEVICE u32x4 widened(u32x4 bytes, Format format) {
  u32x4 result;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const f32x2 pair = pair_of_float8(bytes[i / 2], i % 2 != 0, format);
    result[i] = round_pair<Element>(pair[0], pair[1]);
  }
  return result;
}

}  // namespace flydsl::kernels
