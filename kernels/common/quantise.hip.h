// fp32 to the OCP 8-bit formats (OCP 8-bit Floating Point Specification 1.0), saturating, and the scales that go with
// them, on any architecture.
#pragma once

#include "common/math.hip.h"
#include "common/vectors.hip.h"

namespace flydsl::kernels {

// Of an 8-bit format: its number as flydsl_aot_dtype, its largest number and that number's exponent.
enum class Byte : u32 { e4m3 = 10, e5m2 = 11 };
FLYDSL_DEVICE float largest_of(Byte format) {
  return format == Byte::e4m3 ? 448.0f : 57344.0f;
}
FLYDSL_DEVICE i32 largest_exponent_of(Byte format) {
  return format == Byte::e4m3 ? 8 : 15;
}
constexpr u32 kNanByte = 0x7f;
constexpr u32 kNanScale = 0xff;  // of E8M0

// A number in the range of the format, to nearest even: where the hardware has no conversion. Adding 1.5 * 2^23 units of
// the last place rounds.
template <int mantissa_bits, int bias>
FLYDSL_DEVICE u8 rounded_byte(float value) {
  const u32 bits = bits_as<u32>(value);
  const u32 magnitude = bits & 0x7fffffff;
  u32 code;
  if (magnitude >> 23 >= static_cast<u32>(128 - bias)) {
    // A mantissa that rounds up to the next power of two carries into the exponent field, as it should.
    constexpr u32 dropped = 23 - mantissa_bits;
    const u32 rounded = magnitude + ((1u << (dropped - 1)) - 1) + (magnitude >> dropped & 1);
    code = (rounded >> dropped) - (static_cast<u32>(127 - bias) << mantissa_bits);
  } else {
    // Multiples of the least subnormal number, 2^(1 - bias - mantissa_bits).
    constexpr float kRound = static_cast<float>(3u << 22);
    const float scaled = bits_as<float>(magnitude) *
                         bits_as<float>(static_cast<u32>(126 + bias + mantissa_bits) << 23);
    code = bits_as<u32>(scaled + kRound) - bits_as<u32>(kRound);
  }
  return static_cast<u8>(code | (bits >> 24 & 0x80));
}

// Two numbers, none a NaN.
FLYDSL_DEVICE void to_bytes(float first, float second, Byte format, u8 &first_byte,
                            u8 &second_byte) {
  const float limit = largest_of(format);
  first = clamped(first, limit);
  second = clamped(second, limit);
#if defined(__gfx950__) || defined(__GFX12__)
  const u32 pair = format == Byte::e4m3 ? __builtin_amdgcn_cvt_pk_fp8_f32(first, second, 0, false)
                                        : __builtin_amdgcn_cvt_pk_bf8_f32(first, second, 0, false);
  first_byte = static_cast<u8>(pair);
  second_byte = static_cast<u8>(pair >> 8);
#elif defined(__NVPTX__)
  // The second operand is the low byte.
  const u16 pair = format == Byte::e4m3 ? __nvvm_ff_to_e4m3x2_rn(second, first)
                                        : __nvvm_ff_to_e5m2x2_rn(second, first);
  first_byte = static_cast<u8>(pair);
  second_byte = static_cast<u8>(pair >> 8);
#else
  first_byte = format == Byte::e4m3 ? rounded_byte<3, 7>(first) : rounded_byte<2, 15>(first);
  second_byte = format == Byte::e4m3 ? rounded_byte<3, 7>(second) : rounded_byte<2, 15>(second);
#endif
}

// The magnitude's bits: larger for a larger one, largest for a NaN.
FLYDSL_DEVICE u32 magnitude_bits(float value) {
  return bits_as<u32>(value) & 0x7fffffff;
}
constexpr u32 kInfinityBits = 0x7f800000;

// The scale of numbers whose largest magnitude is `largest`: that over the format's largest, but at least the smallest
// normal number, so that it has a reciprocal.
FLYDSL_DEVICE float scale_of(float largest, Byte format) {
  return __builtin_fmaxf(largest / largest_of(format), 0x1p-126f);
}
// The same as a power of two (OCP Microscaling Formats 1.0, 6.3), its E8M0 bits: 2^(bits - 127).
FLYDSL_DEVICE u32 e8m0_of(float largest, Byte format) {
  const i32 exponent = static_cast<i32>(bits_as<u32>(largest) >> 23);
  const i32 bits = exponent - largest_exponent_of(format);
  return bits > 0 ? static_cast<u32>(bits) : 0u;
}
// 1 / 2^(bits - 127), of what e8m0_of gives.
FLYDSL_DEVICE float reciprocal_of_e8m0(u32 bits) {
  return bits_as<float>((254 - bits) << 23);
}

}  // namespace flydsl::kernels
