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
  update<T>(w, op, [&](T old, const uint32_t *d, int i, const void *) {
    return changed<F>(old, lane_value<T>(d, i), memory_denormals(op));
  });
}
template <class T>
void compare_swap(Wave &w, const Op &op) {
  update<T>(w, op, swapped_if_equal<T>);
}

}  // namespace

#define BUFFER(name, T, f) \
  {"buffer_atomic_" name, sizeof(T) == 4 ? "=iooo" : "=looo", atomic<T, f>, kRowMemory},

const Row rows_buffer_atomic[] = {
    FLYDSL_EMU_MEMORY_ATOMICS(BUFFER)
    {"buffer_atomic_cmpswap", "=looo", compare_swap<u32>, kRowMemory},
    {"buffer_atomic_cmpswap_x2", "=looo", compare_swap<u64>, kRowMemory},
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
