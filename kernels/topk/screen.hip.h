// Elements as numbers that one comparison tells apart: whether one may be among the best, before its order is worked out.
#pragma once

#include "common/order.hip.h"

namespace flydsl::kernels {

// Larger is better, as of orders; `flip` as there. Numbers are compared as they are, subnormal ones too.
template <class Element>
struct Screen {
  using Number = float;
  static constexpr bool kHalf = kRealBytes<Element> == 2;
  static constexpr Number kLeast = -__builtin_inff();
  static constexpr u32 kTurned = kHalf ? 0x80008000 : 0x80000000;  // the bits that `flip` changes

  static FLYDSL_DEVICE Number number(u32 bits, u32 flip) {
    float value;
    if constexpr (__is_same(Element, fp16))
      value = static_cast<float>(bits_as<_Float16>(static_cast<u16>(bits)));
    else
      value = bits_as<float>(kHalf ? bits << 16 : bits);
    return bits_as<float>(bits_as<u32>(value) ^ (flip & 0x80000000));
  }
  // A NaN may always be: whether it is greatest or least, its order says.
  static FLYDSL_DEVICE bool may_reach(Number number, Number least) { return !(number < least); }
  static FLYDSL_DEVICE Number larger(Number a, Number b) { return __builtin_fmaxf(a, b); }
  static FLYDSL_DEVICE Number smaller(Number a, Number b) { return __builtin_fminf(a, b); }

  // Of one that is no NaN.
  static FLYDSL_DEVICE u32 bits_of(Number number, u32 flip) {
    const u32 bits = bits_as<u32>(number) ^ (flip & 0x80000000);
    if constexpr (__is_same(Element, fp16))
      return bits_as<u16>(static_cast<_Float16>(bits_as<float>(bits)));
    else
      return kHalf ? bits >> 16 : bits;
  }
  static FLYDSL_DEVICE u32 order_of_number(Number number, u32 flip) {
    return order_of<Element>(bits_of(number, flip), flip);
  }

  // What a number whose order is at least `order` reaches.
  static FLYDSL_DEVICE Number least_of(u32 order, u32 flip) {
    constexpr u32 kSign = kHalf ? 0x8000 : 0x80000000;
    constexpr u32 kInfinite = __is_same(Element, fp16) ? 0x7c00 : kHalf ? 0x7f80 : 0x7f800000;
    // The complement of a number's order is that of the negated number less 1.
    order += flip & 1;
    // No number is better than infinity; below the least one are NaN's bits, which nothing is less than.
    if (order > (kSign | kInfinite)) order = kSign | kInfinite;
    const u32 magnitude = order & kSign ? order - kSign : kSign - order;
    const u32 bits =
        order & kSign ? magnitude : kSign | (magnitude < kSign ? magnitude : kSign - 1);
    return number(bits, 0);
  }
};

template <>
struct Screen<int32> {
  using Number = i32;
  static constexpr Number kLeast = -0x7fffffff - 1;
  static constexpr u32 kTurned = ~0u;

  static FLYDSL_DEVICE Number number(u32 bits, u32 flip) { return static_cast<i32>(bits ^ flip); }
  static FLYDSL_DEVICE u32 bits_of(Number number, u32 flip) {
    return static_cast<u32>(number) ^ flip;
  }
  static FLYDSL_DEVICE u32 order_of_number(Number number, u32 flip) {
    return order_of<int32>(bits_of(number, flip), flip);
  }
  static FLYDSL_DEVICE bool may_reach(Number number, Number least) { return number >= least; }
  static FLYDSL_DEVICE Number larger(Number a, Number b) { return a > b ? a : b; }
  static FLYDSL_DEVICE Number smaller(Number a, Number b) { return a < b ? a : b; }
  static FLYDSL_DEVICE Number least_of(u32 order, u32) {
    return static_cast<i32>(order ^ 0x80000000);
  }
};

}  // namespace flydsl::kernels
