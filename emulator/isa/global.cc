// GLOBAL, FLAT and SCRATCH loads and stores, copies from global memory to LDS.
#include "emulator/isa/address.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

enum Space { kGlobal, kFlat, kScratch };

// Addresses from the vector operand n and the scalar operand n_base; false after a fault or when no
// lane is enabled.
template <Space S>
inline bool locate(Wave &w, const Op &op, int n, int n_base, bool write, uint32_t bytes,
                   uint64_t *a) {
  const uint64_t mask = exec_of(w);
  ++w.vm_issued;
  if (!mask) return false;
  if (S == kScratch) {
    // Architected flat scratch: offset = vector + scalar + immediate into the work-item's own
    // segment.
    const uint32_t base =
        (op.o[n_base].kind == Kind::kOff ? 0 : scalar32(w, op, n_base)) + uint32_t(op.imm);
    const uint32_t *v = op.o[n].kind == Kind::kVector ? vrow(w, op, n) : nullptr;
    FOR_EACH_LANE(i, mask) {
      const uint32_t offset = base + (v ? v[i] : 0);
      if (uint64_t(offset) + bytes > w.scratch_bytes) {
        fault_value(w, op, i, "accesses scratch beyond the kernel's private segment, at offset",
                    offset);
        return false;
      }
      a[i] = reinterpret_cast<uint64_t>(w.scratch) + uint64_t(i) * w.scratch_bytes + offset;
    }
    return true;
  }
  global_addresses(w, op, n, S == kGlobal ? n_base : -1, a);
  uint64_t checked = mask;
  if (S == kFlat && !resolve_flat(w, op, a, mask, bytes, &checked)) return false;
  if (!checked) return true;
  return write ? writable(w, op, a, checked, bytes) : readable(w, op, a, checked, bytes);
}

// A load's data is operand 0, a store's operand 1.
template <Space S>
inline bool locate(Wave &w, const Op &op, bool store, uint32_t bytes, uint64_t *a) {
  return locate<S>(w, op, store ? 0 : 1, 2, store, bytes, a);
}

template <Space S, int kWords>
void load(Wave &w, const Op &op) {
  alignas(64) uint64_t a[64];
  if (!locate<S>(w, op, false, 4 * kWords, a)) return;
  load_words<kWords>(w, a, exec_of(w));
  write_rows(w, w.v + op.o[0].index * 64, kWords);
}
template <Space S, class T, int kShift>
void load_sub(Wave &w, const Op &op) {
  alignas(64) uint64_t a[64];
  if (!locate<S>(w, op, false, sizeof(T), a)) return;
  load_small<T, kShift>(w.v + op.o[0].index * 64, a, exec_of(w));
}
template <Space S, int kWords>
void store(Wave &w, const Op &op) {
  alignas(64) uint64_t a[64];
  if (!locate<S>(w, op, true, 4 * kWords, a)) return;
  store_words<kWords>(vrow(w, op, 1), a, exec_of(w));
}
template <Space S, class T, int kShift>
void store_sub(Wave &w, const Op &op) {
  alignas(64) uint64_t a[64];
  if (!locate<S>(w, op, true, sizeof(T), a)) return;
  store_small<T, kShift>(vrow(w, op, 1), a, exec_of(w));
}

// LDS address = M0 + instruction offset + lane * size, 3 dwords counting as 4.
template <Space S, class T, int kBytes>
void load_lds(Wave &w, const Op &op) {
  alignas(64) uint64_t a[64];
  const uint64_t mask = exec_of(w);
  if (!locate<S>(w, op, 0, 1, false, sizeof(T), a)) return;
  alignas(64) uint8_t data[64 * kBytes];
  FOR_EACH_LANE(i, mask) {
    if constexpr (sizeof(T) < 4) {
      T t;
      memcpy(&t, reinterpret_cast<const void *>(a[i]), sizeof t);
      const uint32_t x = uint32_t(int32_t(t));
      memcpy(data + i * 4, &x, 4);
    } else {
      memcpy(data + i * kBytes, reinterpret_cast<const void *>(a[i]), kBytes);
    }
  }
  queue_lds_copy(w, op, copy_destination(w, op), data, mask, kBytes);
}
struct Wide12 {
  uint32_t words[3];
};
struct Wide16 {
  uint32_t words[4];
};

}  // namespace

#define SPACE(prefix, space, load_shape, store_shape)                                            \
  {prefix "_load_dword", "i=" load_shape, load<space, 1>, kRowMemory},                           \
      {prefix "_load_dwordx2", "l=" load_shape, load<space, 2>, kRowMemory},                     \
      {prefix "_load_dwordx3", "l=" load_shape, load<space, 3>, kRowMemory},                     \
      {prefix "_load_dwordx4", "l=" load_shape, load<space, 4>, kRowMemory},                     \
      {prefix "_load_ubyte", "i=" load_shape, load_sub<space, uint8_t, -1>, kRowMemory},         \
      {prefix "_load_sbyte", "i=" load_shape, load_sub<space, int8_t, -1>, kRowMemory},          \
      {prefix "_load_ushort", "i=" load_shape, load_sub<space, uint16_t, -1>, kRowMemory},       \
      {prefix "_load_sshort", "i=" load_shape, load_sub<space, int16_t, -1>, kRowMemory},        \
      {prefix "_load_ubyte_d16", "i&" load_shape, load_sub<space, uint8_t, 0>, kRowMemory},      \
      {prefix "_load_ubyte_d16_hi", "i&" load_shape, load_sub<space, uint8_t, 16>, kRowMemory},  \
      {prefix "_load_sbyte_d16", "i&" load_shape, load_sub<space, int8_t, 0>, kRowMemory},       \
      {prefix "_load_sbyte_d16_hi", "i&" load_shape, load_sub<space, int8_t, 16>, kRowMemory},   \
      {prefix "_load_short_d16", "i&" load_shape, load_sub<space, uint16_t, 0>, kRowMemory},     \
      {prefix "_load_short_d16_hi", "i&" load_shape, load_sub<space, uint16_t, 16>, kRowMemory}, \
      {prefix "_store_dword", "=" store_shape, store<space, 1>, kRowMemory},                     \
      {prefix "_store_dwordx2", "=" store_shape, store<space, 2>, kRowMemory},                   \
      {prefix "_store_dwordx3", "=" store_shape, store<space, 3>, kRowMemory},                   \
      {prefix "_store_dwordx4", "=" store_shape, store<space, 4>, kRowMemory},                   \
      {prefix "_store_byte", "=" store_shape, store_sub<space, uint8_t, 0>, kRowMemory},         \
      {prefix "_store_byte_d16_hi", "=" store_shape, store_sub<space, uint8_t, 16>, kRowMemory}, \
      {prefix "_store_short", "=" store_shape, store_sub<space, uint16_t, 0>, kRowMemory}, {     \
    prefix "_store_short_d16_hi", "=" store_shape, store_sub<space, uint16_t, 16>, kRowMemory    \
  }
#define LDS_COPY(prefix, space)                                                       \
  {prefix "_load_lds_dword", "=oo", load_lds<space, uint32_t, 4>, kRowMemory},        \
      {prefix "_load_lds_dwordx3", "=oo", load_lds<space, Wide12, 12>, kRowMemory},   \
      {prefix "_load_lds_dwordx4", "=oo", load_lds<space, Wide16, 16>, kRowMemory},   \
      {prefix "_load_lds_ubyte", "=oo", load_lds<space, uint8_t, 4>, kRowMemory},     \
      {prefix "_load_lds_sbyte", "=oo", load_lds<space, int8_t, 4>, kRowMemory},      \
      {prefix "_load_lds_ushort", "=oo", load_lds<space, uint16_t, 4>, kRowMemory}, { \
    prefix "_load_lds_sshort", "=oo", load_lds<space, int16_t, 4>, kRowMemory         \
  }

const Row rows_global[] = {
    SPACE("global", kGlobal, "oo", "oio"),   SPACE("flat", kFlat, "o", "oi"),
    SPACE("scratch", kScratch, "oo", "oio"), LDS_COPY("global", kGlobal),
    LDS_COPY("scratch", kScratch),           {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
