// MUBUF: loads and stores through a buffer descriptor, and their copies to LDS.
#include "emulator/isa/address.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

// Buffer descriptor (CDNA3 ISA, "Buffer resource descriptor"): base 47:0, stride 61:48, swizzle 63;
// num_records in word 2, bytes when stride is 0 and records otherwise; word 3 bit 23: add the lane
// to the index.
struct Descriptor {
  uint64_t base;
  uint32_t stride, records;
  bool swizzle, add_lane;
};
inline Descriptor descriptor(Wave &w, const Op &op, int n) {
  const uint32_t *d = w.s + op.o[n].index;
  return {d[0] | uint64_t(d[1] & 0xffff) << 32, d[1] >> 16 & 0x3fff, d[2], bool(d[1] >> 31),
          bool(d[3] >> 23 & 1)};
}

// Operands from n: address (or off), descriptor, scalar offset. For each enabled lane its address
// and how many of `words` leading words of `unit` bytes are inside the buffer (word by word for raw
// buffers, all or none for structured ones). False after a fault.
inline bool locate(Wave &w, const Op &op, int n, uint32_t unit, uint32_t words, uint64_t *address,
                   uint32_t *inside) {
  ++w.vm_issued;
  const Descriptor d = descriptor(w, op, n + 1);
  if (d.swizzle) {
    fault(w, op, -1, "swizzled buffer descriptors are not emulated");
    return false;
  }
  const uint32_t soffset = op.o[n + 2].kind == Kind::kOff ? 0 : scalar32(w, op, n + 2);
  const bool idxen = op.flags & kIdxen, offen = op.flags & kOffen;
  const uint32_t *v = op.o[n].kind == Kind::kVector ? vrow(w, op, n) : nullptr;
  FOR_EACH_LANE(i, exec_of(w)) {
    const uint32_t index = (idxen ? v[i] : 0) + (d.add_lane ? uint32_t(i) : 0);
    const uint64_t offset = uint64_t(offen ? v[(idxen ? 64 : 0) + i] : 0) + uint32_t(op.imm);
    address[i] = d.base + soffset + offset + uint64_t(index) * d.stride;
    if (d.stride == 0) {
      const uint64_t limit = d.records > soffset ? d.records - soffset : 0;
      inside[i] = 0;
      while (inside[i] < words && offset + uint64_t(unit) * (inside[i] + 1) <= limit) ++inside[i];
    } else {
      const bool out = index >= d.records || (idxen && offset + uint64_t(unit) * words > d.stride);
      inside[i] = out ? 0 : words;
    }
  }
  return true;
}
// Lanes by the number of words they may touch, so that each group is checked with its own size.
inline bool checked(Wave &w, const Op &op, const uint64_t *a, const uint32_t *inside, uint32_t unit,
                    uint32_t words, bool write) {
  for (uint32_t k = 1; k <= words; ++k) {
    uint64_t mask = 0;
    FOR_EACH_LANE(i, exec_of(w)) mask |= uint64_t(inside[i] == k) << i;
    if (mask && !(write ? writable(w, op, a, mask, unit * k) : readable(w, op, a, mask, unit * k)))
      return false;
  }
  return true;
}

template <int kWords>
void load(Wave &w, const Op &op) {
  alignas(64) uint64_t a[64];
  uint32_t inside[64];
  const bool lds = op.flags & kLdsCopy;
  const int n = lds ? 0 : 1;
  if (!locate(w, op, n, 4, kWords, a, inside) || !checked(w, op, a, inside, 4, kWords, false))
    return;
  const uint64_t exec = exec_of(w);
  if (lds) {
    alignas(64) uint8_t data[64 * 4 * kWords] = {};
    FOR_EACH_LANE(i, exec)
    memcpy(data + i * 4 * kWords, reinterpret_cast<const void *>(a[i]), 4 * inside[i]);
    // LDS address = M0 + instruction offset + lane * size (CDNA3 ISA, "MUBUF to LDS"); words
    // outside land as 0.
    if (exec) queue_lds_copy(w, op, uint64_t(w.s[kM0]) + uint32_t(op.imm), data, exec, 4 * kWords);
    return;
  }
  FOR_EACH_LANE(i, exec) {
    uint32_t t[kWords] = {};
    memcpy(t, reinterpret_cast<const void *>(a[i]), 4 * inside[i]);
    for (int k = 0; k < kWords; ++k) w.out[64 * k + i] = t[k];
  }
  write_rows(w, w.v + op.o[0].index * 64, kWords);
}
template <class T, int kShift>
void load_sub(Wave &w, const Op &op) {
  alignas(64) uint64_t a[64];
  uint32_t inside[64];
  const bool lds = op.flags & kLdsCopy;
  if (!locate(w, op, lds ? 0 : 1, sizeof(T), 1, a, inside) ||
      !checked(w, op, a, inside, sizeof(T), 1, false))
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
    queue_lds_copy(w, op, uint64_t(w.s[kM0]) + uint32_t(op.imm), data, exec_of(w), 4);
}
template <int kWords>
void store(Wave &w, const Op &op) {
  alignas(64) uint64_t a[64];
  uint32_t inside[64];
  if (!locate(w, op, 1, 4, kWords, a, inside) || !checked(w, op, a, inside, 4, kWords, true))
    return;
  const uint32_t *d = vrow(w, op, 0);
  FOR_EACH_LANE(i, exec_of(w)) {
    uint32_t t[kWords];
    for (int k = 0; k < kWords; ++k) t[k] = d[64 * k + i];
    memcpy(reinterpret_cast<void *>(a[i]), t, 4 * inside[i]);
  }
}
template <class T, int kShift>
void store_sub(Wave &w, const Op &op) {
  alignas(64) uint64_t a[64];
  uint32_t inside[64];
  if (!locate(w, op, 1, sizeof(T), 1, a, inside) || !checked(w, op, a, inside, sizeof(T), 1, true))
    return;
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
