// VOP3P: two 16-bit or two fp32 operations a lane, mixed precision.
#include "emulator/isa/fp_lane.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

// Half `high` of 32-bit source s for result half `half`: op_sel picks it for the low, op_sel_hi for
// the high result.
inline uint32_t shift_of(const Op &op, int s, int half) {
  return ((half ? op.op_sel_hi : op.op_sel) >> s & 1) ? 16 : 0;
}
inline uint32_t sign_of(const Op &op, int s, int half) {
  return ((half ? op.neg_hi : op.neg_lo) >> s & 1) ? 0x8000 : 0;
}

// kFloat: neg_lo and neg_hi flip signs.
template <auto F, int kSources, bool kDestinationIsSource = false>
void pk16(Wave &w, const Op &op) {
  const uint32_t *p[3];
  for (int s = 0; s < kSources; ++s) p[s] = source(w, op, s + 1);
  if (kSources < 3) p[2] = p[0];
  if (kSources < 2) p[1] = p[0];
  if (kDestinationIsSource) p[2] = w.v + op.o[0].index * 64;
  const uint32_t *a = p[0], *b = p[1], *c = p[2];
  uint32_t *d = result(w, op);
  uint32_t sh[2][3], ng[2][3];
  for (int h = 0; h < 2; ++h)
    for (int s = 0; s < 3; ++s) {
      sh[h][s] = shift_of(op, s, h);
      ng[h][s] = sign_of(op, s, h);
    }
  const bool ieee = w.mode >> 9 & 1;
  // Without DX10_CLAMP a NaN stays.
  const bool keep_nan = (op.flags & kClamp) && op.fp == FpClass::kF16 && !(w.mode >> 8 & 1);
  const bool clamp = (op.flags & kClamp) && !keep_nan;
  LANES {
    const uint32_t x = a[i], y = b[i], z = c[i];
    const uint32_t lo = F((x >> sh[0][0] & 0xffff) ^ ng[0][0], (y >> sh[0][1] & 0xffff) ^ ng[0][1],
                          (z >> sh[0][2] & 0xffff) ^ ng[0][2], ieee, clamp);
    const uint32_t hi = F((x >> sh[1][0] & 0xffff) ^ ng[1][0], (y >> sh[1][1] & 0xffff) ^ ng[1][1],
                          (z >> sh[1][2] & 0xffff) ^ ng[1][2], ieee, clamp);
    d[i] = (lo & 0xffff) | hi << 16;
  }
  if (keep_nan)
    for (int i = 0; i < 64; ++i)
      d[i] = uint32_t(modify_output<SoftHalf>(d[i] & 0xffff, 0, 0, true, false)) |
             uint32_t(modify_output<SoftHalf>(d[i] >> 16, 0, 0, true, false)) << 16;
  finish(w, op, d);
}

// The fp16 forms whose rounding MODE governs: F to nearest even, S with the rounding as last
// argument; denormals are flushed where sources are read and here.
template <auto F, auto S, int kSources, bool kDestinationIsSource = false>
void pk_half(Wave &w, const Op &op) {
  if (!(op.flags & kMode)) return pk16<F, kSources, kDestinationIsSource>(w, op);
  const uint32_t *p[3] = {source(w, op, 1), source(w, op, 2), source(w, op, 1)};
  if (kSources > 2) p[2] = source(w, op, 3);
  if (kDestinationIsSource) p[2] = accumulator(w, op, 1);
  const uint32_t round = half_rounding(w);
  for (int i = 0; i < 64; ++i) {
    uint32_t half[2];
    for (int h = 0; h < 2; ++h) {
      uint32_t x[3];
      for (int s = 0; s < 3; ++s)
        x[s] = (p[s][i] >> shift_of(op, s, h) & 0xffff) ^ sign_of(op, s, h);
      half[h] = S(x[0], x[1], x[2], round);
      if (!(denormals_of(w, 'p') & 2)) half[h] = uint32_t(SoftHalf::flush(half[h]));
      half[h] =
          uint32_t(modify_output<SoftHalf>(half[h], 0, round, op.flags & kClamp, w.mode >> 8 & 1));
    }
    w.out[i] = half[0] | half[1] << 16;
  }
  finish(w, op, w.out);
}
inline uint32_t soft_add(uint32_t a, uint32_t b, uint32_t, uint32_t round) {
  return uint32_t(SoftHalf::add(a, b, round));
}
inline uint32_t soft_mul(uint32_t a, uint32_t b, uint32_t, uint32_t round) {
  return uint32_t(SoftHalf::mul(a, b, round));
}
inline uint32_t soft_fma(uint32_t a, uint32_t b, uint32_t c, uint32_t round) {
  return uint32_t(SoftHalf::fma(a, b, c, round));
}

using u32 = uint32_t;
inline u32 clamp_half(u32 h, bool clamp) {
  // To [0, 1]; NaN becomes 0 (DX10_CLAMP; pk16 sees to the other setting).
  if (!clamp) return h;
  return (h & 0x8000) || (h & 0x7fff) > 0x7c00 ? 0 : h > 0x3c00 ? 0x3c00 : h;
}
inline u32 add16(u32 a, u32 b, u32, bool, bool c) {
  return clamp_half(half_round(add(half_value(a), half_value(b))), c);
}
inline u32 mul16(u32 a, u32 b, u32, bool, bool c) {
  return clamp_half(half_round(mul(half_value(a), half_value(b))), c);
}
inline u32 fma16(u32 a, u32 b, u32 c, bool, bool k) {
  const float x = half_value(a), y = half_value(b), z = half_value(c);
  const double p = double(x) * double(y), q = double(z);
  const double s = p + q, bb = s - p, error = (p - (s - bb)) + (q - bb);
  uint64_t u = as_q(s);
  const bool inexact = error != 0 && error == error;
  const bool away = (error < 0) != (s < 0);
  u = inexact ? ((away ? u - 1 : u) | 1) : u;
  const float r = nan_of(float(s), x, y, z);
  return clamp_half(is_nan(r) ? half_round(r) : half_round_double(as_d(u)), k);
}
inline u32 min16(u32 a, u32 b, u32, bool ieee, bool c) {
  return clamp_half(pick_half<minimum_number>(a, b, ieee), c);
}
inline u32 max16(u32 a, u32 b, u32, bool ieee, bool c) {
  return clamp_half(pick_half<maximum_number>(a, b, ieee), c);
}
inline u32 minimum3_16(u32 a, u32 b, u32 c, bool, bool k) {
  return clamp_half(half_round(minimum(minimum(half_value(a), half_value(b)), half_value(c))), k);
}
inline u32 maximum3_16(u32 a, u32 b, u32 c, bool, bool k) {
  return clamp_half(half_round(maximum(maximum(half_value(a), half_value(b)), half_value(c))), k);
}
inline int32_t s16(u32 x) {
  return int16_t(x);
}
inline u32 sat_s16(int32_t x, bool clamp) {
  return u32(!clamp ? x : x > 32767 ? 32767 : x < -32768 ? -32768 : x);
}
inline u32 sat_u16(int64_t x, bool clamp) {
  return u32(!clamp ? x : x > 65535 ? 65535 : x < 0 ? 0 : x);
}
inline u32 add_u16(u32 a, u32 b, u32, bool, bool k) {
  return sat_u16(int64_t(a) + b, k);
}
inline u32 sub_u16(u32 a, u32 b, u32, bool, bool k) {
  return sat_u16(int64_t(a) - b, k);
}
inline u32 add_i16(u32 a, u32 b, u32, bool, bool k) {
  return sat_s16(s16(a) + s16(b), k);
}
inline u32 sub_i16(u32 a, u32 b, u32, bool, bool k) {
  return sat_s16(s16(a) - s16(b), k);
}
inline u32 mul_u16(u32 a, u32 b, u32, bool, bool) {
  return a * b;
}
inline u32 mad_u16(u32 a, u32 b, u32 c, bool, bool k) {
  return sat_u16(int64_t(a) * b + c, k);
}
inline u32 mad_i16(u32 a, u32 b, u32 c, bool, bool k) {
  const int64_t x = int64_t(s16(a)) * s16(b) + s16(c);
  return u32(!k ? x : x > 32767 ? 32767 : x < -32768 ? -32768 : x);
}
inline u32 min_u16(u32 a, u32 b, u32, bool, bool) {
  return a < b ? a : b;
}
inline u32 max_u16(u32 a, u32 b, u32, bool, bool) {
  return a > b ? a : b;
}
inline u32 min_i16(u32 a, u32 b, u32, bool, bool) {
  return s16(a) < s16(b) ? a : b;
}
inline u32 max_i16(u32 a, u32 b, u32, bool, bool) {
  return s16(a) > s16(b) ? a : b;
}
inline u32 shl16(u32 a, u32 b, u32, bool, bool) {
  return b << (a & 15);
}
inline u32 shr16(u32 a, u32 b, u32, bool, bool) {
  return b >> (a & 15);
}
inline u32 sar16(u32 a, u32 b, u32, bool, bool) {
  return u32(s16(b) >> (a & 15));
}

// Packed fp32: sources are register pairs; op_sel picks the word for the low result, op_sel_hi for
// the high one.
template <auto F, int kSources>
void pk32(Wave &w, const Op &op) {
  const uint32_t *p[3];
  for (int s = 0; s < kSources; ++s) p[s] = source(w, op, s + 1);
  if (kSources < 3) p[2] = p[0];
  for (int h = 0; h < 2; ++h) {
    const uint32_t sel = h ? op.op_sel_hi : op.op_sel, neg = h ? op.neg_hi : op.neg_lo;
    const uint32_t *a = p[0] + 64 * (sel & 1), *b = p[1] + 64 * (sel >> 1 & 1),
                   *c = p[2] + 64 * (sel >> 2 & 1);
    const uint32_t na = (neg & 1) << 31, nb = (neg >> 1 & 1) << 31, nc = (neg >> 2 & 1) << 31;
    uint32_t *d = w.out + 64 * h;
    LANES d[i] = as_u(F(as_f(a[i] ^ na), as_f(b[i] ^ nb), as_f(c[i] ^ nc)));
  }
  finish(w, op, w.out, 2);
}
inline float add3(float a, float b, float) {
  return add(a, b);
}
inline float mul3(float a, float b, float) {
  return mul(a, b);
}
inline float fma3(float a, float b, float c) {
  return fma(a, b, c);
}
void pk_mov(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *b = source(w, op, 2);
  memcpy(w.out, a + 64 * (op.op_sel & 1), 256);
  memcpy(w.out + 64, b + 64 * (op.op_sel >> 1 & 1), 256);
  finish(w, op, w.out, 2);
}

// The words of an fp16 source of v_fma_mix*. An inline float constant is the fp16 one there: compilers write 1.0 under op_sel_hi for
// x * 1.0 with an fp16 x. Registers and inline integers (-16 .. 64) are taken as they are.
uint32_t half_bits(const Operand &o, uint32_t x) {
  const uint32_t magnitude = x & 0x7fffffff;
  const bool inline_float = magnitude >= 0x3e22f983 && magnitude <= 0x40800000;  // 1/(2 pi) .. 4.0
  return o.kind == Kind::kConstant && inline_float ? half_round(as_f(x)) : x;
}

// V_FMA_MIX: each source is fp32, or with op_sel_hi the half of a register that op_sel names.
template <int kResult>  // 0 fp32, 1 low half, 2 high half
void mix(Wave &w, const Op &op) {
  alignas(64) float x[3][64];
  for (int s = 0; s < 3; ++s) {
    const Operand &o = op.o[s + 1];
    Operand plain = o;
    plain.mods = 0;
    Op one = op;
    one.o[s + 1] = plain;
    one.flags &= uint16_t(~(kOpSel | kMode));
    const uint32_t *p = source(w, one, s + 1);
    const bool half = op.op_sel_hi >> s & 1;
    const uint32_t shift = op.op_sel >> s & 1 ? 16 : 0;
    for (int i = 0; i < 64; ++i) {
      uint32_t h = half_bits(o, p[i]) >> shift & 0xffff;
      if (half && (op.flags & kMode) && !(denormals_of(w, 'h') & 1))
        h = uint32_t(SoftHalf::flush(h));
      uint32_t u = half ? as_u(half_value(h)) : p[i];
      if (!half && (op.flags & kMode) && !(denormals_of(w, 'f') & 1))
        u = uint32_t(SoftSingle::flush(u));
      if (o.mods & kAbs) u &= 0x7fffffff;
      if (o.mods & kNeg) u ^= 0x80000000u;
      x[s][i] = as_f(u);
    }
  }
  const uint32_t *row = w.v + op.o[0].index * 64;
  for (int i = 0; i < 64; ++i) {
    float r = fma(x[0][i], x[1][i], x[2][i]);
    uint32_t h = 0;
    if (kResult) {
      uint32_t single = as_u(r);
      if ((op.flags & kMode) && !(denormals_of(w, 'f') & 2))
        single = uint32_t(SoftSingle::flush(single));
      h = (op.flags & kMode) || fp16_saturates(w) ? half_of_single(single, half_rounding(w))
                                                  : half_round(r);
      if (!(denormals_of(w, 'h') & 2)) h = uint32_t(SoftHalf::flush(h));
      h = uint32_t(modify_output<SoftHalf>(h, 0, 0, op.flags & kClamp, w.mode >> 8 & 1));
    }
    w.out[i] = kResult == 0   ? as_u(r)
               : kResult == 1 ? (row[i] & 0xffff0000u) | h
                              : (row[i] & 0xffff) | h << 16;
  }
  finish(w, op, w.out);
}

}  // namespace

const Row rows_packed[] = {
    {"v_pk_add_f16", "p=pp", pk_half<add16, soft_add, 2>, kRowPacked},
    {"v_pk_mul_f16", "p=pp", pk_half<mul16, soft_mul, 2>, kRowPacked},
    {"v_pk_fma_f16", "p=ppp", pk_half<fma16, soft_fma, 3>, kRowPacked},
    {"v_pk_fmac_f16", "p&pp", pk_half<fma16, soft_fma, 2, true>, kRowPacked},
    {"v_pk_min_f16", "p=pp", pk16<min16, 2>, kRowPacked},
    {"v_pk_max_f16", "p=pp", pk16<max16, 2>, kRowPacked},
    {"v_pk_minimum3_f16", "p=ppp", pk16<minimum3_16, 3>, kRowPacked},
    {"v_pk_maximum3_f16", "p=ppp", pk16<maximum3_16, 3>, kRowPacked},
    {"v_pk_add_u16", "p=pp", pk16<add_u16, 2>, kRowPacked | kRowIntClamp},
    {"v_pk_sub_u16", "p=pp", pk16<sub_u16, 2>, kRowPacked | kRowIntClamp},
    {"v_pk_add_i16", "p=pp", pk16<add_i16, 2>, kRowPacked | kRowIntClamp},
    {"v_pk_sub_i16", "p=pp", pk16<sub_i16, 2>, kRowPacked | kRowIntClamp},
    {"v_pk_mul_lo_u16", "p=pp", pk16<mul_u16, 2>, kRowPacked},
    {"v_pk_mad_u16", "p=ppp", pk16<mad_u16, 3>, kRowPacked | kRowIntClamp},
    {"v_pk_mad_i16", "p=ppp", pk16<mad_i16, 3>, kRowPacked | kRowIntClamp},
    {"v_pk_min_u16", "p=pp", pk16<min_u16, 2>, kRowPacked},
    {"v_pk_max_u16", "p=pp", pk16<max_u16, 2>, kRowPacked},
    {"v_pk_min_i16", "p=pp", pk16<min_i16, 2>, kRowPacked},
    {"v_pk_max_i16", "p=pp", pk16<max_i16, 2>, kRowPacked},
    {"v_pk_lshlrev_b16", "p=pp", pk16<shl16, 2>, kRowPacked},
    {"v_pk_lshrrev_b16", "p=pp", pk16<shr16, 2>, kRowPacked},
    {"v_pk_ashrrev_i16", "p=pp", pk16<sar16, 2>, kRowPacked},
    {"v_pk_add_f32", "P=PP", pk32<add3, 2>, kRowPacked},
    {"v_pk_mul_f32", "P=PP", pk32<mul3, 2>, kRowPacked},
    {"v_pk_fma_f32", "P=PPP", pk32<fma3, 3>, kRowPacked},
    {"v_pk_mov_b32", "P=PP", pk_mov, kRowPacked},
    {"v_fma_mix_f32", "f=fff", mix<0>, kRowPacked},
    {"v_fma_mixlo_f16", "i=fff", mix<1>, kRowPacked | kRowIntClamp},
    {"v_fma_mixhi_f16", "i=fff", mix<2>, kRowPacked | kRowIntClamp},
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
