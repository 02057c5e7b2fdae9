// GLOBAL and FLAT atomics.
#include "emulator/isa/atomic_memory.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

// sc0: the old value is returned, in operand 0, and the others follow it.
template <class T, class Next>
inline void update(Wave &w, const Op &op, bool flat, const Next &next) {
  const bool returns = op.flags & kGlc;
  const int n = returns ? 1 : 0;
  alignas(64) uint64_t a[64];
  uint64_t mask = exec_of(w), checked = mask;
  ++w.vm_issued;
  if (!mask) return;
  global_addresses(w, op, n, flat ? -1 : n + 2, a);
  if (flat && !resolve_flat(w, op, a, mask, sizeof(T), &checked)) return;
  if (checked && !writable(w, op, a, checked, sizeof(T))) return;
  modify_lanes<T>(w, op, a, mask, vrow(w, op, n + 1), next);
  if (returns) write_rows(w, w.v + op.o[0].index * 64, sizeof(T) / 4);
}
template <class T, auto F, bool kFlat>
void atomic(Wave &w, const Op &op) {
  update<T>(w, op, kFlat, [&](T old, const uint32_t *d, int i, const void *place) {
    const bool lds = kFlat && size_t(static_cast<const uint8_t *>(place) - w.lds) < w.lds_bytes;
    return changed<F>(old, lane_value<T>(d, i), lds ? lds_denormals(w) : memory_denormals(op));
  });
}
template <class T, bool kFlat>
void compare_swap(Wave &w, const Op &op) {
  update<T>(w, op, kFlat, swapped_if_equal<T>);
}

}  // namespace

// "*": with sc0 the returned register comes first.
#define ONE(prefix, name, flat, T, f) \
  { prefix name, "*", atomic<T, f, flat>, kRowMemory }
#define BOTH(name, T, f) \
  ONE("global_atomic_", name, false, T, f), ONE("flat_atomic_", name, true, T, f),

const Row rows_atomic[] = {
    FLYDSL_EMU_MEMORY_ATOMICS(BOTH)
    {"global_atomic_cmpswap", "*", compare_swap<u32, false>, kRowMemory},
    {"flat_atomic_cmpswap", "*", compare_swap<u32, true>, kRowMemory},
    {"global_atomic_cmpswap_x2", "*", compare_swap<u64, false>, kRowMemory},
    {"flat_atomic_cmpswap_x2", "*", compare_swap<u64, true>, kRowMemory},
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
