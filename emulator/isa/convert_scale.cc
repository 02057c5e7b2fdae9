// V_CVT_SCALEF32_*: conversions between fp32, fp16, bf16 and fp8, fp6, fp4 with a scale of 2^n, the
// exponent field of the last operand; a field of 255 makes every result NaN (or, where the format has
// none, the largest number). Operand order and op_sel: CDNA4 ISA, "VOP3", pseudocode of each.
#include "emulator/isa/fp_lane.h"
#include "emulator/isa/small_float.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

// The wide formats: bits of a value, value in double, code of a double that has few bits.
struct Single {
  static constexpr int kBits = 32, kMantissa = 23;
  static double value(uint32_t u) { return double(as_f(u)); }
  static uint32_t round(double x) { return as_u(float(x)); }
};
struct Half {
  static constexpr int kBits = 16, kMantissa = 10;
  static double value(uint32_t u) { return double(half_value(u & 0xffff)); }
  static uint32_t round(double x) { return half_round(float(x)); }
};
struct Brain {
  static constexpr int kBits = 16, kMantissa = 7;
  static double value(uint32_t u) { return double(bf16_value(u & 0xffff)); }
  static uint32_t round(double x) { return bf16_round(float(x)); }
};

inline uint32_t scale_byte(uint32_t scale) {
  return scale >> 23 & 0xff;
}
// The factor of a narrowing conversion, 2^(127 - byte).
inline double inverse_scale(uint32_t scale) {
  const uint32_t byte = scale_byte(scale);
  return byte == 255 ? __builtin_nan("") : as_d(uint64_t(1023 + 127 - byte) << 52);
}
inline double apply(double x, double factor) {
  // The sign of a NaN that comes from the scale is that of the number.
  return factor == factor ? x * factor : __builtin_copysign(factor, x);
}
inline uint32_t prng(uint32_t x) {  // V_PRNG_B32
  return x << 1 ^ (x >> 31 ? 197u : 0u);
}
template <class F>
inline uint32_t nearest(const Wave &w, double x) {
  return encode_small<F>(x, {fp16_saturates(w), false, 0, 0});
}
template <class F, class T>
inline uint32_t stochastic(const Wave &w, double x, uint32_t random) {
  return encode_small<F>(x, {fp16_saturates(w), true, T::kMantissa - F::kMantissa, random});
}
template <class F, class T>
inline uint32_t widen(const Wave &w, uint32_t code, double factor) {
  const double x = double(as_f(decode_small<F>(code)));
  const uint32_t r = T::round(apply(x, factor));
  if (T::kBits == 32 || !fp16_saturates(w) || x - x != 0) return r;
  constexpr uint32_t kInfinity16 = (0x7fffu >> T::kMantissa) << T::kMantissa;
  return (r & 0x7fff) == kInfinity16 ? r - 1 : r;
}

template <class F>
void narrow_pair(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *b = source(w, op, 2), *s = source(w, op, 3);
  alignas(64) uint32_t t[64];
  for (int i = 0; i < 64; ++i) {
    const double k = inverse_scale(s[i]);
    t[i] = nearest<F>(w, apply(Single::value(a[i]), k)) |
           nearest<F>(w, apply(Single::value(b[i]), k)) << F::kBits;
  }
  put_field(w, op, t, 2 * F::kBits);
}
template <class F, class T>
void narrow_packed(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *s = source(w, op, 2);
  alignas(64) uint32_t t[64];
  for (int i = 0; i < 64; ++i) {
    const double k = inverse_scale(s[i]);
    t[i] = nearest<F>(w, apply(T::value(a[i]), k)) | nearest<F>(w, apply(T::value(a[i] >> 16), k))
                                                         << F::kBits;
  }
  put_field(w, op, t, 2 * F::kBits);
}
// op_sel[0] picks the half of a 16-bit source.
template <class F, class T>
void stochastic_one(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *r = source(w, op, 2), *s = source(w, op, 3);
  const uint32_t shift = T::kBits == 16 && (op.op_sel & 1) ? 16 : 0;
  alignas(64) uint32_t t[64];
  for (int i = 0; i < 64; ++i)
    t[i] = stochastic<F, T>(w, apply(T::value(a[i] >> shift), inverse_scale(s[i])), r[i]);
  put_field(w, op, t, 8);
}
// The second value uses the next random number.
template <class T>
void stochastic_pair(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *r = source(w, op, 2), *s = source(w, op, 3);
  alignas(64) uint32_t t[64];
  for (int i = 0; i < 64; ++i) {
    const double k = inverse_scale(s[i]);
    const uint32_t second = T::kBits == 32 ? a[64 + i] : a[i] >> 16;
    t[i] = stochastic<E2M1, T>(w, apply(T::value(a[i]), k), r[i]) |
           stochastic<E2M1, T>(w, apply(T::value(second), k), prng(r[i])) << 4;
  }
  put_field(w, op, t, 8);
}
// fp8: op_sel[0] picks the half of the source; fp4: op_sel[1:0] the byte.
template <class F, class T>
void widen_pair(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *s = source(w, op, 2);
  const uint32_t shift = F::kBits == 8 ? (op.op_sel & 1) * 16 : (op.op_sel & 3) * 8;
  for (int i = 0; i < 64; ++i) {
    const double k = e8m0_value(scale_byte(s[i]));
    const uint32_t x = widen<F, T>(w, a[i] >> shift, k),
                   y = widen<F, T>(w, a[i] >> (shift + F::kBits), k);
    w.out[i] = T::kBits == 32 ? x : x | y << 16;
    w.out[64 + i] = y;
  }
  finish(w, op, w.out, T::kBits == 32 ? 2 : 1);
}
template <class F, class T>
void widen_one(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *s = source(w, op, 2);
  const uint32_t shift = (op.op_sel & 3) * 8;
  alignas(64) uint32_t t[64];
  for (int i = 0; i < 64; ++i) t[i] = widen<F, T>(w, a[i] >> shift, e8m0_value(scale_byte(s[i])));
  if (T::kBits == 16) return put_field(w, op, t, 16);
  memcpy(w.out, t, sizeof t);
  finish(w, op, w.out);
}

// ---- 32 values a lane: rows of registers, one lane after the other (operands may overlap)

inline const uint32_t *row_of(Wave &w, const Op &op, int n) {
  return w.base[0] + op.o[n].index * 64;
}
template <class T>
inline double element(const uint32_t *rows, int lane, int k) {
  return T::kBits == 32 ? T::value(rows[64 * k + lane])
                        : T::value(rows[64 * (k / 2) + lane] >> (16 * (k % 2)));
}
// Thirty-two 6-bit fields in six registers.
struct Packed6 {
  uint32_t word[7] = {};
  void set(int k, uint32_t code) {
    const int bit = 6 * k;
    const uint64_t x = uint64_t(code) << (bit % 32);
    word[bit / 32] |= uint32_t(x);
    word[bit / 32 + 1] |= uint32_t(x >> 32);
  }
  uint32_t get(int k) const {
    const int bit = 6 * k;
    const uint64_t x = word[bit / 32] | uint64_t(word[bit / 32 + 1]) << 32;
    return uint32_t(x >> (bit % 32)) & 63;
  }
};
inline void write_packed(Wave &w, const Op &op, int lane, const Packed6 &p) {
  for (int r = 0; r < 6; ++r) w.v[(op.o[0].index + uint32_t(r)) * 64 + uint32_t(lane)] = p.word[r];
}

// The two sources alternate in the result.
template <class F>
void narrow_2x16(Wave &w, const Op &op) {
  const uint32_t *a = row_of(w, op, 1), *b = row_of(w, op, 2), *s = source(w, op, 3);
  FOR_EACH_LANE(i, exec_of(w)) {
    const double k = inverse_scale(s[i]);
    Packed6 p;
    for (int e = 0; e < 16; ++e) {
      p.set(2 * e, nearest<F>(w, apply(element<Single>(a, i, e), k)));
      p.set(2 * e + 1, nearest<F>(w, apply(element<Single>(b, i, e), k)));
    }
    write_packed(w, op, i, p);
  }
}
template <class F, class T>
void narrow_32(Wave &w, const Op &op) {
  const uint32_t *a = row_of(w, op, 1), *s = source(w, op, 2);
  FOR_EACH_LANE(i, exec_of(w)) {
    const double k = inverse_scale(s[i]);
    Packed6 p;
    for (int e = 0; e < 32; ++e) p.set(e, nearest<F>(w, apply(element<T>(a, i, e), k)));
    write_packed(w, op, i, p);
  }
}
template <class F, class T>
void stochastic_32(Wave &w, const Op &op) {
  const uint32_t *a = row_of(w, op, 1), *r = source(w, op, 2), *s = source(w, op, 3);
  FOR_EACH_LANE(i, exec_of(w)) {
    const double k = inverse_scale(s[i]);
    uint32_t random = r[i];
    Packed6 p;
    for (int e = 0; e < 32; ++e, random = prng(random))
      p.set(e, stochastic<F, T>(w, apply(element<T>(a, i, e), k), random));
    write_packed(w, op, i, p);
  }
}
template <class F, class T>
void widen_32(Wave &w, const Op &op) {
  const uint32_t *a = row_of(w, op, 1), *s = source(w, op, 2);
  uint32_t *d = w.v + op.o[0].index * 64;
  FOR_EACH_LANE(i, exec_of(w)) {
    const double k = e8m0_value(scale_byte(s[i]));
    Packed6 p;
    for (int r = 0; r < 6; ++r) p.word[r] = a[64 * r + i];
    for (int e = 0; e < 32; ++e) {
      const uint32_t x = widen<F, T>(w, p.get(e), k);
      if (T::kBits == 32)
        d[64 * e + i] = x;
      else
        d[64 * (e / 2) + i] = e % 2 ? d[64 * (e / 2) + i] | x << 16 : x;
    }
  }
}

constexpr uint32_t kFlags = kRowSelect | kRowRoundEven;

}  // namespace

const Row rows_convert_scale[] = {
    {"v_cvt_scalef32_pk_fp8_f32", "i=fff", narrow_pair<E4M3>, kFlags},
    {"v_cvt_scalef32_pk_fp8_f16", "i=pf", narrow_packed<E4M3, Half>, kFlags},
    {"v_cvt_scalef32_pk_fp8_bf16", "i=Bf", narrow_packed<E4M3, Brain>, kFlags},
    {"v_cvt_scalef32_pk_bf8_f32", "i=fff", narrow_pair<E5M2>, kFlags},
    {"v_cvt_scalef32_pk_bf8_f16", "i=pf", narrow_packed<E5M2, Half>, kFlags},
    {"v_cvt_scalef32_pk_bf8_bf16", "i=Bf", narrow_packed<E5M2, Brain>, kFlags},
    {"v_cvt_scalef32_pk_fp4_f32", "i=fff", narrow_pair<E2M1>, kFlags},
    {"v_cvt_scalef32_pk_fp4_f16", "i=pf", narrow_packed<E2M1, Half>, kFlags},
    {"v_cvt_scalef32_pk_fp4_bf16", "i=Bf", narrow_packed<E2M1, Brain>, kFlags},
    {"v_cvt_scalef32_sr_fp8_f32", "i=fif", stochastic_one<E4M3, Single>, kFlags},
    {"v_cvt_scalef32_sr_fp8_f16", "i=pif", stochastic_one<E4M3, Half>, kFlags},
    {"v_cvt_scalef32_sr_fp8_bf16", "i=Bif", stochastic_one<E4M3, Brain>, kFlags},
    {"v_cvt_scalef32_sr_bf8_f32", "i=fif", stochastic_one<E5M2, Single>, kFlags},
    {"v_cvt_scalef32_sr_bf8_f16", "i=pif", stochastic_one<E5M2, Half>, kFlags},
    {"v_cvt_scalef32_sr_bf8_bf16", "i=Bif", stochastic_one<E5M2, Brain>, kFlags},
    {"v_cvt_scalef32_sr_pk_fp4_f32", "i=Pif", stochastic_pair<Single>, kFlags},
    {"v_cvt_scalef32_sr_pk_fp4_f16", "i=pif", stochastic_pair<Half>, kFlags},
    {"v_cvt_scalef32_sr_pk_fp4_bf16", "i=Bif", stochastic_pair<Brain>, kFlags},
    {"v_cvt_scalef32_pk_f32_fp8", "P=if", widen_pair<E4M3, Single>, kFlags},
    {"v_cvt_scalef32_pk_f16_fp8", "i=if", widen_pair<E4M3, Half>, kFlags},
    {"v_cvt_scalef32_pk_bf16_fp8", "i=if", widen_pair<E4M3, Brain>, kFlags},
    {"v_cvt_scalef32_pk_f32_bf8", "P=if", widen_pair<E5M2, Single>, kFlags},
    {"v_cvt_scalef32_pk_f16_bf8", "i=if", widen_pair<E5M2, Half>, kFlags},
    {"v_cvt_scalef32_pk_bf16_bf8", "i=if", widen_pair<E5M2, Brain>, kFlags},
    {"v_cvt_scalef32_pk_f32_fp4", "P=if", widen_pair<E2M1, Single>, kFlags},
    {"v_cvt_scalef32_pk_f16_fp4", "i=if", widen_pair<E2M1, Half>, kFlags},
    {"v_cvt_scalef32_pk_bf16_fp4", "i=if", widen_pair<E2M1, Brain>, kFlags},
    {"v_cvt_scalef32_f32_fp8", "i=if", widen_one<E4M3, Single>, kFlags},
    {"v_cvt_scalef32_f16_fp8", "i=if", widen_one<E4M3, Half>, kFlags},
    {"v_cvt_scalef32_f32_bf8", "i=if", widen_one<E5M2, Single>, kFlags},
    {"v_cvt_scalef32_f16_bf8", "i=if", widen_one<E5M2, Half>, kFlags},
    {"v_cvt_scalef32_2xpk16_fp6_f32", "l=llf", narrow_2x16<E2M3>, kFlags},
    {"v_cvt_scalef32_pk32_fp6_f16", "l=lf", narrow_32<E2M3, Half>, kFlags},
    {"v_cvt_scalef32_pk32_fp6_bf16", "l=lf", narrow_32<E2M3, Brain>, kFlags},
    {"v_cvt_scalef32_sr_pk32_fp6_f32", "l=lif", stochastic_32<E2M3, Single>, kFlags},
    {"v_cvt_scalef32_pk32_f32_fp6", "l=lf", widen_32<E2M3, Single>, kFlags},
    {"v_cvt_scalef32_sr_pk32_fp6_f16", "l=lif", stochastic_32<E2M3, Half>, kFlags},
    {"v_cvt_scalef32_pk32_f16_fp6", "l=lf", widen_32<E2M3, Half>, kFlags},
    {"v_cvt_scalef32_sr_pk32_fp6_bf16", "l=lif", stochastic_32<E2M3, Brain>, kFlags},
    {"v_cvt_scalef32_pk32_bf16_fp6", "l=lf", widen_32<E2M3, Brain>, kFlags},
    {"v_cvt_scalef32_2xpk16_bf6_f32", "l=llf", narrow_2x16<E3M2>, kFlags},
    {"v_cvt_scalef32_pk32_bf6_f16", "l=lf", narrow_32<E3M2, Half>, kFlags},
    {"v_cvt_scalef32_pk32_bf6_bf16", "l=lf", narrow_32<E3M2, Brain>, kFlags},
    {"v_cvt_scalef32_sr_pk32_bf6_f32", "l=lif", stochastic_32<E3M2, Single>, kFlags},
    {"v_cvt_scalef32_pk32_f32_bf6", "l=lf", widen_32<E3M2, Single>, kFlags},
    {"v_cvt_scalef32_sr_pk32_bf6_f16", "l=lif", stochastic_32<E3M2, Half>, kFlags},
    {"v_cvt_scalef32_pk32_f16_bf6", "l=lf", widen_32<E3M2, Half>, kFlags},
    {"v_cvt_scalef32_sr_pk32_bf6_bf16", "l=lif", stochastic_32<E3M2, Brain>, kFlags},
    {"v_cvt_scalef32_pk32_bf16_bf6", "l=lf", widen_32<E3M2, Brain>, kFlags},
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
