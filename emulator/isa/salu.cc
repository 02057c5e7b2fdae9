// Scalar arithmetic: SOP1, SOP2, SOPK, SOPC.
#include "emulator/isa/lanes.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

using u32 = uint32_t;
using i32 = int32_t;
using u64 = uint64_t;
using i64 = int64_t;

// What happens to SCC.
enum Scc { kKeep, kNonZero };

template <auto F, Scc S>
void s_u(Wave &w, const Op &op) {
  const u32 r = F(scalar32(w, op, 1));
  set32(w, op, 0, r);
  if (S == kNonZero) w.scc = r != 0;
}
template <auto F, Scc S>
void s_uu(Wave &w, const Op &op) {
  const u32 r = F(scalar32(w, op, 1), scalar32(w, op, 2));
  set32(w, op, 0, r);
  if (S == kNonZero) w.scc = r != 0;
}
template <auto F, Scc S>
void s_q(Wave &w, const Op &op) {
  const u64 r = F(scalar64(w, op, 1));
  set64(w, op, 0, r);
  if (S == kNonZero) w.scc = r != 0;
}
template <auto F, Scc S>
void s_qq(Wave &w, const Op &op) {
  const u64 r = F(scalar64(w, op, 1), scalar64(w, op, 2));
  set64(w, op, 0, r);
  if (S == kNonZero) w.scc = r != 0;
}
template <auto F, Scc S>  // 64-bit value, 32-bit count
void s_qu(Wave &w, const Op &op) {
  const u64 r = F(scalar64(w, op, 1), scalar32(w, op, 2));
  set64(w, op, 0, r);
  if (S == kNonZero) w.scc = r != 0;
}
template <auto F, Scc S>  // 32-bit result of a 64-bit source
void s_u_q(Wave &w, const Op &op) {
  const u32 r = F(scalar64(w, op, 1));
  set32(w, op, 0, r);
  if (S == kNonZero) w.scc = r != 0;
}
// F returns the result and sets scc.
template <auto F>
void s_uu_scc(Wave &w, const Op &op) {
  set32(w, op, 0, F(scalar32(w, op, 1), scalar32(w, op, 2), w.scc));
}
template <auto F>
void cmp_uu(Wave &w, const Op &op) {
  w.scc = F(scalar32(w, op, 0), scalar32(w, op, 1));
}
template <auto F>
void cmp_qq(Wave &w, const Op &op) {
  w.scc = F(scalar64(w, op, 0), scalar64(w, op, 1));
}
template <auto F>
void cmp_qu(Wave &w, const Op &op) {
  w.scc = F(scalar64(w, op, 0), scalar32(w, op, 1));
}
template <auto F>
void cmp_k(Wave &w, const Op &op) {
  w.scc = F(scalar32(w, op, 0), u32(op.imm));
}

inline u32 add(u32 a, u32 b, u32 &scc) {
  scc = a + b < a;
  return a + b;
}
inline u32 sub(u32 a, u32 b, u32 &scc) {
  scc = b > a;
  return a - b;
}
inline u32 addc(u32 a, u32 b, u32 &scc) {
  const u64 r = u64(a) + b + scc;
  scc = r >> 32 != 0;
  return u32(r);
}
inline u32 subb(u32 a, u32 b, u32 &scc) {
  const u32 r = a - b - scc;
  scc = u64(b) + scc > a;
  return r;
}
inline u32 add_i(u32 a, u32 b, u32 &scc) {
  const u32 r = a + b;
  scc = (~(a ^ b) & (a ^ r)) >> 31;
  return r;
}
inline u32 sub_i(u32 a, u32 b, u32 &scc) {
  const u32 r = a - b;
  scc = ((a ^ b) & (a ^ r)) >> 31;
  return r;
}
template <int N>
inline u32 shift_add(u32 a, u32 b, u32 &scc) {
  const u64 r = (u64(a) << N) + b;
  scc = r >> 32 != 0;
  return u32(r);
}
// min and max set SCC when the first operand was chosen.
template <class T, bool kMax>
inline u32 extreme(u32 a, u32 b, u32 &scc) {
  scc = kMax ? T(a) >= T(b) : T(a) < T(b);
  return scc ? a : b;
}
inline u32 abs_diff(u32 a, u32 b) {
  return i32(a - b) < 0 ? b - a : a - b;
}
inline u32 field(u32 n) {
  return n >= 32 ? ~0u : (1u << n) - 1;
}
inline u64 field64(u32 n) {
  return n >= 64 ? ~u64(0) : (u64(1) << n) - 1;
}
inline u32 bfe_u32(u32 a, u32 b) {
  return a >> (b & 31) & field(b >> 16 & 127);
}
inline u32 bfe_i32(u32 a, u32 b) {
  const u32 n = b >> 16 & 127, o = b & 31;
  if (!n) return 0;
  if (n >= 32 - o) return u32(i32(a) >> o);
  return u32(i32(a << (32 - n - o)) >> (32 - n));
}
inline u64 bfe_u64(u64 a, u32 b) {
  return a >> (b & 63) & field64(b >> 16 & 127);
}
inline u64 bfe_i64(u64 a, u32 b) {
  const u32 n = b >> 16 & 127, o = b & 63;
  if (!n) return 0;
  if (n >= 64 - o) return u64(i64(a) >> o);
  return u64(i64(a << (64 - n - o)) >> (64 - n));
}
inline u32 flbit_i32(u32 a) {
  const u32 x = i32(a) < 0 ? ~a : a;
  return x ? u32(__builtin_clz(x)) : ~0u;
}
inline u32 flbit_i64(u64 a) {
  const u64 x = i64(a) < 0 ? ~a : a;
  return x ? u32(__builtin_clzll(x)) : ~0u;
}
inline u64 reverse64(u64 x) {
  x = (x >> 1 & 0x5555555555555555ull) | (x & 0x5555555555555555ull) << 1;
  x = (x >> 2 & 0x3333333333333333ull) | (x & 0x3333333333333333ull) << 2;
  x = (x >> 4 & 0x0f0f0f0f0f0f0f0full) | (x & 0x0f0f0f0f0f0f0f0full) << 4;
  return __builtin_bswap64(x);
}
inline u64 wqm(u64 x) {
  u64 r = 0;
  for (int i = 0; i < 64; i += 4)
    if (x >> i & 15) r |= u64(15) << i;
  return r;
}
inline u64 quadmask(u64 x) {
  u64 r = 0;
  for (int i = 0; i < 16; ++i) r |= u64((x >> (4 * i) & 15) != 0) << i;
  return r;
}
inline u64 replicate(u32 x) {
  u64 r = 0;
  for (int i = 0; i < 32; ++i) r |= u64((x >> i & 1) * 3) << (2 * i);
  return r;
}

template <bool kWide>
void cselect(Wave &w, const Op &op) {
  const int n = w.scc ? 1 : 2;
  if (kWide) {
    set64(w, op, 0, scalar64(w, op, n));
  } else {
    set32(w, op, 0, scalar32(w, op, n));
  }
}
template <bool kWide>
void cmov(Wave &w, const Op &op) {
  if (!w.scc) return;
  if (kWide) {
    set64(w, op, 0, scalar64(w, op, 1));
  } else {
    set32(w, op, 0, scalar32(w, op, 1));
  }
}
// s_OP_saveexec: D = EXEC; EXEC = S0 OP EXEC.
template <auto F>
void saveexec(Wave &w, const Op &op) {
  const u64 a = scalar64(w, op, 1), exec = exec_of(w);
  exec_of(w) = F(a, exec);
  set64(w, op, 0, exec);
  w.scc = F(a, exec) != 0;
}
template <auto F>
void wrexec(Wave &w, const Op &op) {
  const u64 r = F(scalar64(w, op, 1), exec_of(w));
  exec_of(w) = r;
  set64(w, op, 0, r);
  w.scc = r != 0;
}
template <bool kSet, bool kWide>
void bitset(Wave &w, const Op &op) {
  const u32 bit = scalar32(w, op, 1);
  if (kWide) {
    const u64 m = u64(1) << (bit & 63), x = scalar64(w, op, 0);
    set64(w, op, 0, kSet ? x | m : x & ~m);
  } else {
    const u32 m = 1u << (bit & 31), x = scalar32(w, op, 0);
    set32(w, op, 0, kSet ? x | m : x & ~m);
  }
}
void addk(Wave &w, const Op &op) {
  u32 scc = 0;
  const u32 r = add_i(scalar32(w, op, 0), u32(op.imm), scc);
  set32(w, op, 0, r);
  w.scc = scc;
}
void mulk(Wave &w, const Op &op) {
  set32(w, op, 0, scalar32(w, op, 0) * u32(op.imm));
}
void movk(Wave &w, const Op &op) {
  set32(w, op, 0, u32(op.imm));
}
void cmovk(Wave &w, const Op &op) {
  if (w.scc) set32(w, op, 0, u32(op.imm));
}
void bfm64(Wave &w, const Op &op) {
  set64(w, op, 0, field64(scalar32(w, op, 1) & 63) << (scalar32(w, op, 2) & 63));
}
void bitreplicate(Wave &w, const Op &op) {
  set64(w, op, 0, replicate(scalar32(w, op, 1)));
}
template <bool kWide>
void movrels(Wave &w, const Op &op) {
  const u32 index = op.o[1].index + w.s[kM0];
  if (index + kWide > 107)
    return fault_value(w, op, -1, "relative scalar register out of range, number", index);
  set32(w, op, 0, w.s[index]);
  if (kWide) w.s[op.o[0].index + 1] = w.s[index + 1];
}
template <bool kWide>
void movreld(Wave &w, const Op &op) {
  const u64 x = kWide ? scalar64(w, op, 1) : scalar32(w, op, 1);
  const u32 index = op.o[0].index + w.s[kM0];
  if (index + kWide > 107)
    return fault_value(w, op, -1, "relative scalar register out of range, number", index);
  w.s[index] = u32(x);
  if (kWide) w.s[index + 1] = u32(x >> 32);
}

}  // namespace

#define U1(name, scc, expr)                                \
  {                                                        \
    name, "i=i", s_u<[](u32 a) { return u32(expr); }, scc> \
  }
#define U2(name, scc, expr)                                         \
  {                                                                 \
    name, "i=ii", s_uu<[](u32 a, u32 b) { return u32(expr); }, scc> \
  }
#define Q1(name, scc, expr)                                \
  {                                                        \
    name, "l=l", s_q<[](u64 a) { return u64(expr); }, scc> \
  }
#define Q2(name, scc, expr)                                         \
  {                                                                 \
    name, "l=ll", s_qq<[](u64 a, u64 b) { return u64(expr); }, scc> \
  }
#define QU(name, scc, expr)                                         \
  {                                                                 \
    name, "l=li", s_qu<[](u64 a, u32 b) { return u64(expr); }, scc> \
  }
#define UQ(name, scc, expr)                                  \
  {                                                          \
    name, "i=l", s_u_q<[](u64 a) { return u32(expr); }, scc> \
  }
#define CMP(name, expr)                                         \
  {                                                             \
    name, "=ii", cmp_uu<[](u32 a, u32 b) { return u32(expr); }> \
  }
#define CMPK(name, expr)                                       \
  {                                                            \
    name, "=ik", cmp_k<[](u32 a, u32 b) { return u32(expr); }> \
  }
#define SAVE(op, expr)                                                                  \
  {                                                                                     \
    "s_" op "_saveexec_b64", "l=l", saveexec<[](u64 a, u64 exec) { return u64(expr); }> \
  }

const Row rows_salu[] = {
    U1("s_mov_b32", kKeep, a),
    Q1("s_mov_b64", kKeep, a),
    {"s_cmov_b32", "i=i", cmov<false>},
    {"s_cmov_b64", "l=l", cmov<true>},
    U1("s_not_b32", kNonZero, ~a),
    Q1("s_not_b64", kNonZero, ~a),
    U1("s_brev_b32", kKeep, reverse64(a) >> 32),
    Q1("s_brev_b64", kKeep, reverse64(a)),
    Q1("s_wqm_b64", kNonZero, wqm(a)),
    U1("s_wqm_b32", kNonZero, wqm(a)),
    U1("s_quadmask_b32", kNonZero, quadmask(a)),
    Q1("s_quadmask_b64", kNonZero, quadmask(a)),
    U1("s_bcnt0_i32_b32", kNonZero, 32 - __builtin_popcount(a)),
    U1("s_bcnt1_i32_b32", kNonZero, __builtin_popcount(a)),
    UQ("s_bcnt0_i32_b64", kNonZero, 64 - __builtin_popcountll(a)),
    UQ("s_bcnt1_i32_b64", kNonZero, __builtin_popcountll(a)),
    U1("s_ff0_i32_b32", kKeep, ~a ? u32(__builtin_ctz(~a)) : ~0u),
    U1("s_ff1_i32_b32", kKeep, a ? u32(__builtin_ctz(a)) : ~0u),
    UQ("s_ff0_i32_b64", kKeep, ~a ? u32(__builtin_ctzll(~a)) : ~0u),
    UQ("s_ff1_i32_b64", kKeep, a ? u32(__builtin_ctzll(a)) : ~0u),
    U1("s_flbit_i32_b32", kKeep, a ? u32(__builtin_clz(a)) : ~0u),
    UQ("s_flbit_i32_b64", kKeep, a ? u32(__builtin_clzll(a)) : ~0u),
    U1("s_flbit_i32", kKeep, flbit_i32(a)),
    UQ("s_flbit_i32_i64", kKeep, flbit_i64(a)),
    U1("s_sext_i32_i8", kKeep, i32(int8_t(a))),
    U1("s_sext_i32_i16", kKeep, i32(int16_t(a))),
    U1("s_abs_i32", kNonZero, i32(a) < 0 ? 0u - a : a),
    {"s_bitset0_b32", "i&i", bitset<false, false>},
    {"s_bitset1_b32", "i&i", bitset<true, false>},
    {"s_bitset0_b64", "l&i", bitset<false, true>},
    {"s_bitset1_b64", "l&i", bitset<true, true>},
    {"s_bitreplicate_b64_b32", "l=i", bitreplicate},
    {"s_movrels_b32", "i=i", movrels<false>},
    {"s_movrels_b64", "l=l", movrels<true>},
    {"s_movreld_b32", "i=i", movreld<false>},
    {"s_movreld_b64", "l=l", movreld<true>},
    SAVE("and", a &exec),
    SAVE("or", a | exec),
    SAVE("xor", a ^ exec),
    SAVE("andn2", a & ~exec),
    SAVE("orn2", a | ~exec),
    SAVE("andn1", ~a &exec),
    SAVE("orn1", ~a | exec),
    SAVE("nand", ~(a &exec)),
    SAVE("nor", ~(a | exec)),
    SAVE("xnor", ~(a ^ exec)),
    {"s_andn1_wrexec_b64", "l=l", wrexec<[](u64 a, u64 exec) { return ~a & exec; }>},
    {"s_andn2_wrexec_b64", "l=l", wrexec<[](u64 a, u64 exec) { return a & ~exec; }>},
    {"s_add_u32", "i=ii", s_uu_scc<add>},
    {"s_sub_u32", "i=ii", s_uu_scc<sub>},
    {"s_addc_u32", "i=ii", s_uu_scc<addc>},
    {"s_subb_u32", "i=ii", s_uu_scc<subb>},
    {"s_add_i32", "i=ii", s_uu_scc<add_i>},
    {"s_sub_i32", "i=ii", s_uu_scc<sub_i>},
    {"s_lshl1_add_u32", "i=ii", s_uu_scc<shift_add<1>>},
    {"s_lshl2_add_u32", "i=ii", s_uu_scc<shift_add<2>>},
    {"s_lshl3_add_u32", "i=ii", s_uu_scc<shift_add<3>>},
    {"s_lshl4_add_u32", "i=ii", s_uu_scc<shift_add<4>>},
    {"s_min_i32", "i=ii", s_uu_scc<extreme<i32, false>>},
    {"s_min_u32", "i=ii", s_uu_scc<extreme<u32, false>>},
    {"s_max_i32", "i=ii", s_uu_scc<extreme<i32, true>>},
    {"s_max_u32", "i=ii", s_uu_scc<extreme<u32, true>>},
    {"s_cselect_b32", "i=ii", cselect<false>},
    {"s_cselect_b64", "l=ll", cselect<true>},
    U2("s_and_b32", kNonZero, a &b),
    U2("s_or_b32", kNonZero, a | b),
    U2("s_xor_b32", kNonZero, a ^ b),
    U2("s_andn2_b32", kNonZero, a & ~b),
    U2("s_orn2_b32", kNonZero, a | ~b),
    U2("s_nand_b32", kNonZero, ~(a &b)),
    U2("s_nor_b32", kNonZero, ~(a | b)),
    U2("s_xnor_b32", kNonZero, ~(a ^ b)),
    Q2("s_and_b64", kNonZero, a &b),
    Q2("s_or_b64", kNonZero, a | b),
    Q2("s_xor_b64", kNonZero, a ^ b),
    Q2("s_andn2_b64", kNonZero, a & ~b),
    Q2("s_orn2_b64", kNonZero, a | ~b),
    Q2("s_nand_b64", kNonZero, ~(a &b)),
    Q2("s_nor_b64", kNonZero, ~(a | b)),
    Q2("s_xnor_b64", kNonZero, ~(a ^ b)),
    U2("s_lshl_b32", kNonZero, a << (b & 31)),
    U2("s_lshr_b32", kNonZero, a >> (b & 31)),
    U2("s_ashr_i32", kNonZero, i32(a) >> (b & 31)),
    QU("s_lshl_b64", kNonZero, a << (b & 63)),
    QU("s_lshr_b64", kNonZero, a >> (b & 63)),
    QU("s_ashr_i64", kNonZero, i64(a) >> (b & 63)),
    U2("s_bfm_b32", kKeep, field(a & 31) << (b & 31)),
    {"s_bfm_b64", "l=ii", bfm64},
    U2("s_mul_i32", kKeep, a *b),
    U2("s_mul_hi_u32", kKeep, u64(a) * b >> 32),
    U2("s_mul_hi_i32", kKeep, i64(i32(a)) * i32(b) >> 32),
    U2("s_bfe_u32", kNonZero, bfe_u32(a, b)),
    U2("s_bfe_i32", kNonZero, bfe_i32(a, b)),
    QU("s_bfe_u64", kNonZero, bfe_u64(a, b)),
    QU("s_bfe_i64", kNonZero, bfe_i64(a, b)),
    U2("s_absdiff_i32", kNonZero, abs_diff(a, b)),
    U2("s_pack_ll_b32_b16", kKeep, (a & 0xffff) | b << 16),
    U2("s_pack_lh_b32_b16", kKeep, (a & 0xffff) | (b & 0xffff0000u)),
    U2("s_pack_hh_b32_b16", kKeep, a >> 16 | (b & 0xffff0000u)),
    CMP("s_cmp_eq_i32", a == b),
    CMP("s_cmp_lg_i32", a != b),
    CMP("s_cmp_gt_i32", i32(a) > i32(b)),
    CMP("s_cmp_ge_i32", i32(a) >= i32(b)),
    CMP("s_cmp_lt_i32", i32(a) < i32(b)),
    CMP("s_cmp_le_i32", i32(a) <= i32(b)),
    CMP("s_cmp_eq_u32", a == b),
    CMP("s_cmp_lg_u32", a != b),
    CMP("s_cmp_gt_u32", a > b),
    CMP("s_cmp_ge_u32", a >= b),
    CMP("s_cmp_lt_u32", a < b),
    CMP("s_cmp_le_u32", a <= b),
    CMP("s_bitcmp0_b32", !(a >> (b & 31) & 1)),
    CMP("s_bitcmp1_b32", a >> (b & 31) & 1),
    {"s_cmp_eq_u64", "=ll", cmp_qq<[](u64 a, u64 b) { return a == b; }>},
    {"s_cmp_lg_u64", "=ll", cmp_qq<[](u64 a, u64 b) { return a != b; }>},
    {"s_bitcmp0_b64", "=li", cmp_qu<[](u64 a, u32 b) { return !(a >> (b & 63) & 1); }>},
    {"s_bitcmp1_b64", "=li", cmp_qu<[](u64 a, u32 b) { return u32(a >> (b & 63) & 1); }>},
    {"s_movk_i32", "i=k", movk},
    {"s_cmovk_i32", "i=k", cmovk},
    {"s_addk_i32", "i&k", addk},
    {"s_mulk_i32", "i&k", mulk},
    CMPK("s_cmpk_eq_i32", a == b),
    CMPK("s_cmpk_lg_i32", a != b),
    CMPK("s_cmpk_gt_i32", i32(a) > i32(b)),
    CMPK("s_cmpk_ge_i32", i32(a) >= i32(b)),
    CMPK("s_cmpk_lt_i32", i32(a) < i32(b)),
    CMPK("s_cmpk_le_i32", i32(a) <= i32(b)),
    CMPK("s_cmpk_eq_u32", a == (b & 0xffff)),
    CMPK("s_cmpk_lg_u32", a != (b & 0xffff)),
    CMPK("s_cmpk_gt_u32", a > (b & 0xffff)),
    CMPK("s_cmpk_ge_u32", a >= (b & 0xffff)),
    CMPK("s_cmpk_lt_u32", a < (b & 0xffff)),
    CMPK("s_cmpk_le_u32", a <= (b & 0xffff)),
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
