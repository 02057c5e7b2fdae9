// Read-modify-write functions of one element, shared by LDS, global and buffer atomics.
#pragma once

#include "emulator/isa/fp_lane.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;

// What a floating-point atomic does with denormals, as the fields of MODE say it (bit 0 keeps those
// of sources, bit 1 those of results): LDS follows MODE; memory keeps them, except that gfx90a
// flushes those of fp32 adds (CDNA4 ISA, "Denormal Handling"; from gfx942 on LLVM says
// memory-atomic-fadd-f32-denormal-support).
struct Denormals {
  u32 single, wide;
};
inline Denormals lds_denormals(const Wave &w) {
  return {w.mode >> 4 & 3, w.mode >> 6 & 3};
}
inline Denormals memory_denormals(const Op &op) {
  return {op.architecture == Architecture::kGfx90a ? 0u : 3u, 3};
}
// New value of an element: F(old, data), or F(old, data, denormals).
template <auto F, class T>
inline T changed(T old, T data, Denormals d) {
  if constexpr (requires { F(old, data, d); })
    return F(old, data, d);
  else
    return F(old, data);
}
template <class T>
inline T flushed(T x, bool keep) {
  constexpr T kExponent = sizeof(T) == 8 ? T(0x7ffull << 52) : T(0xff << 23);
  return keep || x & kExponent ? x : x & ~(~T(0) >> 1);
}

template <class T>
inline T at_add(T m, T d) {
  return m + d;
}
template <class T>
inline T at_sub(T m, T d) {
  return m - d;
}
template <class T>
inline T at_rsub(T m, T d) {
  return d - m;
}
template <class T>
inline T at_and(T m, T d) {
  return m & d;
}
template <class T>
inline T at_or(T m, T d) {
  return m | d;
}
template <class T>
inline T at_xor(T m, T d) {
  return m ^ d;
}
template <class T>
inline T at_umin(T m, T d) {
  return d < m ? d : m;
}
template <class T>
inline T at_umax(T m, T d) {
  return d > m ? d : m;
}
template <class T>
inline T at_swap(T, T d) {
  return d;
}
template <class T>
inline T at_inc(T m, T d) {
  return m >= d ? 0 : m + 1;
}
template <class T>
inline T at_dec(T m, T d) {
  return m == 0 || m > d ? d : m - 1;
}
inline u32 at_smin(u32 m, u32 d) {
  return int32_t(d) < int32_t(m) ? d : m;
}
inline u32 at_smax(u32 m, u32 d) {
  return int32_t(d) > int32_t(m) ? d : m;
}
inline u64 at_smin64(u64 m, u64 d) {
  return int64_t(d) < int64_t(m) ? d : m;
}
inline u64 at_smax64(u64 m, u64 d) {
  return int64_t(d) > int64_t(m) ? d : m;
}
inline u32 at_fadd(u32 m, u32 d, Denormals k) {
  const float a = as_f(flushed(m, k.single & 1)), b = as_f(flushed(d, k.single & 1));
  return flushed(as_u(add(a, b)), k.single & 2);
}
// Denormals are flushed for the comparison only. A signalling NaN wins, quieted; a quiet one loses.
template <class T>
inline T at_pick(T m, T d, bool keep, bool less) {
  constexpr T kSign = ~(~T(0) >> 1);
  constexpr T kInfinity = sizeof(T) == 8 ? T(0x7ffull << 52) : T(0xff << 23);
  constexpr T kQuiet = sizeof(T) == 8 ? T(1ull << 51) : T(1 << 22);
  const bool m_nan = (m & ~kSign) > kInfinity, d_nan = (d & ~kSign) > kInfinity;
  if (m_nan && !(m & kQuiet)) return m | kQuiet;
  if (d_nan && !(d & kQuiet)) return d | kQuiet;
  if (m_nan || d_nan) return d_nan ? m : d;
  // Integers in the order of the numbers they are the bits of, -0 below +0.
  const auto order = [&](T x) {
    x = flushed(x, keep);
    return x & kSign ? T(~x) : T(x | kSign);
  };
  return (less ? order(d) < order(m) : order(d) > order(m)) ? d : m;
}
inline u32 at_fmin(u32 m, u32 d, Denormals k) {
  return at_pick(m, d, k.single & 1, true);
}
inline u32 at_fmax(u32 m, u32 d, Denormals k) {
  return at_pick(m, d, k.single & 1, false);
}
inline u64 at_dadd(u64 m, u64 d) {
  if (SoftDouble::is_nan(m)) return m | SoftDouble::quiet;
  if (SoftDouble::is_nan(d)) return d | SoftDouble::quiet;
  const double r = as_d(m) + as_d(d);
  return r != r ? SoftDouble::nan : as_q(r);
}
inline u64 at_dmin(u64 m, u64 d, Denormals k) {
  return at_pick(m, d, k.wide & 1, true);
}
inline u64 at_dmax(u64 m, u64 d, Denormals k) {
  return at_pick(m, d, k.wide & 1, false);
}
template <u32 kExponent, auto Value, auto Round>
inline u32 packed_add(u32 m, u32 d, Denormals k) {
  const auto flush = [](u32 x, u32 keep) { return keep || x & kExponent ? x : x & 0x8000; };
  const auto half = [&](u32 a, u32 b) {
    return flush(Round(add(Value(flush(a, k.wide & 1)), Value(flush(b, k.wide & 1)))), k.wide & 2);
  };
  return half(m & 0xffff, d & 0xffff) | half(m >> 16, d >> 16) << 16;
}
inline u32 at_pk_f16(u32 m, u32 d, Denormals k) {
  return packed_add<0x7c00, [](u32 x) { return half_value(x); },
                    [](float x) { return half_round(x); }>(m, d, k);
}
inline u32 at_pk_bf16(u32 m, u32 d, Denormals k) {
  return packed_add<0x7f80, [](u32 x) { return bf16_value(x); },
                    [](float x) { return bf16_round(x); }>(m, d, k);
}

}  // namespace
}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
