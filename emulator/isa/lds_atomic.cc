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
    const uint64_t address = uint64_t(a[i]) + uint32_t(op.imm);
    if (address + sizeof(T) > w.lds_bytes) return fault_lds(w, op, i, address, sizeof(T));
    if (address % sizeof(T))
      return fault_value(w, op, i, "misaligned LDS atomic at LDS offset", address);
    T old;
    memcpy(&old, w.lds + address, sizeof old);
    const T next = F(old, lane_value<T>(d, i));
    memcpy(w.lds + address, &next, sizeof next);
    w.out[i] = uint32_t(old);
    w.out[64 + i] = uint32_t(uint64_t(old) >> 32);
  }
  if (!kReturn) return;
  uint32_t *row = w.v + op.o[0].index * 64;
  for (int r = 0; r < int(sizeof(T) / 4); ++r) store_masked(row + 64 * r, w.out + 64 * r, exec);
}
// D1 replaces the element when it equals D0.
template <class T, bool kReturn>
void compare_swap(Wave &w, const Op &op) {
  const int n = kReturn ? 1 : 0;
  const uint32_t *a = source(w, op, n);
  const uint32_t *expected = w.base[0] + op.o[n + 1].index * 64,
                 *value = w.base[0] + op.o[n + 2].index * 64;
  const uint64_t exec = exec_of(w);
  for (int i = 0; i < 64; ++i) {
    if (!(exec >> i & 1)) continue;
    const uint64_t address = uint64_t(a[i]) + uint32_t(op.imm);
    if (address + sizeof(T) > w.lds_bytes) return fault_lds(w, op, i, address, sizeof(T));
    if (address % sizeof(T))
      return fault_value(w, op, i, "misaligned LDS atomic at LDS offset", address);
    T old;
    memcpy(&old, w.lds + address, sizeof old);
    const T next = old == lane_value<T>(expected, i) ? lane_value<T>(value, i) : old;
    memcpy(w.lds + address, &next, sizeof next);
    w.out[i] = uint32_t(old);
    w.out[64 + i] = uint32_t(uint64_t(old) >> 32);
  }
  if (!kReturn) return;
  uint32_t *row = w.v + op.o[0].index * 64;
  for (int r = 0; r < int(sizeof(T) / 4); ++r) store_masked(row + 64 * r, w.out + 64 * r, exec);
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
    {"ds_cmpst_b32", "=iii", compare_swap<u32, false>, kRowDs},
    {"ds_cmpst_rtn_b32", "i=iii", compare_swap<u32, true>, kRowDs},
    {"ds_cmpst_b64", "=ill", compare_swap<u64, false>, kRowDs},
    {"ds_cmpst_rtn_b64", "l=ill", compare_swap<u64, true>, kRowDs},
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
