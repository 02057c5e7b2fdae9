// 8-bit floating-point formats (OCP 8-bit Floating Point Specification 1.0), widened to 16 bits: exact,
// since bf16 and fp16 have every value of both.
#pragma once

#include "common/elements.hip.h"
#include "common/isa.hip.h"

namespace flydsl::kernels {

// Numbers as in kernel arguments.
enum class Format : u32 { wide = 0, e4m3 = 1, e5m2 = 2 };

// Without instructions for it: e5m2 is the high half of fp16; e4m3, moved by one bit, that of an fp16 number 2^8 times as small. Both
// subnormals and the NaN of e4m3, which would be 480, come out right.
FLYDSL_DEVICE u32 fp16_pair_of_float8(u32 bytes, bool high, Format format) {
  const u32 moved = __builtin_amdgcn_perm(0, bytes, high ? 0x030c020c : 0x010c000c);
  if (format == Format::e5m2) return moved;
  using halves = vec<_Float16, 2>;
  const u32 smaller = bits_as<u32>(bits_as<vec<short, 2>>(moved) >> 1) & 0xbfffbfff;
  const u32 nan = ((moved & 0x7fff7fff) + 0x01000100) & 0x80008000;
  const halves scale = {256, 256};
  return bits_as<u32>(bits_as<halves>(smaller) * scale) | (nan - (nan >> 6));
}

FLYDSL_DEVICE f32x2 pair_of_float8(u32 bytes, bool high, Format format) {
#if FLYDSL_GFX950
  // The instruction's half of the register must be a constant.
  if (format == Format::e4m3)
    return high ? __builtin_amdgcn_cvt_pk_f32_fp8(bytes, true)
                : __builtin_amdgcn_cvt_pk_f32_fp8(bytes, false);
  return high ? __builtin_amdgcn_cvt_pk_f32_bf8(bytes, true)
              : __builtin_amdgcn_cvt_pk_f32_bf8(bytes, false);
#else
  return __builtin_convertvector(
      bits_as<vec<_Float16, 2>>(fp16_pair_of_float8(bytes, high, format)), f32x2);
#endif
}

// Two of four elements as a pair of 16-bit ones, on gfx950 in one instruction: a scale of 1 makes it a conversion.
template <class Element, Format format = Format::e4m3>
FLYDSL_DEVICE u32 widened_pair(u32 bytes, bool high) {
  static_assert(format != Format::wide, "of 8-bit elements");
#if FLYDSL_GFX950
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
#else
  if constexpr (__is_same(Element, fp16)) return fp16_pair_of_float8(bytes, high, format);
  // Exact: the high halves.
  const f32x2 pair = pair_of_float8(bytes, high, format);
  return __builtin_amdgcn_perm(bits_as<u32>(pair[1]), bits_as<u32>(pair[0]), 0x07060302);
#endif
}

// Eight elements from eight bytes in the first two registers.
template <class Element, Format format>
FLYDSL_DEVICE u32x4 widened8(u32x4 bytes) {
  u32x4 result;
#pragma unroll
  for (int i = 0; i < 4; ++i) result[i] = widened_pair<Element, format>(bytes[i / 2], i % 2 != 0);
  return result;
}

// The same of a format that is known at run time.
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
