// fp64 arithmetic on lanes.
#include "emulator/isa/division.h"
#include "emulator/isa/lanes.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

constexpr uint64_t kQuiet = 0x0008000000000000ull, kDefaultNan = 0x7ff8000000000000ull;
inline bool nan64(uint64_t u) {
  return (u & 0x7fffffffffffffffull) > 0x7ff0000000000000ull;
}
inline bool snan64(uint64_t u) {
  return nan64(u) && !(u & kQuiet);
}
inline uint64_t nan_of(double r, uint64_t a, uint64_t b, uint64_t c) {
  return r == r     ? as_q(r)
         : nan64(a) ? a | kQuiet
         : nan64(b) ? b | kQuiet
         : nan64(c) ? c | kQuiet
                    : kDefaultNan;
}
inline uint64_t add(uint64_t a, uint64_t b) {
  return nan_of(as_d(a) + as_d(b), a, b, 0);
}
inline uint64_t mul(uint64_t a, uint64_t b) {
  return nan_of(as_d(a) * as_d(b), a, b, 0);
}
inline uint64_t fma(uint64_t a, uint64_t b, uint64_t c) {
  return nan_of(__builtin_fma(as_d(a), as_d(b), as_d(c)), a, b, c);
}
inline uint64_t unary(double r, uint64_t a) {
  return nan_of(r, a, 0, 0);
}
// To an integer, as fp32.
inline uint64_t integral(double r, uint64_t a) {
  return unary(as_d((as_q(r) << 1 >> 1) | (a & 0x8000000000000000ull)), a);
}
inline uint64_t order(uint64_t u) {
  return u >> 63 ? ~u : u | 0x8000000000000000ull;
}

template <bool kMax>
void min_max(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *b = source(w, op, 2);
  const bool ieee = w.mode >> 9 & 1;
  for (int i = 0; i < 64; ++i) {
    const uint64_t x = wide(a, i), y = wide(b, i);
    uint64_t r = (kMax ? order(x) > order(y) : order(x) < order(y)) ? x : y;
    if (nan64(y)) r = x;
    if (nan64(x)) r = y;
    if (ieee && snan64(y)) r = y | kQuiet;
    if (ieee && snan64(x)) r = x | kQuiet;
    set_wide(w.out, i, r);
  }
  finish(w, op, w.out, 2);
}

void fmac(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *b = source(w, op, 2), *c = accumulator(w, op, 2);
  for (int i = 0; i < 64; ++i) set_wide(w.out, i, fma(wide(a, i), wide(b, i), wide(c, i)));
  finish(w, op, w.out, 2);
}

inline int exponent(uint64_t u) {
  return int(u >> 52 & 0x7ff);
}
inline uint64_t scaled(uint64_t u, int32_t n) {
  return unary(__builtin_ldexp(as_d(u), n), u);
}

void ldexp(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *n = source(w, op, 2);
  for (int i = 0; i < 64; ++i) set_wide(w.out, i, scaled(wide(a, i), int32_t(n[i])));
  finish(w, op, w.out, 2);
}
// x = m * 2^e with 1/2 <= |m| < 1; denormals are scaled up to find their leading bit.
inline bool has_exponent(uint64_t u) {
  return exponent(u) != 0x7ff && (u << 1) != 0;
}
inline int frexp_exponent(uint64_t u) {
  if (!has_exponent(u)) return 0;
  return exponent(u) ? exponent(u) - 1022 : exponent(as_q(as_d(u) * 0x1p54)) - 1022 - 54;
}
void frexp_exp(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1);
  for (int i = 0; i < 64; ++i) w.out[i] = uint32_t(frexp_exponent(wide(a, i)));
  finish(w, op, w.out);
}
inline uint64_t frexp_mant(uint64_t u) {
  if (!has_exponent(u)) return unary(as_d(u), u);
  const uint64_t normal = exponent(u) ? u : as_q(as_d(u) * 0x1p54);
  return (normal & 0x800fffffffffffffull) | 0x3fe0000000000000ull;
}
inline uint64_t fract(uint64_t a) {
  const double x = as_d(a), r = x - __builtin_copysign(__builtin_floor(x), x);
  return unary(r >= 1.0 ? 0x1.fffffffffffffp-1 : r, a);
}

// V_TRIG_PREOP_F64 (CDNA3 ISA): 53 bits of 2/pi from bit `shift` after the binary point, at their
// weight; 1201 bits are known.
constexpr uint64_t kTwoOverPi[] = {
    0xa2f9836e4e441529ull, 0xfc2757d1f534ddc0ull, 0xdb6295993c439041ull, 0xfe5163abdebbc561ull,
    0xb7246e3a424dd2e0ull, 0x06492eea09d1921cull, 0xfe1deb1cb129a73eull, 0xe88235f52ebb4484ull,
    0xe99c7026b45f7e41ull, 0x3991d639835339f4ull, 0x9c845f8bbdf9283bull, 0x1ff897ffde05980full,
    0xef2f118b5a0a6d1full, 0x6d367ecf27cb09b7ull, 0x4f463f669e5fea2dull, 0x7527bac7ebe5f17bull,
    0x3d0739f78a5292eaull, 0x6bfb5fb11f8d5d08ull, 0x56033046fc7b0000ull};
inline uint64_t two_over_pi_bits(uint32_t shift) {
  const uint32_t word = shift / 64, bit = shift % 64;
  const uint64_t high = word < 19 ? kTwoOverPi[word] : 0,
                 low = word + 1 < 19 ? kTwoOverPi[word + 1] : 0;
  return (bit ? high << bit | low >> (64 - bit) : high) >> 11;
}
void trig_preop(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *n = source(w, op, 2);
  for (int i = 0; i < 64; ++i) {
    const int e = exponent(wide(a, i));
    const int shift = int(n[i] & 31) * 53 + (e > 1077 ? e - 1077 : 0);
    const int scale = -53 - shift + (e >= 1968 ? 128 : 0);
    set_wide(w.out, i, as_q(__builtin_ldexp(double(two_over_pi_bits(uint32_t(shift))), scale)));
  }
  finish(w, op, w.out, 2);
}

// Approximations on hardware; exactly rounded here.
inline uint64_t rcp(uint64_t a) {
  return unary(1.0 / as_d(a), a);
}
inline uint64_t rsq(uint64_t a) {
  return unary(1.0 / __builtin_sqrt(as_d(a)), a);
}
inline uint64_t root(uint64_t a) {
  return unary(__builtin_sqrt(as_d(a)), a);
}

}  // namespace

const Row rows_valu_f64[] = {
    {"v_add_f64", "d=dd", q_qq<add>},
    {"v_mul_f64", "d=dd", q_qq<mul>},
    {"v_fma_f64", "d=ddd", q_qqq<fma>},
    {"v_fmac_f64", "d&dd", fmac},
    {"v_min_f64", "d=dd", min_max<false>},
    {"v_max_f64", "d=dd", min_max<true>},
    {"v_ldexp_f64", "d=di", ldexp},
    {"v_frexp_exp_i32_f64", "i=d", frexp_exp},
    {"v_frexp_mant_f64", "d=d", q_q<frexp_mant>},
    {"v_fract_f64", "d=d", q_q<fract>},
    {"v_floor_f64", "d=d", q_q<[](uint64_t a) { return integral(__builtin_floor(as_d(a)), a); }>},
    {"v_ceil_f64", "d=d", q_q<[](uint64_t a) { return integral(__builtin_ceil(as_d(a)), a); }>},
    {"v_trunc_f64", "d=d", q_q<[](uint64_t a) { return integral(__builtin_trunc(as_d(a)), a); }>},
    {"v_rndne_f64", "d=d",
     q_q<[](uint64_t a) { return integral(__builtin_roundeven(as_d(a)), a); }>},
    {"v_rcp_f64", "d=d", q_q<rcp>},
    {"v_rsq_f64", "d=d", q_q<rsq>},
    {"v_sqrt_f64", "d=d", q_q<root>},
    {"v_trig_preop_f64", "d=di", trig_preop},
    {"v_div_scale_f64", "dm=ddd", div_scale<Broad>, kRowRoundEven},
    {"v_div_fmas_f64", "d=ddd", div_fmas<Broad>, kRowRoundEven},
    {"v_div_fixup_f64", "d=ddd", div_fixup<Broad>, kRowRoundEven},
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
