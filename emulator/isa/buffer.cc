// MUBUF: loads and stores through a buffer descriptor, and their copies to LDS.
#include "emulator/isa/buffer_address.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

// Words of a swizzled buffer lie apart: each is an access of its own.
inline uint32_t pieces(const Buffer &b, uint32_t words) {
  return b.swizzle && !b.scratch ? words : 1;
}

template <int kWords>
void load(Wave &w, const Op &op) {
  alignas(64) uint64_t a[64];
  uint32_t inside[64];
  const bool lds = op.flags & kLdsCopy;
  ++w.vm_issued;
  const Buffer b = buffer_of(w, op, lds ? 0 : 1);
  const uint32_t n = pieces(b, kWords), words = kWords / n;
  const uint64_t exec = exec_of(w);
  // Words outside read 0.
  alignas(64) uint32_t data[64][kWords] = {};
  for (uint32_t p = 0; p < n; ++p) {
    if (!locate_checked(w, op, b, 4 * p, 4, words, a, inside, false)) return;
    FOR_EACH_LANE(i, exec)
    memcpy(data[i] + p * words, reinterpret_cast<const void *>(a[i]), 4 * inside[i]);
  }
  if (lds) {
    // LDS address = M0 + instruction offset + lane * size, 3 dwords counting as 4.
    if (exec)
      queue_lds_copy(w, op, copy_destination(w, op),
                     reinterpret_cast<const uint8_t *>(data), exec, 4 * kWords);
    return;
  }
  for (int k = 0; k < kWords; ++k) LANES w.out[64 * k + i] = data[i][k];
  write_rows(w, w.v + op.o[0].index * 64, kWords);
}
template <class T, int kShift>
void load_sub(Wave &w, const Op &op) {
  alignas(64) uint64_t a[64];
  uint32_t inside[64];
  const bool lds = op.flags & kLdsCopy;
  ++w.vm_issued;
  if (!locate_checked(w, op, buffer_of(w, op, lds ? 0 : 1), 0, sizeof(T), 1, a, inside, false))
    return;
  alignas(64) uint8_t data[64 * 4] = {};
  uint32_t *d = lds ? nullptr : w.v + op.o[0].index * 64;
  FOR_EACH_LANE(i, exec_of(w)) {
    T t = 0;
    if (inside[i]) memcpy(&t, reinterpret_cast<const void *>(a[i]), sizeof t);
    const uint32_t x = uint32_t(int32_t(t));
    if (lds) {
      memcpy(data + 4 * i, &x, 4);
    } else {
      d[i] = kShift < 0 ? x
             : kShift   ? (d[i] & 0xffff) | x << 16
                        : (d[i] & 0xffff0000u) | (x & 0xffff);
    }
  }
  if (lds && exec_of(w))
    queue_lds_copy(w, op, copy_destination(w, op), data, exec_of(w), 4);
}
template <int kWords>
void store(Wave &w, const Op &op) {
  alignas(64) uint64_t a[64];
  uint32_t inside[64];
  ++w.vm_issued;
  const Buffer b = buffer_of(w, op, 1);
  const uint32_t n = pieces(b, kWords), words = kWords / n;
  for (uint32_t p = 0; p < n; ++p) {
    if (!locate_checked(w, op, b, 4 * p, 4, words, a, inside, true)) return;
    const uint32_t *d = vrow(w, op, 0) + 64 * p * words;
    FOR_EACH_LANE(i, exec_of(w)) {
      uint32_t t[kWords];
      for (uint32_t k = 0; k < words; ++k) t[k] = d[64 * k + i];
      memcpy(reinterpret_cast<void *>(a[i]), t, 4 * inside[i]);
    }
  }
}
template <class T, int kShift>
void store_sub(Wave &w, const Op &op) {
  alignas(64) uint64_t a[64];
  uint32_t inside[64];
  ++w.vm_issued;
  if (!locate_checked(w, op, buffer_of(w, op, 1), 0, sizeof(T), 1, a, inside, true)) return;
  const uint32_t *d = vrow(w, op, 0);
  FOR_EACH_LANE(i, exec_of(w)) {
    const T t = T(d[i] >> kShift);
    if (inside[i]) memcpy(reinterpret_cast<void *>(a[i]), &t, sizeof t);
  }
}

}  // namespace

// "*": with `lds` there is no destination register, so operands start with the address.
const Row rows_buffer[] = {
    {"buffer_load_dword", "*", load<1>, kRowMemory},
    {"buffer_load_dwordx2", "*", load<2>, kRowMemory},
    {"buffer_load_dwordx3", "*", load<3>, kRowMemory},
    {"buffer_load_dwordx4", "*", load<4>, kRowMemory},
    {"buffer_load_ubyte", "*", load_sub<uint8_t, -1>, kRowMemory},
    {"buffer_load_sbyte", "*", load_sub<int8_t, -1>, kRowMemory},
    {"buffer_load_ushort", "*", load_sub<uint16_t, -1>, kRowMemory},
    {"buffer_load_sshort", "*", load_sub<int16_t, -1>, kRowMemory},
    {"buffer_load_ubyte_d16", "*", load_sub<uint8_t, 0>, kRowMemory},
    {"buffer_load_ubyte_d16_hi", "*", load_sub<uint8_t, 16>, kRowMemory},
    {"buffer_load_sbyte_d16", "*", load_sub<int8_t, 0>, kRowMemory},
    {"buffer_load_sbyte_d16_hi", "*", load_sub<int8_t, 16>, kRowMemory},
    {"buffer_load_short_d16", "*", load_sub<uint16_t, 0>, kRowMemory},
    {"buffer_load_short_d16_hi", "*", load_sub<uint16_t, 16>, kRowMemory},
    {"buffer_store_dword", "=iooo", store<1>, kRowMemory},
    {"buffer_store_dwordx2", "=looo", store<2>, kRowMemory},
    {"buffer_store_dwordx3", "=looo", store<3>, kRowMemory},
    {"buffer_store_dwordx4", "=looo", store<4>, kRowMemory},
    {"buffer_store_byte", "=iooo", store_sub<uint8_t, 0>, kRowMemory},
    {"buffer_store_byte_d16_hi", "=iooo", store_sub<uint8_t, 16>, kRowMemory},
    {"buffer_store_short", "=iooo", store_sub<uint16_t, 0>, kRowMemory},
    {"buffer_store_short_d16_hi", "=iooo", store_sub<uint16_t, 16>, kRowMemory},
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
