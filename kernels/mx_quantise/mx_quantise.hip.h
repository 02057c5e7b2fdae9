// Rows to MX elements and scales (include/flydsl_aot/mx_quantise.h): a lane has 8 neighbours, four lanes a block of 32. A work-group goes
// round: as many rows at a time as its lanes hold, all columns of them.
#pragma once

#include "common/arguments.hip.h"
#include "common/isa.hip.h"
#include "common/memory.hip.h"
#include "common/philox.hip.h"
#include "common/quantise.hip.h"
#include "common/reals.hip.h"
#include "common/threads.hip.h"
#include "flydsl_aot_generated/mx_quantise_kernarg.h"

namespace flydsl::kernels {
namespace mx {

// Numbers of flydsl_aot_dtype.
enum class Mx : u32 { e4m3 = 10, e5m2 = 11, e2m1 = 15 };

struct Format {
  i32 mantissa, least_exponent, largest_exponent;
  float largest;
};
FLYDSL_DEVICE Format format_of(Mx dtype) {
  if (dtype == Mx::e4m3) return {3, -6, 8, 448.0f};
  if (dtype == Mx::e5m2) return {2, -14, 15, 57344.0f};
  return {1, 0, 2, 6.0f};
}

// 8 neighbours at element alignment.
FLYDSL_DEVICE void load8(global_ptr<const char> from, Real dtype, float (&values)[8]) {
  const u32x4 first = load_16_bytes(from);
  if (dtype == Real::fp32) {
    const u32x4 second = load_16_bytes(from + 16);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      values[i] = bits_as<float>(first[i]);
      values[4 + i] = bits_as<float>(second[i]);
    }
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i)
      values[i] = dtype == Real::fp16 ? element_of<fp16>(first, i) : element_of<bf16>(first, i);
  }
}

// A number of the format next to `value`: the lower one, or by chance, of 20 bits, the one after it.
FLYDSL_DEVICE float rounded_by_chance(float value, u32 random, const Format &format) {
  const i32 exponent = static_cast<i32>(magnitude_bits(value) >> 23);
  const i32 least = 127 + format.least_exponent;
  const u32 unit = static_cast<u32>((exponent > least ? exponent : least) - format.mantissa);
  const float units = bits_as<float>(magnitude_bits(value)) * bits_as<float>((254 - unit) << 23);
  const u32 fixed = static_cast<u32>(units * 0x1p20f) + (random >> 12);
  return __builtin_copysignf(static_cast<float>(fixed >> 20) * bits_as<float>(unit << 23), value);
}

// To the nearest even, none beyond the largest number.
FLYDSL_DEVICE u32 four_bytes(const float *values, Mx dtype) {
#if FLYDSL_GFX950
  if (dtype == Mx::e4m3) {
    const u32 low = __builtin_amdgcn_cvt_pk_fp8_f32(values[0], values[1], 0, false);
    return __builtin_amdgcn_cvt_pk_fp8_f32(values[2], values[3], low, true);
  }
  const u32 low = __builtin_amdgcn_cvt_pk_bf8_f32(values[0], values[1], 0, false);
  return __builtin_amdgcn_cvt_pk_bf8_f32(values[2], values[3], low, true);
#else
  u32 bytes = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i)
    bytes |= u32{dtype == Mx::e4m3 ? rounded_byte<3, 7>(values[i]) : rounded_byte<2, 15>(values[i])}
             << 8 * i;
  return bytes;
#endif
}
// (Chained, conversions of the hardware to parts of a register would need a wait state between them that clang 22 does not put there.)
FLYDSL_DEVICE u32 eight_nibbles(const float (&values)[8]) {
  u32 codes = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const u32 byte = rounded_byte<1, 1>(values[i]);
    codes |= ((byte & 7) | (byte >> 4 & 8)) << 4 * i;
  }
  return codes;
}

// Place of block `block` of row `row` of a batch.
FLYDSL_DEVICE i64 scale_offset(ArgumentsOf<flydsl_aot_mx_quantise_kernarg> args, u32 row,
                               u32 block) {
  if (!args->scales_shuffled) return row * args->scale_stride_m + block * args->scale_stride_k;
  return row / 32 * 32 * args->scale_stride_m + block / 8 * 256 + block % 4 * 64 + row % 16 * 4 +
         block % 8 / 4 * 2 + row % 32 / 16;
}

}  // namespace mx

template <bool stochastic>
FLYDSL_DEVICE void mx_quantise(const flydsl_aot_mx_quantise_kernarg &kernarg) {
  using namespace mx;
  const auto args = arguments_here(kernarg);
  const u32 thread = thread_index(), lanes_log2 = args->lanes_log2;
  const u32 rows_at_once = 256u >> lanes_log2;
  const Mx dtype{args->out_dtype};
  const Real x_dtype{args->x_dtype};
  const Format format = format_of(dtype);
  const u32 k = args->k, step = 8u << lanes_log2;
  const u64 first_row = u64{group_index()} * rows_at_once + (thread >> lanes_log2);
  for (u64 n = first_row; n < args->rows; n += u64{args->groups} * rows_at_once) {
    const u32 all_rows = static_cast<u32>(n), batch = all_rows / args->m, row = all_rows % args->m;
    const global_ptr<const char> x =
        (global_ptr<const char>)args->x + batch * args->x_stride_b + row * args->x_stride_m;
    const global_ptr<char> out =
        (global_ptr<char>)args->out + batch * args->out_stride_b + row * args->out_stride_m;
    const global_ptr<u8> scale = (global_ptr<u8>)args->scale + batch * args->scale_stride_b;
    for (u32 column = (thread & ((1u << lanes_log2) - 1)) * 8; column < k; column += step) {
      float values[8];
      load8(x + u64{column} * (x_dtype == Real::fp32 ? 4 : 2), x_dtype, values);
      u32 largest = 0;
#pragma unroll
      for (int i = 0; i < 8; ++i)
        largest = magnitude_bits(values[i]) > largest ? magnitude_bits(values[i]) : largest;
#pragma unroll
      for (u32 mask = 1; mask < 4; mask *= 2) {
        const u32 other = lane_xor_bits(largest, mask);
        largest = other > largest ? other : largest;
      }
      const bool is_nan = largest >= kInfinityBits;
      const i32 exponent = static_cast<i32>(largest >> 23) - format.largest_exponent;
      const u32 byte = is_nan ? kNanScale : exponent > 0 ? static_cast<u32>(exponent) : 0u;
      const float factor = is_nan ? 0.0f : reciprocal_of_e8m0(byte);
      u32x4 random[2];
      if constexpr (stochastic) {
        const u64 count = args->offset + (u64{all_rows} * k + column) / 4;
#pragma unroll
        for (u32 i = 0; i < 2; ++i)
          random[i] = philox_4x32_10(args->seed, u32x4{static_cast<u32>(count + i),
                                                       static_cast<u32>((count + i) >> 32), 0, 0});
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        float value = values[i] * factor;
        if constexpr (stochastic) value = rounded_by_chance(value, random[i / 4][i % 4], format);
        values[i] = clamped(value, format.largest);
      }
      if (dtype == Mx::e2m1) {
        const u32 codes = is_nan ? 0 : eight_nibbles(values);
        ((global_ptr<Unaligned4>)(out + column / 2))->word = codes;
      } else {
        constexpr u32 kNanBytes = kNanByte * 0x01010101u;
        const global_ptr<Unaligned8> to = (global_ptr<Unaligned8>)(out + column);
        to->words[0] = is_nan ? kNanBytes : four_bytes(values, dtype);
        to->words[1] = is_nan ? kNanBytes : four_bytes(values + 4, dtype);
      }
      if (column % 32 == 0) scale[scale_offset(args, row, column / 32)] = static_cast<u8>(byte);
    }
  }
}

}  // namespace flydsl::kernels
