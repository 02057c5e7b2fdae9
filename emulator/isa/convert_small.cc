// Conversions between fp32 and fp8 without scales, stochastic rounding to 16 bits, normalised fp16.
#include "emulator/isa/fp_lane.h"
#include "emulator/isa/small_float.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

template <class F>
void pack_f32(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *b = source(w, op, 2);
  const Rounding how{fp16_saturates(w), false, 0, 0};
  alignas(64) uint32_t t[64];
  for (int i = 0; i < 64; ++i)
    t[i] = encode_small<F>(double(as_f(a[i])), how) | encode_small<F>(double(as_f(b[i])), how) << 8;
  put_field(w, op, t, 16);
}
template <class F>
void stochastic_f32(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *b = source(w, op, 2);
  alignas(64) uint32_t t[64];
  for (int i = 0; i < 64; ++i)
    t[i] = encode_small<F>(double(as_f(a[i])), {fp16_saturates(w), true, 23 - F::kMantissa, b[i]});
  put_field(w, op, t, 8);
}
template <class F>
void value_f32(Wave &w, const Op &op) {
  u_u<decode_small<F>>(w, op);
}
template <class F>
void two_values_f32(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1);
  LANES {
    const uint32_t x = a[i];
    w.out[i] = decode_small<F>(x);
    w.out[64 + i] = decode_small<F>(x >> 8);
  }
  finish(w, op, w.out, 2);
}

// fp8 means FNUZ on gfx942 and OCP on gfx950.
template <Handler kOcp, Handler kFnuz>
void by_architecture(Wave &w, const Op &op) {
  (op.architecture == Architecture::kGfx942 ? kFnuz : kOcp)(w, op);
}

// fp32 to a 16-bit float: the upper bits of the random number are added below the last bit kept.
// MODE.FP16_OVFL keeps finite what was.
inline uint32_t stochastic_bf16(uint32_t a, uint32_t random, bool saturate) {
  const uint32_t u = (a & 0x7fffffff) < 0x7f800000u ? a + (random >> 16) : a;
  const uint32_t r = u >> 16 | ((a & 0x7fffffff) > 0x7f800000u ? 0x40 : 0);
  return saturate ? finite_bf16(r, (a & 0x7fffffff) == 0x7f800000u) : r;
}
inline uint32_t stochastic_half(uint32_t a, uint32_t random, bool saturate) {
  using Half = Format<5, 10, Specials::kInfinity>;
  if ((a & 0x7fffffff) >= 0x7f800000u) return half_round(as_f(a));
  return encode_small<Half>(double(as_f(a)), {saturate, true, 13, random});
}
template <auto F>
void stochastic_16(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *b = source(w, op, 2);
  alignas(64) uint32_t t[64];
  for (int i = 0; i < 64; ++i) t[i] = F(a[i], b[i], fp16_saturates(w));
  put_field(w, op, t, 16);
}

inline uint32_t snorm16(float x) {
  const double c = is_nan(x) ? 0 : x > 1 ? 1 : x < -1 ? -1 : double(x);
  return uint32_t(int32_t(__builtin_roundeven(c * 32767.0))) & 0xffff;
}
inline uint32_t unorm16(float x) {
  const double c = !(x > 0) ? 0 : x > 1 ? 1 : double(x);
  return uint32_t(int32_t(__builtin_roundeven(c * 65535.0)));
}
inline uint32_t pknorm_i16(uint32_t a, uint32_t b) {
  return snorm16(half_value(a & 0xffff)) | snorm16(half_value(b & 0xffff)) << 16;
}
inline uint32_t pknorm_u16(uint32_t a, uint32_t b) {
  return unorm16(half_value(a & 0xffff)) | unorm16(half_value(b & 0xffff)) << 16;
}
// A signed 4-bit number in sixteenths (CDNA3 ISA, V_CVT_OFF_F32_I4).
inline uint32_t off_i4(uint32_t a) {
  return as_u(float(int32_t(a << 28) >> 28) * 0.0625f);
}

}  // namespace

const Row rows_convert_small[] = {
    {"v_cvt_pk_fp8_f32", "i=ff", by_architecture<pack_f32<E4M3>, pack_f32<E4M3Fnuz>>,
     kRowSelect | kRowRoundEven},
    {"v_cvt_pk_bf8_f32", "i=ff", by_architecture<pack_f32<E5M2>, pack_f32<E5M2Fnuz>>,
     kRowSelect | kRowRoundEven},
    {"v_cvt_sr_fp8_f32", "i=fi", by_architecture<stochastic_f32<E4M3>, stochastic_f32<E4M3Fnuz>>,
     kRowSelect | kRowRoundEven},
    {"v_cvt_sr_bf8_f32", "i=fi", by_architecture<stochastic_f32<E5M2>, stochastic_f32<E5M2Fnuz>>,
     kRowSelect | kRowRoundEven},
    {"v_cvt_f32_fp8", "f=i", by_architecture<value_f32<E4M3>, value_f32<E4M3Fnuz>>, kRowRoundEven},
    {"v_cvt_f32_bf8", "f=i", by_architecture<value_f32<E5M2>, value_f32<E5M2Fnuz>>, kRowRoundEven},
    {"v_cvt_pk_f32_fp8", "P=i", by_architecture<two_values_f32<E4M3>, two_values_f32<E4M3Fnuz>>,
     kRowRoundEven},
    {"v_cvt_pk_f32_bf8", "P=i", by_architecture<two_values_f32<E5M2>, two_values_f32<E5M2Fnuz>>,
     kRowRoundEven},
    {"v_cvt_sr_f16_f32", "i=fi", stochastic_16<stochastic_half>, kRowSelect | kRowRoundEven},
    {"v_cvt_sr_bf16_f32", "i=fi", stochastic_16<stochastic_bf16>, kRowSelect | kRowRoundEven},
    {"v_cvt_norm_i16_f16", "i=h", u_u<[](uint32_t a) { return snorm16(half_value(a & 0xffff)); }>,
     kRowRoundEven},
    {"v_cvt_norm_u16_f16", "i=h", u_u<[](uint32_t a) { return unorm16(half_value(a & 0xffff)); }>,
     kRowRoundEven},
    {"v_cvt_pknorm_i16_f16", "i=hh", u_uu<pknorm_i16>, kRowOpSel | kRowRoundEven},
    {"v_cvt_pknorm_u16_f16", "i=hh", u_uu<pknorm_u16>, kRowOpSel | kRowRoundEven},
    {"v_cvt_off_f32_i4", "f=i", u_u<off_i4>, kRowRoundEven},
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
