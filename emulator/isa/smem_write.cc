// Scalar memory: scratch loads, stores and atomics.
#include "emulator/isa/atomic_memory.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

// Operands: data, base, offset. Scratch offsets in a register count 64 bytes (Vega ISA, "Scalar
// memory"); buffers are checked as s_buffer_load does.
enum Space { kGlobal, kScratch, kBuffer };

// The address, checked for `bytes`; 0 when the access is outside its buffer or faulted.
template <Space S>
inline uint64_t locate(Wave &w, const Op &op, uint32_t bytes, bool write, uint32_t skipped = 0) {
  const uint64_t immediate = uint64_t(int64_t(op.imm));
  const bool scaled = S == kScratch && op.o[2].kind == Kind::kScalar;
  const uint64_t offset = uint64_t(scalar32(w, op, 2)) * (scaled ? 64 : 1);
  uint64_t address, low_bits = immediate | offset;
  if (S == kBuffer) {
    const uint32_t *d = w.s + op.o[1].index, stride = d[1] >> 16 & 0x3fff;
    low_bits |= d[0];
    const uint64_t limit = stride ? uint64_t(d[2]) * stride : d[2],
                   at = offset + immediate + skipped;
    if (at + bytes > limit) return 0;
    address = (d[0] | uint64_t(d[1] & 0xffff) << 32) + at;
  } else {
    low_bits |= scalar64(w, op, 1);
    address = scalar64(w, op, 1) + immediate + offset;
  }
  if (low_bits & 3) {
    fault_value(w, op, -1, "scalar access to an address that is not a multiple of 4,", address);
    return 0;
  }
  const uint64_t addresses[64] = {address};
  const bool good =
      write ? check_lanes(w, op, addresses, 1, bytes, true) : check_scalar(w, op, address, bytes);
  return good ? address : 0;
}

template <Space S, uint32_t kWords>
void load(Wave &w, const Op &op) {
  if (const uint64_t address = locate<S>(w, op, kWords * 4, false))
    memcpy(w.s + op.o[0].index, reinterpret_cast<const void *>(address), kWords * 4);
}
template <Space S, uint32_t kWords>
void store(Wave &w, const Op &op) {
  // Each dword of a buffer is checked by itself (CDNA4 ISA, "Alignment and Bounds Checking").
  constexpr uint32_t kParts = S == kBuffer ? kWords : 1, kBytes = kWords * 4 / kParts;
  for (uint32_t k = 0; k < kParts && w.stop != Stop::kFault; ++k)
    if (const uint64_t address = locate<S>(w, op, kBytes, true, 4 * k))
      memcpy(reinterpret_cast<void *>(address), w.s + op.o[0].index + k, kBytes);
}

template <class T>
inline T scalar_value(Wave &w, uint32_t index) {
  return sizeof(T) == 8 ? T(w.s[index] | uint64_t(w.s[index + 1]) << 32) : T(w.s[index]);
}
// next(old) on the element; glc returns the old value in the data register.
template <Space S, class T, class Next>
inline void update(Wave &w, const Op &op, const Next &next) {
  const uint64_t address = locate<S>(w, op, sizeof(T), true);
  if (!address) return;
  if (address % sizeof(T)) return fault_value(w, op, -1, "misaligned atomic at", address);
  T *p = reinterpret_cast<T *>(address);
  T old = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (
      !__atomic_compare_exchange_n(p, &old, next(old), false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
  }
  if (!(op.flags & kGlc)) return;
  w.s[op.o[0].index] = u32(old);
  if (sizeof(T) == 8) w.s[op.o[0].index + 1] = u32(u64(old) >> 32);
}
template <Space S, class T, auto F>
void atomic(Wave &w, const Op &op) {
  const T data = scalar_value<T>(w, op.o[0].index);
  update<S, T>(w, op, [data](T old) { return F(old, data); });
}
template <Space S, class T>
void compare_swap(Wave &w, const Op &op) {
  const T value = scalar_value<T>(w, op.o[0].index),
          expected = scalar_value<T>(w, op.o[0].index + sizeof(T) / 4);
  update<S, T>(w, op, [=](T old) { return old == expected ? value : old; });
}

}  // namespace

#define ATOMIC(name, f32, f64)                                                    \
  {"s_atomic_" name, "=ili", atomic<kGlobal, u32, f32>, kRowMemory},              \
      {"s_atomic_" name "_x2", "=lli", atomic<kGlobal, u64, f64>, kRowMemory},    \
      {"s_buffer_atomic_" name, "=ili", atomic<kBuffer, u32, f32>, kRowMemory}, { \
    "s_buffer_atomic_" name "_x2", "=lli", atomic<kBuffer, u64, f64>, kRowMemory  \
  }
#define STORE(prefix, space)                                            \
  {prefix "_store_dword", "=ili", store<space, 1>, kRowMemory},         \
      {prefix "_store_dwordx2", "=lli", store<space, 2>, kRowMemory}, { \
    prefix "_store_dwordx4", "=lli", store<space, 4>, kRowMemory        \
  }

const Row rows_smem_write[] = {
    {"s_scratch_load_dword", "i=li", load<kScratch, 1>, kRowMemory},
    {"s_scratch_load_dwordx2", "l=li", load<kScratch, 2>, kRowMemory},
    {"s_scratch_load_dwordx4", "l=li", load<kScratch, 4>, kRowMemory},
    STORE("s", kGlobal),
    STORE("s_scratch", kScratch),
    STORE("s_buffer", kBuffer),
    ATOMIC("swap", at_swap<u32>, at_swap<u64>),
    ATOMIC("add", at_add<u32>, at_add<u64>),
    ATOMIC("sub", at_sub<u32>, at_sub<u64>),
    ATOMIC("smin", at_smin, at_smin64),
    ATOMIC("umin", at_umin<u32>, at_umin<u64>),
    ATOMIC("smax", at_smax, at_smax64),
    ATOMIC("umax", at_umax<u32>, at_umax<u64>),
    ATOMIC("and", at_and<u32>, at_and<u64>),
    ATOMIC("or", at_or<u32>, at_or<u64>),
    ATOMIC("xor", at_xor<u32>, at_xor<u64>),
    ATOMIC("inc", at_inc<u32>, at_inc<u64>),
    ATOMIC("dec", at_dec<u32>, at_dec<u64>),
    {"s_atomic_cmpswap", "=lli", compare_swap<kGlobal, u32>, kRowMemory},
    {"s_atomic_cmpswap_x2", "=lli", compare_swap<kGlobal, u64>, kRowMemory},
    {"s_buffer_atomic_cmpswap", "=lli", compare_swap<kBuffer, u32>, kRowMemory},
    {"s_buffer_atomic_cmpswap_x2", "=lli", compare_swap<kBuffer, u64>, kRowMemory},
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
