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
  update<T>(w, op, kFlat,
            [](T old, const uint32_t *d, int i) { return F(old, lane_value<T>(d, i)); });
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
  ONE("global_atomic_", name, false, T, f), ONE("flat_atomic_", name, true, T, f)

const Row rows_atomic[] = {
    BOTH("swap", u32, at_swap<u32>),
    BOTH("add", u32, at_add<u32>),
    BOTH("sub", u32, at_sub<u32>),
    BOTH("smin", u32, at_smin),
    BOTH("umin", u32, at_umin<u32>),
    BOTH("smax", u32, at_smax),
    BOTH("umax", u32, at_umax<u32>),
    BOTH("and", u32, at_and<u32>),
    BOTH("or", u32, at_or<u32>),
    BOTH("xor", u32, at_xor<u32>),
    BOTH("inc", u32, at_inc<u32>),
    BOTH("dec", u32, at_dec<u32>),
    BOTH("add_f32", u32, at_fadd),
    BOTH("pk_add_f16", u32, at_pk_f16),
    BOTH("pk_add_bf16", u32, at_pk_bf16),
    BOTH("swap_x2", u64, at_swap<u64>),
    BOTH("add_x2", u64, at_add<u64>),
    BOTH("sub_x2", u64, at_sub<u64>),
    BOTH("smin_x2", u64, at_smin64),
    BOTH("umin_x2", u64, at_umin<u64>),
    BOTH("smax_x2", u64, at_smax64),
    BOTH("umax_x2", u64, at_umax<u64>),
    BOTH("and_x2", u64, at_and<u64>),
    BOTH("or_x2", u64, at_or<u64>),
    BOTH("xor_x2", u64, at_xor<u64>),
    BOTH("inc_x2", u64, at_inc<u64>),
    BOTH("dec_x2", u64, at_dec<u64>),
    BOTH("add_f64", u64, at_dadd),
    BOTH("min_f64", u64, at_dmin),
    BOTH("max_f64", u64, at_dmax),
    {"global_atomic_cmpswap", "*", compare_swap<u32, false>, kRowMemory},
    {"flat_atomic_cmpswap", "*", compare_swap<u32, true>, kRowMemory},
    {"global_atomic_cmpswap_x2", "*", compare_swap<u64, false>, kRowMemory},
    {"flat_atomic_cmpswap_x2", "*", compare_swap<u64, true>, kRowMemory},
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
