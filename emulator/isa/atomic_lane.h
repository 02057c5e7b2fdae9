// Read-modify-write functions of one element, shared by LDS, global and buffer atomics.
#pragma once

#include "emulator/isa/fp_lane.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;

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
inline u32 at_fadd(u32 m, u32 d) {
  return as_u(add(as_f(m), as_f(d)));
}
inline u32 at_fmin(u32 m, u32 d) {
  return minimum_number(m, d, true);
}
inline u32 at_fmax(u32 m, u32 d) {
  return maximum_number(m, d, true);
}
inline u64 at_dadd(u64 m, u64 d) {
  if (SoftDouble::is_nan(m)) return m | SoftDouble::quiet;
  if (SoftDouble::is_nan(d)) return d | SoftDouble::quiet;
  const double r = as_d(m) + as_d(d);
  return r != r ? SoftDouble::nan : as_q(r);
}
inline u64 at_dmin(u64 m, u64 d) {
  return as_d(d) < as_d(m) ? d : m;
}
inline u64 at_dmax(u64 m, u64 d) {
  return as_d(d) > as_d(m) ? d : m;
}
inline u32 at_pk_f16(u32 m, u32 d) {
  return half_round(add(half_value(m & 0xffff), half_value(d & 0xffff))) |
         half_round(add(half_value(m >> 16), half_value(d >> 16))) << 16;
}
inline u32 at_pk_bf16(u32 m, u32 d) {
  return bf16_round(add(bf16_value(m & 0xffff), bf16_value(d & 0xffff))) |
         bf16_round(add(bf16_value(m >> 16), bf16_value(d >> 16))) << 16;
}

}  // namespace
}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
