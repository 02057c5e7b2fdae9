// Numbers as integers that are ordered as TopK orders them: NaN above everything, -0 as +0.
#pragma once

#include "common/reals.hip.h"

namespace flydsl::kernels {

struct int32 {
  using scalar = i32;
};

// From the bits of an element, in the low half if it has 16. Larger for a larger number.
template <class Element>
FLYDSL_DEVICE u32 order_of(u32 bits) {
  if constexpr (__is_same(Element, int32)) {
    return bits ^ 0x80000000;
  } else {
    constexpr bool kHalf = kRealBytes<Element> == 2;
    constexpr u32 kSign = kHalf ? 0x8000 : 0x80000000, kMagnitude = kSign - 1;
    constexpr u32 kInfinite = __is_same(Element, fp16) ? 0x7c00 : kHalf ? 0x7f80 : 0x7f800000;
    const u32 magnitude = bits & kMagnitude;
    if (magnitude > kInfinite) return kHalf ? 0xffff : 0xffffffff;
    return bits & kSign ? kSign - magnitude : kSign | magnitude;
  }
}

// The one that TopK looks for is the largest: `flip` is all ones where the smallest numbers are wanted.
template <class Element>
FLYDSL_DEVICE u32 order_of(u32 bits, u32 flip) {
  const u32 order = order_of<Element>(bits) ^ flip;
  return kRealBytes<Element> == 2 ? order & 0xffff : order;
}

}  // namespace flydsl::kernels
