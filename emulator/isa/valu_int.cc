// 32-bit integer and bit operations on lanes.
#include "emulator/isa/saturate.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

using u32 = uint32_t;
using i32 = int32_t;

inline i32 i24(u32 x) {
  return i32(x << 8) >> 8;
}
inline u32 u24(u32 x) {
  return x & 0xffffff;
}
inline u32 min_u(u32 a, u32 b) {
  return a < b ? a : b;
}
inline u32 max_u(u32 a, u32 b) {
  return a > b ? a : b;
}
inline u32 min_i(u32 a, u32 b) {
  return i32(a) < i32(b) ? a : b;
}
inline u32 max_i(u32 a, u32 b) {
  return i32(a) > i32(b) ? a : b;
}
inline u32 med_u(u32 a, u32 b, u32 c) {
  return max_u(min_u(a, b), min_u(max_u(a, b), c));
}
inline u32 med_i(u32 a, u32 b, u32 c) {
  return max_i(min_i(a, b), min_i(max_i(a, b), c));
}
inline u32 mask_width(u32 n) {
  return (1u << (n & 31)) - 1;
}

// Saturation is the clamp bit of the integer adds (CDNA3 ISA, "VOP3: clamp").
template <auto F, auto Saturated>
void add_clamp(Wave &w, const Op &op) {
  if (op.flags & kClamp) return u_uu<Saturated>(w, op);
  u_uu<F>(w, op);
}
inline u32 add_u(u32 a, u32 b) {
  return a + b;
}
inline u32 sub_u(u32 a, u32 b) {
  return a - b;
}
inline u32 rsub_u(u32 a, u32 b) {
  return b - a;
}
inline u32 add_us(u32 a, u32 b) {
  return a + b < a ? ~0u : a + b;
}
inline u32 sub_us(u32 a, u32 b) {
  return a < b ? 0 : a - b;
}
inline u32 rsub_us(u32 a, u32 b) {
  return sub_us(b, a);
}
inline u32 add_is(u32 a, u32 b) {
  return saturate_i32(int64_t(i32(a)) + i32(b));
}
inline u32 sub_is(u32 a, u32 b) {
  return saturate_i32(int64_t(i32(a)) - i32(b));
}

// d, carry = a + b + c, for the carry forms.
template <bool kSubtract, bool kReverse, bool kCarryIn>
void carry(Wave &w, const Op &op) {
  const u32 *x = source(w, op, 2), *y = source(w, op, 3);
  if (kReverse) {
    const u32 *t = x;
    x = y;
    y = t;
  }
  alignas(64) u32 in[64] = {}, flags[64];
  if (kCarryIn) spread_mask(scalar64(w, op, 4), in);
  const bool clamp = op.flags & kClamp;
  u32 *d = w.out;
  LANES {
    const u32 a = x[i], b = y[i], c = in[i] & 1;
    const u32 r = kSubtract ? a - b - c : a + b + c;
    const bool over = kSubtract ? a < b || (a == b && c) : r < a || (c && r == a);
    flags[i] = over ? ~0u : 0;
    d[i] = clamp && over ? (kSubtract ? 0 : ~0u) : r;
  }
  const uint64_t m = mask_of(flags);
  finish(w, op, w.out);
  set_mask(w, op, 1, m);
}

void cndmask(Wave &w, const Op &op) {
  const u32 *a = source(w, op, 1), *b = source(w, op, 2);
  const uint64_t m = scalar64(w, op, 3);
  u32 *d = result(w, op);
#if defined(__AVX512F__)
  for (int i = 0; i < 64; i += 16)
    _mm512_store_si512(d + i, _mm512_mask_mov_epi32(_mm512_load_si512(a + i), __mmask16(m >> i),
                                                    _mm512_load_si512(b + i)));
#else
  alignas(64) u32 t[64];
  spread_mask(m, t);
  LANES d[i] = (a[i] & ~t[i]) | (b[i] & t[i]);
#endif
  finish(w, op, d);
}

inline u32 mul_hi_u(u32 a, u32 b) {
  return u32(uint64_t(a) * b >> 32);
}
inline u32 mul_hi_i(u32 a, u32 b) {
  return u32(int64_t(i32(a)) * i32(b) >> 32);
}
inline u32 ffbh_u(u32 a) {
  return a ? u32(__builtin_clz(a)) : ~0u;
}
inline u32 ffbh_i(u32 a) {
  const u32 x = i32(a) < 0 ? ~a : a;
  return x ? u32(__builtin_clz(x)) : ~0u;
}
inline u32 ffbl(u32 a) {
  return a ? u32(__builtin_ctz(a)) : ~0u;
}
inline u32 reverse(u32 x) {
  x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
  x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
  x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
  return __builtin_bswap32(x);
}
inline u32 bfe_u(u32 a, u32 o, u32 n) {
  return (a >> (o & 31)) & mask_width(n);
}
inline u32 bfe_i(u32 a, u32 o, u32 n) {
  const u32 width = n & 31;
  if (!width) return 0;
  const u32 x = (a >> (o & 31)) & mask_width(width);
  // A field that reaches past bit 31 takes its sign from bit 31.
  const u32 available = 32 - (o & 31), top = width < available ? width : available;
  const u32 sign = 1u << (top - 1);
  return (x & sign) ? x | ~(sign | (sign - 1)) : x;
}
inline u32 perm_byte(uint64_t data, u32 sel) {
  if (sel >= 13) return 0xff;
  if (sel == 12) return 0;
  if (sel >= 8) return (data >> (16 * (sel - 8) + 15) & 1) ? 0xff : 0;
  return u32(data >> (8 * sel)) & 0xff;
}
inline u32 perm(u32 a, u32 b, u32 s) {
  const uint64_t data = uint64_t(a) << 32 | b;
  u32 r = 0;
  for (int k = 0; k < 4; ++k) r |= perm_byte(data, s >> (8 * k) & 0xff) << (8 * k);
  return r;
}
inline u32 align_bit(u32 a, u32 b, u32 n) {
  return u32((uint64_t(a) << 32 | b) >> (n & 31));
}
inline u32 align_byte(u32 a, u32 b, u32 n) {
  return u32((uint64_t(a) << 32 | b) >> (8 * (n & 3)));
}
// D = table[bit of S0, S1, S2], bit by bit: 8-entry truth table in the modifier fields of the
// encoding.
void bitop3(Wave &w, const Op &op) {
  const u32 *a = source(w, op, 1), *b = source(w, op, 2), *c = source(w, op, 3);
  u32 *d = result(w, op);
  u32 m[8];
  for (int k = 0; k < 8; ++k) m[k] = op.imm >> k & 1 ? ~0u : 0;
  LANES {
    const u32 x = a[i], y = b[i], z = c[i];
    d[i] = (m[0] & ~x & ~y & ~z) | (m[1] & ~x & ~y & z) | (m[2] & ~x & y & ~z) |
           (m[3] & ~x & y & z) | (m[4] & x & ~y & ~z) | (m[5] & x & ~y & z) | (m[6] & x & y & ~z) |
           (m[7] & x & y & z);
  }
  finish(w, op, d);
}

void mov64(Wave &w, const Op &op) {
  const u32 *a = source(w, op, 1);
  memcpy(w.out, a, 512);
  finish(w, op, w.out, 2);
}
void swap(Wave &w, const Op &op) {
  u32 *a = w.v + op.o[0].index * 64, *b = w.v + op.o[1].index * 64;
  memcpy(w.out, a, 256);
  memcpy(w.tmp[0], b, 256);
  store_masked(a, w.tmp[0], exec_of(w));
  store_masked(b, w.out, exec_of(w));
}

}  // namespace

#define I1(name, expr)                                \
  {                                                   \
    name, "i=i", u_u<[](u32 a) { return u32(expr); }> \
  }
#define I2(name, expr)                                         \
  {                                                            \
    name, "i=ii", u_uu<[](u32 a, u32 b) { return u32(expr); }> \
  }
#define I3(name, expr)                                                  \
  {                                                                     \
    name, "i=iii", u_uuu<[](u32 a, u32 b, u32 c) { return u32(expr); }> \
  }
const Row rows_valu_int[] = {
    I1("v_mov_b32", a),
    I1("v_not_b32", ~a),
    I1("v_bfrev_b32", reverse(a)),
    I1("v_ffbh_u32", ffbh_u(a)),
    I1("v_ffbh_i32", ffbh_i(a)),
    I1("v_ffbl_b32", ffbl(a)),
    I1("v_prng_b32", a << 1 ^ (a >> 31 ? 197u : 0u)),
    {"v_accvgpr_read_b32", "i=i", u_u<[](u32 a) { return a; }>},
    {"v_accvgpr_write_b32", "i=i", u_u<[](u32 a) { return a; }>},
    {"v_accvgpr_mov_b32", "i=i", u_u<[](u32 a) { return a; }>},
    {"v_mov_b64", "l=l", mov64},
    {"v_swap_b32", "ii=", swap, kRowNoVop},
    {"v_add_u32", "i=ii", add_clamp<add_u, add_us>, kRowIntClamp},
    {"v_sub_u32", "i=ii", add_clamp<sub_u, sub_us>, kRowIntClamp},
    {"v_subrev_u32", "i=ii", add_clamp<rsub_u, rsub_us>, kRowIntClamp},
    {"v_add_i32", "i=ii", add_clamp<add_u, add_is>, kRowIntClamp},
    {"v_sub_i32", "i=ii", add_clamp<sub_u, sub_is>, kRowIntClamp},
    {"v_add_co_u32", "im=ii", carry<false, false, false>, kRowIntClamp},
    {"v_sub_co_u32", "im=ii", carry<true, false, false>, kRowIntClamp},
    {"v_subrev_co_u32", "im=ii", carry<true, true, false>, kRowIntClamp},
    {"v_addc_co_u32", "im=iim", carry<false, false, true>, kRowIntClamp},
    {"v_subb_co_u32", "im=iim", carry<true, false, true>, kRowIntClamp},
    {"v_subbrev_co_u32", "im=iim", carry<true, true, true>, kRowIntClamp},
    {"v_cndmask_b32", "i=ffm", cndmask},
    I2("v_and_b32", a &b),
    I2("v_or_b32", a | b),
    I2("v_xor_b32", a ^ b),
    I2("v_xnor_b32", ~(a ^ b)),
    I2("v_lshlrev_b32", b << (a & 31)),
    I2("v_lshrrev_b32", b >> (a & 31)),
    I2("v_ashrrev_i32", i32(b) >> (a & 31)),
    I2("v_min_u32", min_u(a, b)),
    I2("v_max_u32", max_u(a, b)),
    I2("v_min_i32", min_i(a, b)),
    I2("v_max_i32", max_i(a, b)),
    I2("v_mul_lo_u32", a *b),
    I2("v_mul_hi_u32", mul_hi_u(a, b)),
    I2("v_mul_hi_i32", mul_hi_i(a, b)),
    {"v_mul_i32_i24", "i=ii", signed2<[](u32 a, u32 b) { return int64_t(i24(a)) * i24(b); }>,
     kRowIntClamp},
    {"v_mul_u32_u24", "i=ii", unsigned2<[](u32 a, u32 b) { return uint64_t(u24(a)) * u24(b); }>,
     kRowIntClamp},
    I2("v_mul_hi_i32_i24", int64_t(i24(a)) * i24(b) >> 32),
    I2("v_mul_hi_u32_u24", uint64_t(u24(a)) * u24(b) >> 32),
    I2("v_bfm_b32", mask_width(a) << (b & 31)),
    I2("v_bcnt_u32_b32", u32(__builtin_popcount(a)) + b),
    {"v_pack_b32_f16", "i=hh", u_uu<[](u32 a, u32 b) { return (a & 0xffff) | b << 16; }>,
     kRowOpSel},
    I3("v_add3_u32", a + b + c),
    I3("v_lshl_add_u32", (a << (b & 31)) + c),
    I3("v_add_lshl_u32", (a + b) << (c & 31)),
    I3("v_lshl_or_b32", a << (b & 31) | c),
    I3("v_and_or_b32", (a & b) | c),
    I3("v_or3_b32", a | b | c),
    I3("v_xad_u32", (a ^ b) + c),
    I3("v_bfi_b32", (a & b) | (~a & c)),
    I3("v_bfe_u32", bfe_u(a, b, c)),
    I3("v_bfe_i32", bfe_i(a, b, c)),
    I3("v_perm_b32", perm(a, b, c)),
    I3("v_alignbit_b32", align_bit(a, b, c)),
    I3("v_alignbyte_b32", align_byte(a, b, c)),
    {"v_mad_i32_i24", "i=iii",
     signed3<[](u32 a, u32 b, u32 c) { return int64_t(i24(a)) * i24(b) + i32(c); }>, kRowIntClamp},
    {"v_mad_u32_u24", "i=iii",
     unsigned3<[](u32 a, u32 b, u32 c) { return uint64_t(u24(a)) * u24(b) + c; }>, kRowIntClamp},
    {"v_mad_i32_i16", "i=ssi",
     signed3<[](u32 a, u32 b, u32 c) { return int64_t(int16_t(a)) * int16_t(b) + i32(c); }>,
     kRowIntClamp | kRowOpSel},
    {"v_mad_u32_u16", "i=ssi",
     unsigned3<[](u32 a, u32 b, u32 c) { return uint64_t(a & 0xffff) * (b & 0xffff) + c; }>,
     kRowIntClamp | kRowOpSel},
    I3("v_min3_u32", min_u(min_u(a, b), c)),
    I3("v_max3_u32", max_u(max_u(a, b), c)),
    I3("v_med3_u32", med_u(a, b, c)),
    I3("v_min3_i32", min_i(min_i(a, b), c)),
    I3("v_max3_i32", max_i(max_i(a, b), c)),
    I3("v_med3_i32", med_i(a, b, c)),
    {"v_bitop3_b32", "i=iii", bitop3},
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
