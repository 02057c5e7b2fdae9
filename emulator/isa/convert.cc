// Conversions between number formats.
#include "emulator/isa/fp_lane.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

// Float to integer truncates, saturates, and takes NaN to 0 (CDNA3 ISA, V_CVT_I32_F32).
inline uint32_t to_i32(double x) {
  if (x != x) return 0;
  if (x >= 2147483647.0) return 0x7fffffff;
  if (x <= -2147483648.0) return 0x80000000u;
  return uint32_t(int32_t(x));
}
inline uint32_t to_u32(double x) {
  if (!(x > 0)) return 0;
  if (x >= 4294967295.0) return ~0u;
  return uint32_t(int64_t(x));
}
inline uint32_t i32_of(float x) {
  const int32_t inside = int32_t(__builtin_fabsf(x) < 2147483648.0f ? x : 0.0f);
  const int32_t r = x >= 2147483648.0f                          ? 0x7fffffff
                    : x < -2147483648.0f || x == -2147483648.0f ? int32_t(0x80000000)
                                                                : inside;
  return uint32_t(r);
}
inline uint32_t i16_of(float x) {
  return is_nan(x)        ? 0
         : x >= 32767.0f  ? 0x7fff
         : x <= -32768.0f ? 0x8000
                          : uint32_t(int32_t(x)) & 0xffff;
}
inline uint32_t u16_of(float x) {
  return !(x > 0) ? 0 : x >= 65535.0f ? 0xffff : uint32_t(int32_t(x));
}
inline float quieted(float x) {
  return is_nan(x) ? quiet(x) : x;
}

template <auto F>
void q_u(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1);
  for (int i = 0; i < 64; ++i) set_wide(w.out, i, F(a[i]));
  finish(w, op, w.out, 2);
}
template <auto F>
void u_q(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1);
  for (int i = 0; i < 64; ++i) w.out[i] = F(wide(a, i));
  finish(w, op, w.out);
}
inline uint64_t f64_of_f32(uint32_t a) {
  return as_q(double(quieted(as_f(a))));
}
inline uint32_t f32_of_f64(uint64_t a) {
  return as_u(float(as_d(a)));
}
template <auto F>
inline uint32_t pack(uint32_t a, uint32_t b) {
  return F(as_f(a)) | F(as_f(b)) << 16;
}
inline uint32_t snorm16(float x) {
  const double c = is_nan(x) ? 0 : x > 1 ? 1 : x < -1 ? -1 : double(x);
  return uint32_t(int32_t(__builtin_roundeven(c * 32767.0))) & 0xffff;
}
inline uint32_t unorm16(float x) {
  const double c = !(x > 0) ? 0 : x > 1 ? 1 : double(x);
  return uint32_t(int32_t(__builtin_roundeven(c * 65535.0)));
}
inline uint32_t clamp_i16(uint32_t x) {
  const int32_t v = int32_t(x);
  return uint32_t(v > 32767 ? 32767 : v < -32768 ? -32768 : v) & 0xffff;
}
inline uint32_t clamp_u16(uint32_t x) {
  return x > 65535 ? 65535 : x;
}
inline uint32_t half_to_even(float x) {
  return half_of_single(as_u(x), 0);
}
inline uint32_t half_to_even_saturated(float x) {
  return half_of_single(as_u(x), kSaturate);
}
inline uint32_t pk_u8(uint32_t a, uint32_t b, uint32_t c) {
  const float x = __builtin_roundevenf(as_f(a));
  const uint32_t v = !(x > 0) ? 0 : x > 255 ? 255 : uint32_t(int32_t(x)), shift = 8 * (b & 3);
  return (c & ~(0xffu << shift)) | v << shift;
}

// To fp16 under MODE: R takes a lane to a value that fp32 holds exactly.
template <auto R>
void to_half(Wave &w, const Op &op) {
  if (!(op.flags & kMode)) return u_u<[](uint32_t a) { return half_round(R(a)); }>(w, op);
  const uint32_t *a = source(w, op, 1), round = half_rounding(w);
  for (int i = 0; i < 64; ++i) w.out[i] = half_of_single(as_u(R(a[i])), round);
  finish(w, op, w.out);
}
// Two fp16 results in a rounding of their own; denormals and overflow (Saturated) as MODE says.
template <auto F, auto Saturated>
void pack_half(Wave &w, const Op &op) {
  if (!(op.flags & kMode) && !fp16_saturates(w)) return u_uu<pack<F>>(w, op);
  const uint32_t *a = source(w, op, 1), *b = source(w, op, 2);
  const bool saturate = fp16_saturates(w);
  for (int i = 0; i < 64; ++i)
    w.out[i] = saturate ? pack<Saturated>(a[i], b[i]) : pack<F>(a[i], b[i]);
  if (!(w.mode >> 7 & 1)) flush_rows(w.out, 'p', 1);
  finish(w, op, w.out);
}
inline uint32_t brain_saturated(float x) {
  return finite_bf16(bf16_round(x), (as_u(x) & 0x7fffffff) == 0x7f800000);
}
void pack_brain(Wave &w, const Op &op) {
  if (fp16_saturates(w)) return u_uu<pack<brain_saturated>>(w, op);
  u_uu<pack<bf16_round>>(w, op);
}

}  // namespace

#define CVT(name, shape, type, expr)                               \
  {                                                                \
    name, shape, u_u<[](uint32_t type) { return uint32_t(expr); }> \
  }

const Row rows_convert[] = {
    CVT("v_cvt_f32_i32", "f=i", a, as_u(float(int32_t(a)))),
    CVT("v_cvt_f32_u32", "f=i", a, as_u(float(a))),
    CVT("v_cvt_i32_f32", "i=f", a, i32_of(as_f(a))),
    CVT("v_cvt_u32_f32", "i=f", a, to_u32(double(as_f(a)))),
    CVT("v_cvt_rpi_i32_f32", "i=f", a, to_i32(__builtin_floor(double(as_f(a)) + 0.5))),
    CVT("v_cvt_flr_i32_f32", "i=f", a, to_i32(double(__builtin_floorf(as_f(a))))),
    {"v_cvt_f16_f32", "h=f", to_half<[](uint32_t a) { return as_f(a); }>},
    CVT("v_cvt_f32_f16", "f=h", a, as_u(quieted(half_value(a)))),
    CVT("v_cvt_f32_bf16", "f=b", a, as_u(quieted(bf16_value(a & 0xffff)))),
    {"v_cvt_f16_u16", "h=i", to_half<[](uint32_t a) { return float(a & 0xffff); }>},
    {"v_cvt_f16_i16", "h=i", to_half<[](uint32_t a) { return float(int16_t(a)); }>},
    CVT("v_cvt_u16_f16", "i=h", a, u16_of(half_value(a))),
    CVT("v_cvt_i16_f16", "i=h", a, i16_of(half_value(a))),
    CVT("v_cvt_f32_ubyte0", "f=i", a, as_u(float(int32_t(a & 0xff)))),
    CVT("v_cvt_f32_ubyte1", "f=i", a, as_u(float(int32_t(a >> 8 & 0xff)))),
    CVT("v_cvt_f32_ubyte2", "f=i", a, as_u(float(int32_t(a >> 16 & 0xff)))),
    CVT("v_cvt_f32_ubyte3", "f=i", a, as_u(float(int32_t(a >> 24)))),
    {"v_cvt_f64_f32", "d=f", q_u<f64_of_f32>},
    {"v_cvt_f64_i32", "d=i", q_u<[](uint32_t a) { return as_q(double(int32_t(a))); }>},
    {"v_cvt_f64_u32", "d=i", q_u<[](uint32_t a) { return as_q(double(a)); }>},
    {"v_cvt_f32_f64", "f=d", u_q<f32_of_f64>},
    {"v_cvt_i32_f64", "i=d", u_q<[](uint64_t a) { return to_i32(as_d(a)); }>},
    {"v_cvt_u32_f64", "i=d", u_q<[](uint64_t a) { return to_u32(as_d(a)); }>},
    {"v_cvt_pk_bf16_f32", "i=ff", pack_brain, kRowRoundEven},
    {"v_cvt_pk_f16_f32", "i=ff", pack_half<half_to_even, half_to_even_saturated>},
    {"v_cvt_pkrtz_f16_f32", "i=ff", pack_half<half_truncate, half_truncate>},
    {"v_cvt_pknorm_i16_f32", "i=ff", u_uu<pack<snorm16>>},
    {"v_cvt_pknorm_u16_f32", "i=ff", u_uu<pack<unorm16>>},
    {"v_cvt_pk_i16_i32", "i=ii",
     u_uu<[](uint32_t a, uint32_t b) { return clamp_i16(a) | clamp_i16(b) << 16; }>},
    {"v_cvt_pk_u16_u32", "i=ii",
     u_uu<[](uint32_t a, uint32_t b) { return clamp_u16(a) | clamp_u16(b) << 16; }>},
    {"v_cvt_pk_u8_f32", "i=fii", u_uuu<pk_u8>},
    {"v_cvt_pkaccum_u8_f32", "i&fi", u_uuD<pk_u8>},
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
