// fp16 arithmetic on lanes. The hardware rounds once from the exact result; here the operation runs
// in fp32 or fp64, wide enough that rounding twice gives the same (24 >= 2 * 11 + 2 for +, -, *;
// fma through round to odd).
#include "emulator/isa/fp_lane.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

// F as it rounds to nearest even, or under another MODE S in integers, with the rounding as last
// argument.
template <auto F, auto S>
void u_u_mode(Wave &w, const Op &op) {
  if (!(op.flags & kMode)) return u_u<F>(w, op);
  const uint32_t *a = source(w, op, 1), round = half_rounding(w);
  for (int i = 0; i < 64; ++i) w.out[i] = S(a[i] & 0xffff, round);
  finish(w, op, w.out);
}
template <auto F, auto S>
void u_uu_mode(Wave &w, const Op &op) {
  if (!(op.flags & kMode)) return u_uu<F>(w, op);
  const uint32_t *a = source(w, op, 1), *b = source(w, op, 2), round = half_rounding(w);
  for (int i = 0; i < 64; ++i) w.out[i] = S(a[i] & 0xffff, b[i] & 0xffff, round);
  finish(w, op, w.out);
}
template <auto F, auto S, bool kDestinationIsSource = false>
void u_uuu_mode(Wave &w, const Op &op) {
  if (!(op.flags & kMode)) {
    if constexpr (kDestinationIsSource) {
      return u_uuD<F>(w, op);
    } else {
      return u_uuu<F>(w, op);
    }
  }
  const uint32_t *a = source(w, op, 1), *b = source(w, op, 2), round = half_rounding(w);
  const uint32_t *c = kDestinationIsSource ? accumulator(w, op, 1) : source(w, op, 3);
  for (int i = 0; i < 64; ++i) w.out[i] = S(a[i] & 0xffff, b[i] & 0xffff, c[i] & 0xffff, round);
  finish(w, op, w.out);
}
inline uint32_t soft_add(uint32_t a, uint32_t b, uint32_t round) {
  return uint32_t(SoftHalf::add(a, b, round));
}
inline uint32_t soft_sub(uint32_t a, uint32_t b, uint32_t round) {
  return soft_add(a, SoftHalf::is_nan(b) ? b : b ^ 0x8000, round);
}
inline uint32_t soft_subrev(uint32_t a, uint32_t b, uint32_t round) {
  return soft_sub(b, a, round);
}
inline uint32_t soft_mul(uint32_t a, uint32_t b, uint32_t round) {
  return uint32_t(SoftHalf::mul(a, b, round));
}
inline uint32_t soft_fma(uint32_t a, uint32_t b, uint32_t c, uint32_t round) {
  return uint32_t(SoftHalf::fma(a, b, c, round));
}
// Two roundings, denormals flushed whatever MODE says.
inline uint32_t soft_mad(uint32_t a, uint32_t b, uint32_t c, uint32_t round) {
  using H = SoftHalf;
  const uint64_t product = H::flush(H::mul(H::flush(a), H::flush(b), round));
  return uint32_t(H::flush(H::add(product, H::flush(c), round)));
}
inline uint32_t soft_fract(uint32_t a, uint32_t round) {
  const float x = half_value(a), whole = __builtin_floorf(x);
  if (x - whole != x - whole) return SoftHalf::is_nan(a) ? a | 0x200 : 0x7e00;
  const uint32_t r = soft_sub(a, half_round(whole), round);
  return r == 0x3c00 ? 0x3bff : r;
}
inline uint32_t soft_ldexp(uint32_t a, uint32_t n, uint32_t round) {
  const int by = int16_t(n), k = by > 64 ? 64 : by < -64 ? -64 : by;
  return uint32_t(SoftHalf::scale(a, k, round));
}

// A function of fp32 values applied to fp16 lanes.
template <auto F>
void h_h(Wave &w, const Op &op) {
  if (!(op.flags & kMode) || !fp16_saturates(w))
    return u_u<[](uint32_t a) { return half_round(F(half_value(a))); }>(w, op);
  // A pole counts as overflow.
  const uint32_t *a = source(w, op, 1);
  for (int i = 0; i < 64; ++i) {
    const uint32_t r = half_round(F(half_value(a[i])));
    w.out[i] = (r & 0x7fff) == 0x7c00 && !SoftHalf::is_inf(a[i] & 0xffff) ? r - 1 : r;
  }
  finish(w, op, w.out);
}

template <auto F>
inline uint32_t lane1(uint32_t a) {
  return half_round(F(half_value(a)));
}
template <auto F>
inline uint32_t lane2(uint32_t a, uint32_t b) {
  return half_round(F(half_value(a), half_value(b)));
}
inline float half_plus(float a, float b) {
  return add(a, b);
}
inline float half_minus(float a, float b) {
  return sub(a, b);
}
inline float reverse_sub(float a, float b) {
  return sub(b, a);
}
inline float half_times(float a, float b) {
  return mul(a, b);
}

// a * b is exact in fp64; the sum is rounded to odd so that the final rounding sees whether it was
// exact.
inline uint32_t fma_half(uint32_t a, uint32_t b, uint32_t c) {
  const float x = half_value(a), y = half_value(b), z = half_value(c);
  const double p = double(x) * double(y), q = double(z);
  const double s = p + q, bb = s - p, error = (p - (s - bb)) + (q - bb);
  uint64_t u = as_q(s);
  const bool inexact = error != 0 && error == error;
  const bool away = (error < 0) != (s < 0);  // |s| exceeds the exact value
  u = inexact ? ((away ? u - 1 : u) | 1) : u;
  const float r = nan_of(float(as_d(as_q(s))), x, y, z);
  return is_nan(r) ? half_round(r) : half_round_double(as_d(u));
}
inline uint32_t min_half(uint32_t a, uint32_t b, bool ieee) {
  return pick_half<minimum_number>(a, b, ieee);
}
inline uint32_t max_half(uint32_t a, uint32_t b, bool ieee) {
  return pick_half<maximum_number>(a, b, ieee);
}
template <auto F>
void min_max(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *b = source(w, op, 2);
  uint32_t *d = result(w, op);
  const bool ieee = w.mode >> 9 & 1;
  LANES d[i] = F(a[i] & 0xffff, b[i] & 0xffff, ieee);
  finish(w, op, d);
}
template <int kWhich>  // 0 min3, 1 max3, 2 med3
void three(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *b = source(w, op, 2), *c = source(w, op, 3);
  uint32_t *d = result(w, op);
  const bool ieee = w.mode >> 9 & 1;
  for (int i = 0; i < 64; ++i) {
    const uint32_t lo = min_half(a[i], b[i], ieee), hi = max_half(a[i], b[i], ieee);
    const bool nan =
        is_nan(half_value(a[i])) || is_nan(half_value(b[i])) || is_nan(half_value(c[i]));
    d[i] = kWhich == 1          ? max_half(hi, c[i], ieee)
           : kWhich == 0 || nan ? min_half(lo, c[i], ieee)
                                : max_half(lo, min_half(hi, c[i], ieee), ieee);
  }
  finish(w, op, d);
}
// V_DIV_FIXUP_F16, as the fp32 form.
inline uint32_t div_fixup(uint32_t q, uint32_t d, uint32_t n) {
  const uint32_t sign = (d ^ n) & 0x8000, a = d & 0x7fff, b = n & 0x7fff;
  if (b > 0x7c00) return (n & 0xffff) | 0x200;
  if (a > 0x7c00) return (d & 0xffff) | 0x200;
  if ((a == 0 && b == 0) || (a == 0x7c00 && b == 0x7c00)) return 0xfe00;
  if (a == 0 || b == 0x7c00) return sign | 0x7c00;
  if (a == 0x7c00 || b == 0) return sign;
  return (q & 0x7fff) | sign;
}
inline float exact(float r, float x) {
  return nan_of(r, x, x);
}
// V_MAD_F16 and its forms round twice and flush denormals.
inline float flush_half(float x) {
  return __builtin_fabsf(x) < 0x1p-14f ? as_f(as_u(x) & 0x80000000u) : x;
}
inline uint32_t mad_half(uint32_t a, uint32_t b, uint32_t c) {
  const float x = flush_half(half_value(a)), y = flush_half(half_value(b)),
              z = flush_half(half_value(c));
  const float product = flush_half(half_value(half_round(mul(x, y))));
  return half_round(flush_half(half_value(half_round(add(product, z)))));
}
inline float fract_half(float x) {
  const float r = half_value(half_round(x - __builtin_floorf(x)));
  return nan_of(r >= 1.0f ? half_value(0x3bff) : r, x, x);
}
// x = m * 2^e with 1/2 <= |m| < 1.
inline bool has_exponent(uint32_t a) {
  return (a & 0x7c00) != 0x7c00 && (a & 0x7fff);
}
inline uint32_t frexp_exponent(uint32_t a) {
  const uint32_t e = as_u(half_value(a)) >> 23 & 0xff;
  return has_exponent(a) ? (e - 126) & 0xffff : 0;
}
inline uint32_t frexp_mantissa(uint32_t a) {
  const uint32_t u = as_u(half_value(a));
  return has_exponent(a)         ? half_round(as_f((u & 0x807fffffu) | 0x3f000000u))
         : (a & 0x7fff) > 0x7c00 ? (a & 0xffff) | 0x200
                                 : a & 0xffff;
}
inline uint32_t ldexp_half(uint32_t a, uint32_t n) {
  const int32_t by = int16_t(n), k = by > 64 ? 64 : by < -64 ? -64 : by;
  const float x = half_value(a), scale = as_f(uint32_t(k + 127) << 23);
  return half_round(nan_of(x * scale, x, x));
}
// fp16 transcendentals accept and return denormals.
inline float exp_half(float x) {
  return exp2_lane(x);
}
inline float log_half(float x) {
  return log2_lane(x);
}

}  // namespace

const Row rows_valu_f16[] = {
    {"v_add_f16", "h=hh", u_uu_mode<lane2<half_plus>, soft_add>, kRowOpSel},
    {"v_sub_f16", "h=hh", u_uu_mode<lane2<half_minus>, soft_sub>, kRowOpSel},
    {"v_subrev_f16", "h=hh", u_uu_mode<lane2<reverse_sub>, soft_subrev>, kRowOpSel},
    {"v_mul_f16", "h=hh", u_uu_mode<lane2<half_times>, soft_mul>, kRowOpSel},
    {"v_fma_f16", "h=hhh", u_uuu_mode<fma_half, soft_fma>, kRowOpSel},
    {"v_fma_legacy_f16", "h=hhh", u_uuu_mode<fma_half, soft_fma>},
    {"v_fmac_f16", "h&hh", u_uuu_mode<fma_half, soft_fma, true>},
    {"v_mad_f16", "h=hhh", u_uuu_mode<mad_half, soft_mad>, kRowOpSel},
    {"v_mad_legacy_f16", "h=hhh", u_uuu_mode<mad_half, soft_mad>},
    {"v_mac_f16", "h&hh", u_uuu_mode<mad_half, soft_mad, true>},
    {"v_madmk_f16", "h=hhh", u_uuu_mode<mad_half, soft_mad>},
    {"v_madak_f16", "h=hhh", u_uuu_mode<mad_half, soft_mad>},
    {"v_ldexp_f16", "h=hs", u_uu_mode<ldexp_half, soft_ldexp>},
    {"v_fract_f16", "h=h", u_u_mode<lane1<fract_half>, soft_fract>},
    {"v_frexp_exp_i16_f16", "s=h", u_u<frexp_exponent>},
    {"v_frexp_mant_f16", "h=h", u_u<frexp_mantissa>},
    {"v_sin_f16", "h=h", h_h<sin_lane>},
    {"v_cos_f16", "h=h", h_h<cos_lane>},
    {"v_min_f16", "h=hh", min_max<min_half>, kRowOpSel},
    {"v_max_f16", "h=hh", min_max<max_half>, kRowOpSel},
    {"v_min3_f16", "h=hhh", three<0>, kRowOpSel},
    {"v_max3_f16", "h=hhh", three<1>, kRowOpSel},
    {"v_med3_f16", "h=hhh", three<2>, kRowOpSel},
    {"v_div_fixup_f16", "h=hhh", u_uuu<div_fixup>, kRowOpSel},
    {"v_div_fixup_legacy_f16", "h=hhh", u_uuu<div_fixup>},
    {"v_floor_f16", "h=h", h_h<[](float a) { return exact(__builtin_floorf(a), a); }>},
    {"v_ceil_f16", "h=h", h_h<[](float a) { return exact(__builtin_ceilf(a), a); }>},
    {"v_trunc_f16", "h=h", h_h<[](float a) { return exact(__builtin_truncf(a), a); }>},
    {"v_rndne_f16", "h=h", h_h<[](float a) { return exact(__builtin_roundevenf(a), a); }>},
    {"v_exp_f16", "h=h", h_h<exp_half>},
    {"v_log_f16", "h=h", h_h<log_half>},
    {"v_rcp_f16", "h=h", h_h<rcp_lane>},
    {"v_rsq_f16", "h=h", h_h<rsq_lane>},
    {"v_sqrt_f16", "h=h", h_h<sqrt_lane>},
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
