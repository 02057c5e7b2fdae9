// LDS atomics. Waves of a work-group run on one host thread, so plain reads and writes are atomic;
// lanes act in increasing order.
#include "emulator/isa/atomic_lane.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

template <class T>
inline T lane_value(const uint32_t *row, int i) {
  return sizeof(T) == 8 ? T(wide(row, i)) : T(row[i]);
}

// kReturn: the first operand receives the old value.
template <class T, auto F, bool kReturn>
void atomic(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, kReturn ? 1 : 0);
  const uint32_t *d = w.base[0] + op.o[kReturn ? 2 : 1].index * 64;
  const uint64_t exec = exec_of(w);
  for (int i = 0; i < 64; ++i) {
    if (!(exec >> i & 1)) continue;
    const uint64_t address = uint64_t(a[i] + uint32_t(op.imm));
    if (address + sizeof(T) > w.lds_bytes) return fault_lds(w, op, i, address, sizeof(T));
    if (address % sizeof(T))
      return fault_value(w, op, i, "misaligned LDS atomic at LDS offset", address);
    T old;
    memcpy(&old, w.lds + address, sizeof old);
    const T next = changed<F>(old, lane_value<T>(d, i), lds_denormals(w));
    memcpy(w.lds + address, &next, sizeof next);
    w.out[i] = uint32_t(old);
    w.out[64 + i] = uint32_t(uint64_t(old) >> 32);
  }
  if (!kReturn) return;
  uint32_t *row = w.v + op.o[0].index * 64;
  for (int r = 0; r < int(sizeof(T) / 4); ++r) store_masked(row + 64 * r, w.out + 64 * r, exec);
}
// Two data operands: F(old, D0, D1).
template <class T, auto F, bool kReturn>
void atomic2(Wave &w, const Op &op) {
  const int n = kReturn ? 1 : 0;
  const uint32_t *a = source(w, op, n);
  const uint32_t *d0 = w.base[0] + op.o[n + 1].index * 64, *d1 = w.base[0] + op.o[n + 2].index * 64;
  const uint64_t exec = exec_of(w);
  for (int i = 0; i < 64; ++i) {
    if (!(exec >> i & 1)) continue;
    const uint64_t address = uint64_t(a[i] + uint32_t(op.imm));
    if (address + sizeof(T) > w.lds_bytes) return fault_lds(w, op, i, address, sizeof(T));
    if (address % sizeof(T))
      return fault_value(w, op, i, "misaligned LDS atomic at LDS offset", address);
    T old;
    memcpy(&old, w.lds + address, sizeof old);
    T next;
    if constexpr (requires { F(old, old, old, lds_denormals(w)); })
      next = F(old, lane_value<T>(d0, i), lane_value<T>(d1, i), lds_denormals(w));
    else
      next = F(old, lane_value<T>(d0, i), lane_value<T>(d1, i));
    memcpy(w.lds + address, &next, sizeof next);
    w.out[i] = uint32_t(old);
    w.out[64 + i] = uint32_t(uint64_t(old) >> 32);
  }
  if (!kReturn) return;
  uint32_t *row = w.v + op.o[0].index * 64;
  for (int r = 0; r < int(sizeof(T) / 4); ++r) store_masked(row + 64 * r, w.out + 64 * r, exec);
}
// D1 replaces the element when it equals D0.
template <class T>
inline T at_cmpst(T m, T d0, T d1) {
  return m == d0 ? d1 : m;
}
// What is stored is flushed when the sources are ("CompareStore flushes the result").
inline u32 at_cmpst_f32(u32 m, u32 d0, u32 d1, Denormals k) {
  const bool keep = k.single & 1;
  return as_f(flushed(m, keep)) == as_f(flushed(d0, keep)) ? flushed(d1, keep) : m;
}
inline u64 at_cmpst_f64(u64 m, u64 d0, u64 d1, Denormals k) {
  const bool keep = k.wide & 1;
  return as_d(flushed(m, keep)) == as_d(flushed(d0, keep)) ? flushed(d1, keep) : m;
}
template <class T>
inline T at_mskor(T m, T d0, T d1) {
  return (m & ~d0) | d1;
}
inline u32 at_wrap(u32 m, u32 d0, u32 d1) {
  return m >= d0 ? m - d0 : m + d1;
}
// Each word is written, without its top bit, when the top bit of its data is set.
inline u64 at_condxchg32(u64 m, u64 d) {
  const u64 low = d >> 31 & 1 ? d & 0x7fffffff : m & 0xffffffff;
  const u64 high = d >> 63 ? d >> 32 & 0x7fffffff : m >> 32;
  return low | high << 32;
}

// Exchanges two elements, at offset0 and offset1 times kStride.
template <class T, uint32_t kStride>
void exchange2(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1);
  const uint64_t exec = exec_of(w);
  constexpr int kWords = sizeof(T) / 4;
  for (int i = 0; i < 64; ++i) {
    if (!(exec >> i & 1)) continue;
    for (int k = 0; k < 2; ++k) {
      const uint64_t address = uint64_t(a[i] + (uint32_t(op.imm) >> (8 * k) & 0xff) * kStride);
      if (address + sizeof(T) > w.lds_bytes) return fault_lds(w, op, i, address, sizeof(T));
      if (address % sizeof(T))
        return fault_value(w, op, i, "misaligned LDS atomic at LDS offset", address);
      T old;
      memcpy(&old, w.lds + address, sizeof old);
      w.out[64 * k * kWords + i] = uint32_t(old);
      if (kWords == 2) w.out[64 * (k * kWords + 1) + i] = uint32_t(uint64_t(old) >> 32);
    }
    for (int k = 0; k < 2; ++k) {
      const T next = lane_value<T>(w.base[0] + op.o[2 + k].index * 64, i);
      memcpy(w.lds + (a[i] + (uint32_t(op.imm) >> (8 * k) & 0xff) * kStride), &next, sizeof next);
    }
  }
  uint32_t *row = w.v + op.o[0].index * 64;
  for (int r = 0; r < 2 * kWords; ++r) store_masked(row + 64 * r, w.out + 64 * r, exec);
}

// Adds (kSign 1) or takes away (-1) the number of enabled lanes, once a wave; every lane receives
// the old value. The address in LDS is the instruction's offset alone (CDNA4 ISA, DS_APPEND,
// DS_CONSUME: "M0.base + instr_offset if GDS, instr_offset if LDS").
template <int kSign>
void count_lanes(Wave &w, const Op &op) {
  const uint64_t exec = exec_of(w);
  if (!exec) return;
  const uint64_t address = uint64_t(op.imm) & 0xffff;
  if (address % 4) return fault_value(w, op, -1, "misaligned LDS atomic at LDS offset", address);
  if (address + 4 > w.lds_bytes) return fault_lds(w, op, -1, address, 4);
  uint32_t old;
  memcpy(&old, w.lds + address, 4);
  const uint32_t next = old + uint32_t(kSign * __builtin_popcountll(exec));
  memcpy(w.lds + address, &next, 4);
  LANES w.out[i] = old;
  store_masked(w.v + op.o[0].index * 64, w.out, exec);
}

}  // namespace

#define NARROW(name, type, f)                                     \
  {"ds_" name "_" type, "=ii", atomic<u32, f, false>, kRowDs}, {  \
    "ds_" name "_rtn_" type, "i=ii", atomic<u32, f, true>, kRowDs \
  }
#define BROAD(name, type, f)                                      \
  {"ds_" name "_" type, "=il", atomic<u64, f, false>, kRowDs}, {  \
    "ds_" name "_rtn_" type, "l=il", atomic<u64, f, true>, kRowDs \
  }
#define NARROW2(name, type, f)                                      \
  {"ds_" name "_" type, "=iii", atomic2<u32, f, false>, kRowDs}, {  \
    "ds_" name "_rtn_" type, "i=iii", atomic2<u32, f, true>, kRowDs \
  }
#define BROAD2(name, type, f)                                       \
  {"ds_" name "_" type, "=ill", atomic2<u64, f, false>, kRowDs}, {  \
    "ds_" name "_rtn_" type, "l=ill", atomic2<u64, f, true>, kRowDs \
  }

const Row rows_lds_atomic[] = {
    NARROW("add", "u32", at_add<u32>),
    NARROW("sub", "u32", at_sub<u32>),
    NARROW("rsub", "u32", at_rsub<u32>),
    NARROW("inc", "u32", at_inc<u32>),
    NARROW("dec", "u32", at_dec<u32>),
    NARROW("min", "i32", at_smin),
    NARROW("max", "i32", at_smax),
    NARROW("min", "u32", at_umin<u32>),
    NARROW("max", "u32", at_umax<u32>),
    NARROW("and", "b32", at_and<u32>),
    NARROW("or", "b32", at_or<u32>),
    NARROW("xor", "b32", at_xor<u32>),
    NARROW("add", "f32", at_fadd),
    NARROW("min", "f32", at_fmin),
    NARROW("max", "f32", at_fmax),
    NARROW("pk_add", "f16", at_pk_f16),
    NARROW("pk_add", "bf16", at_pk_bf16),
    BROAD("add", "u64", at_add<u64>),
    BROAD("sub", "u64", at_sub<u64>),
    BROAD("rsub", "u64", at_rsub<u64>),
    BROAD("inc", "u64", at_inc<u64>),
    BROAD("dec", "u64", at_dec<u64>),
    BROAD("min", "i64", at_smin64),
    BROAD("max", "i64", at_smax64),
    BROAD("min", "u64", at_umin<u64>),
    BROAD("max", "u64", at_umax<u64>),
    BROAD("and", "b64", at_and<u64>),
    BROAD("or", "b64", at_or<u64>),
    BROAD("xor", "b64", at_xor<u64>),
    BROAD("add", "f64", at_dadd),
    BROAD("min", "f64", at_dmin),
    BROAD("max", "f64", at_dmax),
    {"ds_wrxchg_rtn_b32", "i=ii", atomic<u32, at_swap<u32>, true>, kRowDs},
    {"ds_wrxchg_rtn_b64", "l=il", atomic<u64, at_swap<u64>, true>, kRowDs},
    NARROW2("cmpst", "b32", at_cmpst<u32>),
    BROAD2("cmpst", "b64", at_cmpst<u64>),
    NARROW2("cmpst", "f32", at_cmpst_f32),
    BROAD2("cmpst", "f64", at_cmpst_f64),
    NARROW2("mskor", "b32", at_mskor<u32>),
    BROAD2("mskor", "b64", at_mskor<u64>),
    {"ds_wrap_rtn_b32", "i=iii", atomic2<u32, at_wrap, true>, kRowDs},
    {"ds_condxchg32_rtn_b64", "l=il", atomic<u64, at_condxchg32, true>, kRowDs},
    {"ds_wrxchg2_rtn_b32", "l=iii", exchange2<u32, 4>, kRowDs},
    {"ds_wrxchg2_rtn_b64", "l=ill", exchange2<u64, 8>, kRowDs},
    {"ds_wrxchg2st64_rtn_b32", "l=iii", exchange2<u32, 256>, kRowDs},
    {"ds_wrxchg2st64_rtn_b64", "l=ill", exchange2<u64, 512>, kRowDs},
    {"ds_append", "i=", count_lanes<1>, kRowDs},
    {"ds_consume", "i=", count_lanes<-1>, kRowDs},
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
