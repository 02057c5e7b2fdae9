// MUBUF atomics: lanes outside the buffer change nothing and receive 0.
#include "emulator/isa/atomic_memory.h"
#include "emulator/isa/buffer_address.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

// The data register receives the old value when sc0 asks for it.
template <class T, class Next>
inline void update(Wave &w, const Op &op, const Next &next) {
  alignas(64) uint64_t a[64];
  uint32_t inside[64];
  ++w.vm_issued;
  if (!locate_checked(w, op, buffer_of(w, op, 1), 0, sizeof(T), 1, a, inside, true)) return;
  uint64_t mask = 0;
  FOR_EACH_LANE(i, exec_of(w)) mask |= uint64_t(inside[i]) << i;
  for (uint32_t r = 0; r < sizeof(T) / 4; ++r) LANES w.out[64 * r + i] = 0;
  modify_lanes<T>(w, op, a, mask, vrow(w, op, 0), next);
  if (op.flags & kGlc) write_rows(w, w.v + op.o[0].index * 64, sizeof(T) / 4);
}
template <class T, auto F>
void atomic(Wave &w, const Op &op) {
  update<T>(w, op, [](T old, const uint32_t *d, int i) { return F(old, lane_value<T>(d, i)); });
}
template <class T>
void compare_swap(Wave &w, const Op &op) {
  update<T>(w, op, swapped_if_equal<T>);
}

}  // namespace

#define NARROW(name, f) \
  { "buffer_atomic_" name, "=iooo", atomic<u32, f>, kRowMemory }
#define BROAD(name, f) \
  { "buffer_atomic_" name, "=looo", atomic<u64, f>, kRowMemory }

const Row rows_buffer_atomic[] = {
    NARROW("swap", at_swap<u32>),
    NARROW("add", at_add<u32>),
    NARROW("sub", at_sub<u32>),
    NARROW("smin", at_smin),
    NARROW("umin", at_umin<u32>),
    NARROW("smax", at_smax),
    NARROW("umax", at_umax<u32>),
    NARROW("and", at_and<u32>),
    NARROW("or", at_or<u32>),
    NARROW("xor", at_xor<u32>),
    NARROW("inc", at_inc<u32>),
    NARROW("dec", at_dec<u32>),
    NARROW("add_f32", at_fadd),
    NARROW("pk_add_f16", at_pk_f16),
    NARROW("pk_add_bf16", at_pk_bf16),
    BROAD("swap_x2", at_swap<u64>),
    BROAD("add_x2", at_add<u64>),
    BROAD("sub_x2", at_sub<u64>),
    BROAD("smin_x2", at_smin64),
    BROAD("umin_x2", at_umin<u64>),
    BROAD("smax_x2", at_smax64),
    BROAD("umax_x2", at_umax<u64>),
    BROAD("and_x2", at_and<u64>),
    BROAD("or_x2", at_or<u64>),
    BROAD("xor_x2", at_xor<u64>),
    BROAD("inc_x2", at_inc<u64>),
    BROAD("dec_x2", at_dec<u64>),
    BROAD("add_f64", at_dadd),
    BROAD("min_f64", at_dmin),
    BROAD("max_f64", at_dmax),
    {"buffer_atomic_cmpswap", "=looo", compare_swap<u32>, kRowMemory},
    {"buffer_atomic_cmpswap_x2", "=looo", compare_swap<u64>, kRowMemory},
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
