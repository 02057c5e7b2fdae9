// Fixed-width integers, vectors, and pointers into named address spaces.
#pragma once

#include "common/keywords.hip.h"

namespace flydsl::kernels {

using i32 = __INT32_TYPE__;
using i64 = __INT64_TYPE__;
using u8 = __UINT8_TYPE__;
using u16 = __UINT16_TYPE__;
using u32 = __UINT32_TYPE__;
using u64 = __UINT64_TYPE__;

template <class T, int N>
using vec = T __attribute__((ext_vector_type(N)));

using f32x2 = vec<float, 2>;
using f32x4 = vec<float, 4>;
using f32x16 = vec<float, 16>;
using u32x2 = vec<u32, 2>;
using u32x4 = vec<u32, 4>;

// Global and LDS pointers are spelled out: a pointer that came out of the argument struct would
// otherwise give flat instructions, which count against both LDS and memory waits.
template <class T>
using global_ptr = T __attribute__((address_space(1))) *;
template <class T>
using lds_ptr = T __attribute__((address_space(3))) *;

template <class To, class From>
FLYDSL_DEVICE To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From), "bits_as keeps the size");
  return __builtin_bit_cast(To, from);
}

}  // namespace flydsl::kernels
