// The three steps of division: V_DIV_SCALE, V_DIV_FMAS, V_DIV_FIXUP for fp32 and fp64.
//
// The text that the CDNA ISA prints scales so that compilers' division sequences give wrong quotients. These rules are
// the ones that AMD's public simulator (rocm-systems, rocjitsu, division.h) found on hardware: encoded exponents decide,
// and the addend of V_DIV_FMAS says which way it scales back.
#pragma once

#include "emulator/isa/lanes.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

struct Narrow {
  using F = SoftSingle;
  static constexpr int rows = 1, far = 96, power = 64, tiny = 24, round_shift = 0,
                       denormal_shift = 4;
  static uint64_t get(const uint32_t *p, int i) { return p[i]; }
  static void set(uint32_t *p, int i, uint64_t x) { p[i] = uint32_t(x); }
};
struct Broad {
  using F = SoftDouble;
  static constexpr int rows = 2, far = 768, power = 128, tiny = 53, round_shift = 2,
                       denormal_shift = 6;
  static uint64_t get(const uint32_t *p, int i) { return wide(p, i); }
  static void set(uint32_t *p, int i, uint64_t x) { set_wide(p, i, x); }
};

// What MODE says about these operands.
template <class T>
struct DivisionMode {
  uint32_t round;
  bool keep_in, keep_out;
  explicit DivisionMode(const Wave &w)
      : round(w.mode >> T::round_shift & 3),
        keep_in(w.mode >> T::denormal_shift & 1),
        keep_out(w.mode >> T::denormal_shift & 2) {}
  uint64_t in(uint64_t x) const { return keep_in ? x : T::F::flush(x); }
  uint64_t out(uint64_t x) const { return keep_out ? x : T::F::flush(x); }
};

struct Scaling {
  int power;
  bool flag;  // V_DIV_FMAS is to scale back
};
// What is done to the denominator (or the numerator) so that the iterations neither overflow nor lose bits.
template <class T>
inline Scaling scaling_of(uint64_t denominator, uint64_t numerator, bool of_denominator) {
  using F = typename T::F;
  const int d = F::exponent(denominator), n = F::exponent(numerator);
  if (n - d >= T::far) return {of_denominator ? T::power : 0, true};
  if (d == 0) return {T::power, false};
  if (d >= 2 * F::bias - 1) {  // 1 / denominator is denormal
    const bool flag = n - d <= -T::far;
    return {flag && !of_denominator ? 0 : -T::power, flag};
  }
  if (n - d <= -T::far) return {of_denominator ? 0 : T::power, true};
  return {n <= T::tiny ? T::power : 0, false};
}
template <class T>
void div_scale(Wave &w, const Op &op) {
  using F = typename T::F;
  const uint32_t *a = source(w, op, 2), *b = source(w, op, 3), *c = source(w, op, 4);
  const DivisionMode<T> mode(w);
  uint64_t flags = 0;
  for (int i = 0; i < 64; ++i) {
    const uint64_t x = mode.in(T::get(a, i)), d = mode.in(T::get(b, i)), n = mode.in(T::get(c, i));
    const Scaling s = scaling_of<T>(d, n, x == d);
    T::set(w.out, i,
           F::is_zero(d) || F::is_zero(n) ? F::sign | F::nan
                                          : mode.out(F::scale(x, s.power, mode.round)));
    flags |= uint64_t(s.flag) << i;
  }
  finish(w, op, w.out, T::rows);
  set_mask(w, op, 1, flags);
}

// One rounding for the fused operation and the scale; denormal sources are kept.
template <class T>
void div_fmas(Wave &w, const Op &op) {
  using F = typename T::F;
  const uint32_t *a = source(w, op, 1), *b = source(w, op, 2), *c = source(w, op, 3);
  const DivisionMode<T> mode(w);
  const uint64_t vcc = vcc_of(w);
  for (int i = 0; i < 64; ++i) {
    const uint64_t addend = T::get(c, i);
    const int back = F::exponent(addend) > F::bias ? T::power : -T::power;
    T::set(
        w.out, i,
        mode.out(F::fma(T::get(a, i), T::get(b, i), addend, mode.round, vcc >> i & 1 ? back : 0)));
  }
  finish(w, op, w.out, T::rows);
}

template <class T>
inline uint64_t fixed_quotient(uint64_t q, uint64_t d, uint64_t n, const DivisionMode<T> &mode) {
  using F = typename T::F;
  const uint64_t s = (d ^ n) & F::sign;
  if (F::is_nan(n)) return n | F::quiet;
  if (F::is_nan(d)) return d | F::quiet;
  if ((F::is_zero(d) && F::is_zero(n)) || (F::is_inf(d) && F::is_inf(n))) return F::sign | F::nan;
  if (F::is_zero(d) || F::is_inf(n)) return s | F::inf;
  if (F::is_inf(d) || F::is_zero(n)) return s;
  if (F::exponent(n) - F::exponent(d) < -(F::bias + F::fraction))
    return mode.out(F::pack(s != 0, 1, 4 * F::least, mode.round));
  if (F::is_inf(q) || F::is_nan(q)) return F::pack(s != 0, 1, 2 * F::bias, mode.round);
  return s | (q & (F::sign - 1));
}
template <class T>
void div_fixup(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *b = source(w, op, 2), *c = source(w, op, 3);
  const DivisionMode<T> mode(w);
  for (int i = 0; i < 64; ++i)
    T::set(w.out, i,
           fixed_quotient<T>(T::get(a, i), mode.in(T::get(b, i)), mode.in(T::get(c, i)), mode));
  finish(w, op, w.out, T::rows);
}

}  // namespace
}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
