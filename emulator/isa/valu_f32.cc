// fp32 arithmetic on lanes: VOP1, VOP2, VOP3.
#include "emulator/isa/division.h"
#include "emulator/isa/fp_lane.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

template <auto F>
void min_max2(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *b = source(w, op, 2);
  uint32_t *d = result(w, op);
  const bool ieee = w.mode >> 9 & 1;
  LANES d[i] = F(a[i], b[i], ieee);
  finish(w, op, d);
}
template <auto F>
void min_max3(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *b = source(w, op, 2), *c = source(w, op, 3);
  uint32_t *d = result(w, op);
  const bool ieee = w.mode >> 9 & 1;
  LANES d[i] = F(a[i], b[i], c[i], ieee);
  finish(w, op, d);
}
inline uint32_t min3(uint32_t a, uint32_t b, uint32_t c, bool ieee) {
  return minimum_number(minimum_number(a, b, ieee), c, ieee);
}
inline uint32_t max3(uint32_t a, uint32_t b, uint32_t c, bool ieee) {
  return maximum_number(maximum_number(a, b, ieee), c, ieee);
}
inline uint32_t med3(uint32_t a, uint32_t b, uint32_t c, bool ieee) {
  if (is_nan(as_f(a)) || is_nan(as_f(b)) || is_nan(as_f(c))) return min3(a, b, c, ieee);
  const uint32_t lo = minimum_number(a, b, ieee), hi = maximum_number(a, b, ieee);
  return maximum_number(lo, minimum_number(hi, c, ieee), ieee);
}

// fmamk: D = S0 * K + S1; fmaak: D = S0 * S1 + K; the text has K where it is multiplied or added.
inline float fma_text(float a, float b, float c) {
  return fma(a, b, c);
}

// V_MAD_F32 and its forms round twice and flush denormals whatever MODE says (Vega ISA).
inline float mad(float a, float b, float c) {
  return flush(add(flush(mul(flush(a), flush(b))), flush(c)));
}

inline float ldexp_lane(float x, int32_t n) {
  const int32_t k = n > 300 ? 300 : n < -300 ? -300 : n;
  const double scale = as_d(uint64_t(int64_t(k) + 1023) << 52);
  return nan_of(float(double(x) * scale), x, x);
}
inline float fract(float x) {
  const float r = x - __builtin_copysignf(__builtin_floorf(x), x);
  // The subtraction may round up to 1; the hardware returns the largest number below it.
  return nan_of(r >= 1.0f ? as_f(0x3f7fffff) : r, x, x);
}
inline int32_t frexp_exponent(float x) {
  if ((as_u(x) & 0x7f800000) == 0x7f800000) return 0;
  if (x == 0) return 0;
  return int32_t(as_q(double(x)) >> 52 & 0x7ff) - 1022;
}
inline float frexp_mantissa(float x) {
  if ((as_u(x) & 0x7f800000) == 0x7f800000 || x == 0) return is_nan(x) ? quiet(x) : x;
  const uint64_t q = as_q(double(x));
  return float(as_d((q & 0x800fffffffffffffull) | 0x3fe0000000000000ull));
}
inline float mul_legacy(float a, float b) {
  return a == 0 || b == 0 ? 0.0f : mul(a, b);
}
inline float mad_legacy(float a, float b, float c) {
  return flush(add(flush(mul_legacy(flush(a), flush(b))), flush(c)));
}
// Cube map face, coordinates and major axis of (x, y, z) (CDNA3 ISA, V_CUBEID_F32 and others).
enum Axis { kX, kY, kZ };
inline Axis major_axis(float x, float y, float z) {
  const float ax = __builtin_fabsf(x), ay = __builtin_fabsf(y), az = __builtin_fabsf(z);
  return az >= ax && az >= ay ? kZ : ay >= ax ? kY : kX;
}
inline float cube_id(float x, float y, float z) {
  const Axis axis = major_axis(x, y, z);
  const float along = axis == kZ ? z : axis == kY ? y : x;
  return float(2 * axis) + (along < 0 ? 1.0f : 0.0f);
}
inline float cube_s(float x, float y, float z) {
  const Axis axis = major_axis(x, y, z);
  return axis == kZ ? (z < 0 ? -x : x) : axis == kY ? x : x < 0 ? z : -z;
}
inline float cube_t(float x, float y, float z) {
  return major_axis(x, y, z) == kY ? (y < 0 ? -z : z) : -y;
}
inline float cube_major(float x, float y, float z) {
  const Axis axis = major_axis(x, y, z);
  return mul(axis == kZ ? z : axis == kY ? y : x, 2.0f);
}
// To an integer: the sign is that of x, also where the host computes 0 as a difference while rounding
// down.
inline float rounded(float r, float x) {
  return nan_of(as_f((as_u(r) & 0x7fffffff) | (as_u(x) & 0x80000000u)), x, x);
}

}  // namespace

const Row rows_valu_f32[] = {
    {"v_add_f32", "f=ff", f_ff<[](float a, float b) { return add(a, b); }>},
    {"v_sub_f32", "f=ff", f_ff<[](float a, float b) { return sub(a, b); }>},
    {"v_subrev_f32", "f=ff", f_ff<[](float a, float b) { return sub(b, a); }>},
    {"v_mul_f32", "f=ff", f_ff<[](float a, float b) { return mul(a, b); }>},
    {"v_mul_legacy_f32", "f=ff", f_ff<[](float a, float b) { return mul_legacy(a, b); }>},
    {"v_min_f32", "f=ff", min_max2<minimum_number>},
    {"v_max_f32", "f=ff", min_max2<maximum_number>},
    {"v_min3_f32", "f=fff", min_max3<min3>},
    {"v_max3_f32", "f=fff", min_max3<max3>},
    {"v_med3_f32", "f=fff", min_max3<med3>},
    {"v_minimum3_f32", "f=fff",
     f_fff<[](float a, float b, float c) { return minimum(minimum(a, b), c); }>},
    {"v_maximum3_f32", "f=fff",
     f_fff<[](float a, float b, float c) { return maximum(maximum(a, b), c); }>},
    {"v_fma_f32", "f=fff", f_fff<fma_text>},
    {"v_fmac_f32", "f&ff", f_ffD<fma_text>},
    {"v_fmamk_f32", "f=fff", f_fff<fma_text>},
    {"v_fmaak_f32", "f=fff", f_fff<fma_text>},
    {"v_mad_f32", "f=fff", f_fff<mad>},
    {"v_mac_f32", "f&ff", f_ffD<mad>},
    {"v_mad_legacy_f32", "f=fff", f_fff<mad_legacy>},
    {"v_cubeid_f32", "f=fff", f_fff<cube_id>},
    {"v_cubesc_f32", "f=fff", f_fff<cube_s>},
    {"v_cubetc_f32", "f=fff", f_fff<cube_t>},
    {"v_cubema_f32", "f=fff", f_fff<cube_major>},
    {"v_madmk_f32", "f=fff", f_fff<mad>},
    {"v_madak_f32", "f=fff", f_fff<mad>},
    {"v_floor_f32", "f=f", f_f<[](float a) { return rounded(__builtin_floorf(a), a); }>},
    {"v_ceil_f32", "f=f", f_f<[](float a) { return rounded(__builtin_ceilf(a), a); }>},
    {"v_trunc_f32", "f=f", f_f<[](float a) { return rounded(__builtin_truncf(a), a); }>},
    {"v_rndne_f32", "f=f", f_f<[](float a) { return rounded(__builtin_roundevenf(a), a); }>},
    {"v_fract_f32", "f=f", f_f<fract>},
    {"v_exp_f32", "f=f", f_f<exp2_lane>, kRowRoundEven},
    {"v_log_f32", "f=f", f_f<log2_lane>, kRowRoundEven},
    {"v_exp_legacy_f32", "f=f", f_f<exp2_lane>, kRowRoundEven},
    {"v_log_legacy_f32", "f=f", f_f<log2_lane>, kRowRoundEven},
    {"v_rcp_f32", "f=f", f_f<rcp_lane>, kRowRoundEven},
    {"v_rcp_iflag_f32", "f=f", f_f<rcp_lane>, kRowRoundEven},
    {"v_rsq_f32", "f=f", f_f<rsq_lane>, kRowRoundEven},
    {"v_sqrt_f32", "f=f", f_f<sqrt_lane>, kRowRoundEven},
    {"v_sin_f32", "f=f", f_f<sin_lane>, kRowRoundEven},
    {"v_cos_f32", "f=f", f_f<cos_lane>, kRowRoundEven},
    {"v_ldexp_f32", "f=fi",
     u_uu<[](uint32_t a, uint32_t n) { return as_u(ldexp_lane(as_f(a), int32_t(n))); }>},
    {"v_frexp_exp_i32_f32", "i=f",
     u_u<[](uint32_t a) { return uint32_t(frexp_exponent(as_f(a))); }>},
    {"v_frexp_mant_f32", "f=f", f_f<frexp_mantissa>},
    {"v_div_scale_f32", "fm=fff", div_scale<Narrow>, kRowRoundEven},
    {"v_div_fmas_f32", "f=fff", div_fmas<Narrow>, kRowRoundEven},
    {"v_div_fixup_f32", "f=fff", div_fixup<Narrow>, kRowRoundEven},
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
