// 16-bit integer operations on lanes. Two-source results clear the other half of the register,
// three-source ones keep it.
#include "emulator/isa/saturate.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

using i64 = int64_t;

inline i64 lower(i64 a, i64 b) {
  return a < b ? a : b;
}
inline i64 higher(i64 a, i64 b) {
  return a > b ? a : b;
}
inline i64 middle(i64 a, i64 b, i64 c) {
  return higher(lower(a, b), lower(higher(a, b), c));
}

// As v_bitop3_b32 (valu_int.cc), on halves.
void bitop3(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *b = source(w, op, 2), *c = source(w, op, 3);
  uint32_t *d = result(w, op);
  for (int i = 0; i < 64; ++i) {
    uint32_t r = 0;
    for (int k = 0; k < 16; ++k) {
      const uint32_t entry = (a[i] >> k & 1) << 2 | (b[i] >> k & 1) << 1 | (c[i] >> k & 1);
      r |= (uint32_t(op.imm) >> entry & 1) << k;
    }
    d[i] = r;
  }
  finish(w, op, d);
}

}  // namespace

#define TWO(name, is_signed, expr)                                           \
  {                                                                          \
    name, "s=ss", short2<[](i64 a, i64 b) { return i64(expr); }, is_signed>, \
        kRowOpSel | kRowIntClamp                                             \
  }
#define THREE(name, is_signed, expr)                                                 \
  {                                                                                  \
    name, "s=sss", short3<[](i64 a, i64 b, i64 c) { return i64(expr); }, is_signed>, \
        kRowOpSel | kRowIntClamp                                                     \
  }

const Row rows_valu_int16[] = {
    TWO("v_add_u16", false, a + b),
    TWO("v_sub_u16", false, a - b),
    TWO("v_subrev_u16", false, b - a),
    TWO("v_mul_lo_u16", false, a *b),
    TWO("v_add_i16", true, a + b),
    TWO("v_sub_i16", true, a - b),
    TWO("v_lshlrev_b16", false, (b << (a & 15)) & 0xffff),
    TWO("v_lshrrev_b16", false, b >> (a & 15)),
    TWO("v_ashrrev_i16", true, b >> (a & 15)),
    TWO("v_min_u16", false, lower(a, b)),
    TWO("v_max_u16", false, higher(a, b)),
    TWO("v_min_i16", true, lower(a, b)),
    TWO("v_max_i16", true, higher(a, b)),
    THREE("v_mad_u16", false, a *b + c),
    THREE("v_mad_i16", true, a *b + c),
    THREE("v_min3_u16", false, lower(lower(a, b), c)),
    THREE("v_max3_u16", false, higher(higher(a, b), c)),
    THREE("v_med3_u16", false, middle(a, b, c)),
    THREE("v_min3_i16", true, lower(lower(a, b), c)),
    THREE("v_max3_i16", true, higher(higher(a, b), c)),
    THREE("v_med3_i16", true, middle(a, b, c)),
    // The gfx8 forms: no op_sel, the high half is cleared.
    {"v_mad_legacy_u16", "s=sss", short3<[](i64 a, i64 b, i64 c) { return a * b + c; }, false>,
     kRowIntClamp},
    {"v_mad_legacy_i16", "s=sss", short3<[](i64 a, i64 b, i64 c) { return a * b + c; }, true>,
     kRowIntClamp},
    {"v_bitop3_b16", "s=sss", bitop3, kRowOpSel},
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
