// Memory that holds fp32, fp16 or bf16, as floats; the type may be known only at run time.
#pragma once

#include "common/elements.hip.h"

namespace flydsl::kernels {

struct fp32 {
  using scalar = float;
};

// flydsl_aot_dtype, as kernel arguments have it.
enum class Real : u32 { none = 0, fp32 = 2, fp16 = 3, bf16 = 4 };

template <class Element>
constexpr Real real_of() {
  return __is_same(Element, fp32) ? Real::fp32 : __is_same(Element, fp16) ? Real::fp16 : Real::bf16;
}

template <class Element>
constexpr u32 kRealBytes = sizeof(typename Element::scalar);
// Elements of 16 bytes.
template <class Element>
constexpr u32 kReals16 = 16 / kRealBytes<Element>;

#if FLYDSL_NO_BF16
template <class Element>
FLYDSL_DEVICE float widened_real(typename Element::scalar value) {
  if constexpr (__is_same(Element, bf16)) return bits_as<float>(u32{value} << 16);
  return static_cast<float>(value);
}
template <class Element>
FLYDSL_DEVICE typename Element::scalar rounded_real(float value) {
  if constexpr (__is_same(Element, bf16))
    return rounded_bf16(value);
  else
    return static_cast<typename Element::scalar>(value);
}
#define FLYDSL_WIDENED(value) widened_real<Element>(value)
#define FLYDSL_ROUNDED(value) rounded_real<Element>(value)
#else
#define FLYDSL_WIDENED(value) static_cast<float>(value)
#define FLYDSL_ROUNDED(value) static_cast<typename Element::scalar>(value)
#endif

template <class Element>
FLYDSL_DEVICE float load_real(global_ptr<const char> from) {
  return FLYDSL_WIDENED(*(global_ptr<const typename Element::scalar>)from);
}
template <class Element>
FLYDSL_DEVICE void store_real(global_ptr<char> to, float value) {
  *(global_ptr<typename Element::scalar>)to = FLYDSL_ROUNDED(value);
}

// `count` neighbours that are aligned to all their bytes, at most 16 at a time.
template <class Element, u32 count>
FLYDSL_DEVICE void load_reals(global_ptr<const char> from, float (&values)[count]) {
  constexpr u32 step = count < kReals16<Element> ? count : kReals16<Element>;
  using Vector = vec<typename Element::scalar, step>;
#pragma unroll
  for (u32 at = 0; at < count; at += step) {
    const Vector vector = *(global_ptr<const Vector>)(from + at * kRealBytes<Element>);
#pragma unroll
    for (u32 i = 0; i < step; ++i) values[at + i] = FLYDSL_WIDENED(vector[i]);
  }
}

// The same of 16 bytes in registers.
template <class Element>
FLYDSL_DEVICE void unpack_reals(u32x4 packed, float (&values)[kReals16<Element>]) {
  const auto vector = bits_as<vec<typename Element::scalar, kReals16<Element>>>(packed);
#pragma unroll
  for (u32 i = 0; i < kReals16<Element>; ++i) values[i] = FLYDSL_WIDENED(vector[i]);
}
// Rounded to nearest even.
template <class Element>
FLYDSL_DEVICE u32x4 pack_reals(const float (&values)[kReals16<Element>]) {
#if FLYDSL_NO_BF16
  vec<typename Element::scalar, kReals16<Element>> rounded;
#pragma unroll
  for (u32 i = 0; i < kReals16<Element>; ++i) rounded[i] = FLYDSL_ROUNDED(values[i]);
  return bits_as<u32x4>(rounded);
#else
  vec<float, kReals16<Element>> vector;
#pragma unroll
  for (u32 i = 0; i < kReals16<Element>; ++i) vector[i] = values[i];
  return bits_as<u32x4>(
      __builtin_convertvector(vector, vec<typename Element::scalar, kReals16<Element>>));
#endif
}
#undef FLYDSL_WIDENED
#undef FLYDSL_ROUNDED

template <class T>
struct OfType {
  using type = T;
};
// Calls use(OfType<fp32>()) or the like; `real` is the same in all threads and not none.
template <class Use>
FLYDSL_DEVICE void with_real(Real real, Use use) {
  if (real == Real::fp32)
    use(OfType<fp32>());
  else if (real == Real::fp16)
    use(OfType<fp16>());
  else
    use(OfType<bf16>());
}

}  // namespace flydsl::kernels
