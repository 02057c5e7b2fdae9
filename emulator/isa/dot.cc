// Dot products of 2, 4 or 8 small numbers. Integer sums are exact, then cut to 32 bits or, with
// clamp, saturated. Floating-point sums take the order of the ISA's pseudocode with one rounding a
// step, to nearest even whatever MODE says; the products of two 16-bit floats are exact. An fp32
// denormal counts as zero in C and in the result under every MODE (LLVM, SIISelLowering, on
// fdot2_f32_f16; the bf16 forms are taken to do the same).
#include "emulator/isa/fp_lane.h"
#include "emulator/isa/saturate.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

using u32 = uint32_t;

template <int kBits, bool kSigned>
inline int64_t element(u32 x, int n) {
  const u32 field = x << (32 - kBits * (n + 1)) >> (32 - kBits);
  return kSigned ? int64_t(int32_t(field << (32 - kBits)) >> (32 - kBits)) : int64_t(field);
}
template <int kBits, bool kSigned>
inline int64_t sum(u32 a, u32 b, u32 c) {
  int64_t s = kSigned ? int64_t(int32_t(c)) : int64_t(c);
  for (int n = 0; n < 32 / kBits; ++n)
    s += element<kBits, kSigned>(a, n) * element<kBits, kSigned>(b, n);
  return s;
}
template <int kBits, bool kSigned>
inline u32 clamped(u32 a, u32 b, u32 c) {
  const int64_t s = sum<kBits, kSigned>(a, b, c);
  return kSigned ? saturate_i32(s) : saturate_u32(uint64_t(s));
}
template <int kBits, bool kSigned>
inline u32 wrapped(u32 a, u32 b, u32 c) {
  return u32(sum<kBits, kSigned>(a, b, c));
}
template <int kBits, bool kSigned>
void dot(Wave &w, const Op &op) {
  if (op.flags & kClamp)
    u_uuu<clamped<kBits, kSigned>>(w, op);
  else
    u_uuu<wrapped<kBits, kSigned>>(w, op);
}
// The destination is the third source.
template <int kBits>
void dotc(Wave &w, const Op &op) {
  if (op.flags & kClamp)
    u_uuD<clamped<kBits, true>>(w, op);
  else
    u_uuD<wrapped<kBits, true>>(w, op);
}

struct HalfPair {
  static float low(u32 x) { return half_value(x & 0xffff); }
  static float high(u32 x) { return half_value(x >> 16); }
};
struct BrainPair {
  static float low(u32 x) { return bf16_value(x & 0xffff); }
  static float high(u32 x) { return bf16_value(x >> 16); }
};
// V_DOT2_F32_F16, V_DOT2C_*: the accumulator first.
template <class T>
inline u32 from_accumulator(u32 a, u32 b, u32 c) {
  const float first = fma(T::low(a), T::low(b), flush(as_f(c)));
  return as_u(flush(fma(T::high(a), T::high(b), first)));
}
// V_DOT2_F32_BF16: the accumulator last.
template <class T>
inline u32 to_accumulator(u32 a, u32 b, u32 c) {
  const float products = fma(T::high(a), T::high(b), mul(T::low(a), T::low(b)));
  return as_u(flush(add(products, flush(as_f(c)))));
}
// Two products a lane: op_sel picks the halves of the first, op_sel_hi those of the second; neg_lo and
// neg_hi flip their signs, neg_lo also that of C.
template <auto F>
void dot2(Wave &w, const Op &op) {
  const u32 *a = source(w, op, 1), *b = source(w, op, 2), *c = source(w, op, 3);
  u32 low[2], high[2], signs[2];
  for (int s = 0; s < 2; ++s) {
    low[s] = (op.op_sel >> s & 1u) * 16;
    high[s] = (op.op_sel_hi >> s & 1u) * 16;
    signs[s] = (op.neg_lo >> s & 1u) << 15 | u32(op.neg_hi >> s & 1u) << 31;
  }
  const u32 nc = (op.neg_lo >> 2 & 1u) << 31;
  u32 *d = result(w, op);
  LANES {
    const u32 x = (a[i] >> low[0] & 0xffff) | a[i] >> high[0] << 16;
    const u32 y = (b[i] >> low[1] & 0xffff) | b[i] >> high[1] << 16;
    d[i] = F(x ^ signs[0], y ^ signs[1], c[i] ^ nc);
  }
  finish(w, op, d);
}
template <bool kSigned>
void dot2_integer(Wave &w, const Op &op) {
  if (op.flags & kClamp)
    dot2<clamped<16, kSigned>>(w, op);
  else
    dot2<wrapped<16, kSigned>>(w, op);
}

constexpr u32 kInteger = kRowIntClamp, kFloat = kRowPacked | kRowRoundEven;

}  // namespace

const Row rows_dot[] = {
    {"v_dot2_i32_i16", "i=iii", dot2_integer<true>, kInteger | kRowPacked},
    {"v_dot2_u32_u16", "i=iii", dot2_integer<false>, kInteger | kRowPacked},
    {"v_dot4_i32_i8", "i=iii", dot<8, true>, kInteger},
    {"v_dot4_u32_u8", "i=iii", dot<8, false>, kInteger},
    {"v_dot8_i32_i4", "i=iii", dot<4, true>, kInteger},
    {"v_dot8_u32_u4", "i=iii", dot<4, false>, kInteger},
    {"v_dot2c_i32_i16", "i&ii", dotc<16>, kInteger},
    {"v_dot4c_i32_i8", "i&ii", dotc<8>, kInteger},
    {"v_dot8c_i32_i4", "i&ii", dotc<4>, kInteger},
    {"v_dot2_f32_f16", "f=ppf", dot2<from_accumulator<HalfPair>>, kFloat},
    {"v_dot2_f32_bf16", "f=BBf", dot2<to_accumulator<BrainPair>>, kFloat},
    {"v_dot2c_f32_f16", "f&pp", u_uuD<from_accumulator<HalfPair>>, kRowRoundEven},
    {"v_dot2c_f32_bf16", "f&BB", u_uuD<from_accumulator<BrainPair>>, kRowRoundEven},
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
