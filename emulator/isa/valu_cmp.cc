// Comparisons: a bit per lane into vcc or a scalar pair; v_cmpx writes EXEC as well.
#include "emulator/isa/fp_lane.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

enum Condition { kF, kLt, kEq, kLe, kGt, kLg, kGe, kO, kU, kNge, kNlg, kNgt, kNle, kNeq, kNlt, kT };

// For integers kLg is "ne". NaN makes every ordered comparison false and its negation true.
template <Condition C, class T>
inline bool compare(T a, T b) {
  switch (C) {
    case kF:
      return false;
    case kLt:
      return a < b;
    case kEq:
      return a == b;
    case kLe:
      return a <= b;
    case kGt:
      return a > b;
    case kLg:
      return a < b || a > b;
    case kGe:
      return a >= b;
    case kO:
      return a == a && b == b;
    case kU:
      return a != a || b != b;
    case kNge:
      return !(a >= b);
    case kNlg:
      return !(a < b || a > b);
    case kNgt:
      return !(a > b);
    case kNle:
      return !(a <= b);
    case kNeq:
      return !(a == b);
    case kNlt:
      return !(a < b);
    case kT:
      return true;
  }
  return false;
}
template <bool kX>
inline void conclude(Wave &w, const Op &op, uint64_t m) {
  if (op.flags & kDpp) m &= dpp_write_mask(w, op);
  set_mask(w, op, 0, m);
  if (kX) exec_of(w) &= m;
}
inline float to_f(uint32_t x) {
  return as_f(x);
}
inline float to_h(uint32_t x) {
  return half_value(x);
}
inline uint32_t to_u(uint32_t x) {
  return x;
}
inline int32_t to_i(uint32_t x) {
  return int32_t(x);
}
inline uint32_t to_u16(uint32_t x) {
  return x & 0xffff;
}
inline int32_t to_i16(uint32_t x) {
  return int16_t(x);
}

template <Condition C, auto T, bool kX>
void narrow(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *b = source(w, op, 2);
  alignas(64) uint32_t t[64];
  LANES t[i] = compare<C>(T(a[i]), T(b[i])) ? ~0u : 0u;
  conclude<kX>(w, op, mask_of(t));
}
inline double to_d(uint64_t x) {
  return as_d(x);
}
inline uint64_t to_q(uint64_t x) {
  return x;
}
inline int64_t to_l(uint64_t x) {
  return int64_t(x);
}
template <Condition C, auto T, bool kX>
void broad(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *b = source(w, op, 2);
  uint64_t m = 0;
  for (int i = 0; i < 64; ++i) m |= uint64_t(compare<C>(T(wide(a, i)), T(wide(b, i)))) << i;
  conclude<kX>(w, op, m);
}

// V_CMP_CLASS: bit of S1 that belongs to the class of S0.
inline uint32_t class_bit(bool nan, bool quiet, bool inf, bool zero, bool denormal, bool negative) {
  if (nan) return quiet ? 1 : 0;
  if (inf) return negative ? 2 : 9;
  if (zero) return negative ? 5 : 6;
  if (denormal) return negative ? 4 : 7;
  return negative ? 3 : 8;
}
inline uint32_t class_f32(uint32_t u) {
  const uint32_t a = u & 0x7fffffff;
  return class_bit(a > 0x7f800000, a & 0x400000, a == 0x7f800000, a == 0, a < 0x800000, u >> 31);
}
inline uint32_t class_f16(uint32_t u) {
  const uint32_t a = u & 0x7fff;
  return class_bit(a > 0x7c00, a & 0x200, a == 0x7c00, a == 0, a < 0x400, u >> 15 & 1);
}
template <auto Class, bool kX>
void cmp_class(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *b = source(w, op, 2);
  uint64_t m = 0;
  for (int i = 0; i < 64; ++i) m |= uint64_t(b[i] >> Class(a[i]) & 1) << i;
  conclude<kX>(w, op, m);
}
template <bool kX>
void cmp_class_f64(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *b = source(w, op, 2);
  uint64_t m = 0;
  for (int i = 0; i < 64; ++i) {
    const uint64_t u = wide(a, i), x = u & ~(1ull << 63), inf = 0x7ff0000000000000ull;
    m |= uint64_t(b[i] >>
                      class_bit(x > inf, x >> 51 & 1, x == inf, x == 0, x < (1ull << 52), u >> 63) &
                  1)
         << i;
  }
  conclude<kX>(w, op, m);
}

}  // namespace

#define BOTH(cond, name, type, shape, form, to)             \
  {"v_cmp_" name "_" type, shape, form<cond, to, false>}, { \
    "v_cmpx_" name "_" type, shape, form<cond, to, true>    \
  }
#define INTEGER(type, shape, form, to)                                                 \
  BOTH(kF, "f", type, shape, form, to), BOTH(kLt, "lt", type, shape, form, to),        \
      BOTH(kEq, "eq", type, shape, form, to), BOTH(kLe, "le", type, shape, form, to),  \
      BOTH(kGt, "gt", type, shape, form, to), BOTH(kNeq, "ne", type, shape, form, to), \
      BOTH(kGe, "ge", type, shape, form, to), BOTH(kT, "t", type, shape, form, to)
#define FLOAT(type, shape, form, to)                                                      \
  BOTH(kF, "f", type, shape, form, to), BOTH(kLt, "lt", type, shape, form, to),           \
      BOTH(kEq, "eq", type, shape, form, to), BOTH(kLe, "le", type, shape, form, to),     \
      BOTH(kGt, "gt", type, shape, form, to), BOTH(kLg, "lg", type, shape, form, to),     \
      BOTH(kGe, "ge", type, shape, form, to), BOTH(kO, "o", type, shape, form, to),       \
      BOTH(kU, "u", type, shape, form, to), BOTH(kNge, "nge", type, shape, form, to),     \
      BOTH(kNlg, "nlg", type, shape, form, to), BOTH(kNgt, "ngt", type, shape, form, to), \
      BOTH(kNle, "nle", type, shape, form, to), BOTH(kNeq, "neq", type, shape, form, to), \
      BOTH(kNlt, "nlt", type, shape, form, to), BOTH(kT, "tru", type, shape, form, to)

const Row rows_valu_cmp[] = {
    INTEGER("u32", "m=ii", narrow, to_u),
    INTEGER("i32", "m=ii", narrow, to_i),
    INTEGER("u16", "m=ss", narrow, to_u16),
    INTEGER("i16", "m=ss", narrow, to_i16),
    INTEGER("u64", "m=ll", broad, to_q),
    INTEGER("i64", "m=LL", broad, to_l),
    FLOAT("f32", "m=ff", narrow, to_f),
    FLOAT("f16", "m=hh", narrow, to_h),
    FLOAT("f64", "m=dd", broad, to_d),
    {"v_cmp_class_f32", "m=fi", cmp_class<class_f32, false>, kRowRoundEven},
    {"v_cmpx_class_f32", "m=fi", cmp_class<class_f32, true>, kRowRoundEven},
    {"v_cmp_class_f16", "m=hi", cmp_class<class_f16, false>, kRowRoundEven},
    {"v_cmpx_class_f16", "m=hi", cmp_class<class_f16, true>, kRowRoundEven},
    {"v_cmp_class_f64", "m=di", cmp_class_f64<false>, kRowRoundEven},
    {"v_cmpx_class_f64", "m=di", cmp_class_f64<true>, kRowRoundEven},
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
