// Read-modify-write of memory that other host threads may be updating: work-groups run on several,
// so 32- and 64-bit elements change by compare-and-swap; lanes act in increasing order.
#pragma once

#include "emulator/isa/address.h"
#include "emulator/isa/atomic_lane.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

template <class T>
inline T lane_value(const uint32_t *row, int i) {
  return sizeof(T) == 8 ? T(wide(row, i)) : T(row[i]);
}

// next(old, data, lane, address); old values go to w.out.
template <class T, class Next>
inline void modify_lanes(Wave &w, const Op &op, const uint64_t *a, uint64_t mask,
                         const uint32_t *data, const Next &next) {
  FOR_EACH_LANE(i, mask) {
    if (a[i] % sizeof(T)) return fault_value(w, op, i, "misaligned atomic at", a[i]);
    T *p = reinterpret_cast<T *>(a[i]);
    T old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(p, &old, next(old, data, i, p), false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED)) {
    }
    w.out[i] = uint32_t(old);
    w.out[64 + i] = uint32_t(uint64_t(old) >> 32);
  }
}

// Data: new value, then the value compared with.
template <class T>
inline T swapped_if_equal(T old, const uint32_t *d, int i, const void *) {
  return old == lane_value<T>(d + sizeof(T) / 4 * 64, i) ? lane_value<T>(d, i) : old;
}

// The operations that global, flat and buffer memory share: X(name, word, function). One line here is three instructions.
#define FLYDSL_EMU_MEMORY_ATOMICS(X) \
  X("swap", u32, at_swap<u32>) \
  X("add", u32, at_add<u32>) \
  X("sub", u32, at_sub<u32>) \
  X("smin", u32, at_smin) \
  X("umin", u32, at_umin<u32>) \
  X("smax", u32, at_smax) \
  X("umax", u32, at_umax<u32>) \
  X("and", u32, at_and<u32>) \
  X("or", u32, at_or<u32>) \
  X("xor", u32, at_xor<u32>) \
  X("inc", u32, at_inc<u32>) \
  X("dec", u32, at_dec<u32>) \
  X("add_f32", u32, at_fadd) \
  X("pk_add_f16", u32, at_pk_f16) \
  X("pk_add_bf16", u32, at_pk_bf16) \
  X("swap_x2", u64, at_swap<u64>) \
  X("add_x2", u64, at_add<u64>) \
  X("sub_x2", u64, at_sub<u64>) \
  X("smin_x2", u64, at_smin64) \
  X("umin_x2", u64, at_umin<u64>) \
  X("smax_x2", u64, at_smax64) \
  X("umax_x2", u64, at_umax<u64>) \
  X("and_x2", u64, at_and<u64>) \
  X("or_x2", u64, at_or<u64>) \
  X("xor_x2", u64, at_xor<u64>) \
  X("inc_x2", u64, at_inc<u64>) \
  X("dec_x2", u64, at_dec<u64>) \
  X("add_f64", u64, at_dadd) \
  X("min_f64", u64, at_dmin) \
  X("max_f64", u64, at_dmax)

}  // namespace
}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
