// Eight neighbours in a row of a matrix of any of the types, in memory and as fp32. All is element-aligned; types and strides are
// the same in all lanes.
#pragma once

#include "common/elements.hip.h"
#include "common/float8.hip.h"
#include "common/memory.hip.h"
#include "common/quantise.hip.h"

namespace flydsl::kernels::gemm {

// Numbers of flydsl_aot_dtype (include/flydsl_aot/types.h).
enum class Dtype : u32 { fp32 = 2, fp16 = 3, bf16 = 4, e4m3 = 10, e5m2 = 11 };

FLYDSL_DEVICE u32 bytes_of(Dtype dtype) {
  return dtype == Dtype::fp32 ? 4 : dtype == Dtype::fp16 || dtype == Dtype::bf16 ? 2 : 1;
}

// fp32, fp16 or bf16.
FLYDSL_DEVICE float load_element(global_ptr<const char> from, Dtype dtype) {
  if (dtype == Dtype::fp32) return *(global_ptr<const float>)from;
  const u16 bits = *(global_ptr<const u16>)from;
  return dtype == Dtype::fp16 ? to_float<fp16>(bits) : to_float<bf16>(bits);
}

// Two fp32 to bytes in the low half, to nearest even; beyond the largest number that, NaN stays.
FLYDSL_DEVICE u32 to_float8_pair(float low, float high, Dtype dtype) {
  const float limit = dtype == Dtype::e4m3 ? 448.0f : 57344.0f;
  const auto in_range = [&](float x) FLYDSL_INLINED { return x != x ? x : clamped(x, limit); };
#if FLYDSL_GFX950
  return 0xffff & (dtype == Dtype::e4m3
                       ? __builtin_amdgcn_cvt_pk_fp8_f32(in_range(low), in_range(high), 0, false)
                       : __builtin_amdgcn_cvt_pk_bf8_f32(in_range(low), in_range(high), 0, false));
#else
  const auto byte = [&](float x) FLYDSL_INLINED {
    return x != x                 ? kNanByte
           : dtype == Dtype::e4m3 ? u32{rounded_byte<3, 7>(in_range(x))}
                                  : u32{rounded_byte<2, 15>(in_range(x))};
  };
  return byte(low) | byte(high) << 8;
#endif
}

FLYDSL_DEVICE void store_element(global_ptr<char> to, float value, Dtype dtype) {
  if (dtype == Dtype::fp32) {
    *(global_ptr<float>)to = value;
  } else if (dtype == Dtype::bf16 || dtype == Dtype::fp16) {
    *(global_ptr<u16>)to = static_cast<u16>(dtype == Dtype::bf16 ? round_pair<bf16>(value, value)
                                                                 : round_pair<fp16>(value, value));
  } else {
    *(global_ptr<u8>)to = static_cast<u8>(to_float8_pair(value, value, dtype));
  }
}

// `count` of them exist, from 1 up; the others become 0. `stride` in elements.
FLYDSL_DEVICE void load_row8(global_ptr<const char> from, Dtype dtype, i64 stride, i32 count,
                             float (&values)[8]) {
  if (stride == 1 && count >= 8) {
    u32x4 first = load_16_bytes(from);
    if (dtype == Dtype::fp32) {
      const u32x4 second = load_16_bytes(from + 16);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        values[i] = bits_as<float>(first[i]);
        values[4 + i] = bits_as<float>(second[i]);
      }
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i)
        values[i] = dtype == Dtype::fp16 ? element_of<fp16>(first, i) : element_of<bf16>(first, i);
    }
    return;
  }
  const i64 step = stride * bytes_of(dtype);
#pragma unroll
  for (int i = 0; i < 8; ++i) values[i] = i < count ? load_element(from + i * step, dtype) : 0.0f;
}

FLYDSL_DEVICE void store_row8(global_ptr<char> to, Dtype dtype, i64 stride, i32 count,
                              const float (&values)[8]) {
  if (stride == 1 && count >= 8) {
    u32x4 words;
    if (dtype == Dtype::fp32) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int i = 0; i < 4; ++i) words[i] = bits_as<u32>(values[4 * half + i]);
        store_16_bytes(to + 16 * half, words);
      }
    } else if (dtype == Dtype::bf16 || dtype == Dtype::fp16) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        words[i] = dtype == Dtype::bf16 ? round_pair<bf16>(values[2 * i], values[2 * i + 1])
                                        : round_pair<fp16>(values[2 * i], values[2 * i + 1]);
      store_16_bytes(to, words);
    } else {
      u32x2 bytes;
#pragma unroll
      for (int i = 0; i < 2; ++i)
        bytes[i] = to_float8_pair(values[4 * i], values[4 * i + 1], dtype) |
                   to_float8_pair(values[4 * i + 2], values[4 * i + 3], dtype) << 16;
      ((global_ptr<Unaligned8>)to)->words[0] = bytes[0];
      ((global_ptr<Unaligned8>)to)->words[1] = bytes[1];
    }
    return;
  }
  const i64 step = stride * bytes_of(dtype);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    if (i < count) store_element(to + i * step, values[i], dtype);
}

}  // namespace flydsl::kernels::gemm
