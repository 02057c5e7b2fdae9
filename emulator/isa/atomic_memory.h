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

// next(old, data, lane); old values go to w.out.
template <class T, class Next>
inline void modify_lanes(Wave &w, const Op &op, const uint64_t *a, uint64_t mask,
                         const uint32_t *data, const Next &next) {
  FOR_EACH_LANE(i, mask) {
    if (a[i] % sizeof(T)) return fault_value(w, op, i, "misaligned atomic at", a[i]);
    T *p = reinterpret_cast<T *>(a[i]);
    T old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(p, &old, next(old, data, i), false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED)) {
    }
    w.out[i] = uint32_t(old);
    w.out[64 + i] = uint32_t(uint64_t(old) >> 32);
  }
}

// Data: new value, then the value compared with.
template <class T>
inline T swapped_if_equal(T old, const uint32_t *d, int i) {
  return old == lane_value<T>(d + sizeof(T) / 4 * 64, i) ? lane_value<T>(d, i) : old;
}

}  // namespace
}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
