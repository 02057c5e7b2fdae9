// Scalar memory loads.
#include "emulator/isa/lanes.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

inline void load(Wave &w, const Op &op, uint64_t address, uint32_t words) {
  if (!check_scalar(w, op, address, words * 4)) return;
  memcpy(w.s + op.o[0].index, reinterpret_cast<const void *>(address), size_t(words) * 4);
}
template <uint32_t kWords>
void s_load(Wave &w, const Op &op) {
  const uint64_t base = scalar64(w, op, 1), offset = scalar32(w, op, 2);
  const uint64_t immediate = uint64_t(int64_t(op.imm));
  // The hardware drops the two low bits of each part of the address (CDNA4 ISA, "Scalar Memory
  // Addressing"): almost always a mistake.
  if ((base | offset | immediate) & 3)
    return fault_value(w, op, -1, "scalar load from an address that is not a multiple of 4,",
                       base + offset + immediate);
  load(w, op, base + offset + immediate, kWords);
}
// Through a buffer descriptor: words past num_records read 0.
template <uint32_t kWords>
void s_buffer_load(Wave &w, const Op &op) {
  const uint32_t *d = w.s + op.o[1].index;
  const uint64_t base = (d[0] & ~3u) | uint64_t(d[1] & 0xffff) << 32;
  const uint32_t stride = d[1] >> 16 & 0x3fff;
  const uint64_t bytes = stride ? uint64_t(d[2]) * stride : d[2];
  const uint64_t offset =
      (scalar32(w, op, 2) & ~3u) + (uint64_t(int64_t(op.imm)) & ~uint64_t(3));
  uint32_t out[kWords];
  for (uint32_t k = 0; k < kWords; ++k) {
    out[k] = 0;
    if (offset + 4 * k + 4 > bytes) continue;
    const uint64_t address = base + offset + 4 * k;
    if (!check_scalar(w, op, address, 4)) return;
    memcpy(out + k, reinterpret_cast<const void *>(address), 4);
  }
  memcpy(w.s + op.o[0].index, out, sizeof out);
}

}  // namespace

const Row rows_smem[] = {
    {"s_load_dword", "i=li", s_load<1>, kRowMemory},
    {"s_load_dwordx2", "l=li", s_load<2>, kRowMemory},
    {"s_load_dwordx4", "l=li", s_load<4>, kRowMemory},
    {"s_load_dwordx8", "l=li", s_load<8>, kRowMemory},
    {"s_load_dwordx16", "l=li", s_load<16>, kRowMemory},
    {"s_buffer_load_dword", "i=li", s_buffer_load<1>, kRowMemory},
    {"s_buffer_load_dwordx2", "l=li", s_buffer_load<2>, kRowMemory},
    {"s_buffer_load_dwordx4", "l=li", s_buffer_load<4>, kRowMemory},
    {"s_buffer_load_dwordx8", "l=li", s_buffer_load<8>, kRowMemory},
    {"s_buffer_load_dwordx16", "l=li", s_buffer_load<16>, kRowMemory},
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
