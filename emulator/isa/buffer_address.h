// Addresses and range checks of MUBUF instructions.
#pragma once

#include "emulator/isa/address.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

// Buffer descriptor (CDNA3 ISA, "Buffer resource descriptor"): base 47:0, stride 61:48, swizzle 63,
// num_records in word 2; word 3: index stride 22:21, add the lane to the index 23. With the latter,
// the data format field 18:15 holds four more bits of stride for instructions without a format.
struct Buffer {
  uint64_t base;
  uint32_t stride, records, index_stride, soffset, imm;
  bool swizzle, add_lane, idxen, offen;
  bool scratch;                    // the private segment of the wave
  const uint32_t *index, *offset;  // lanes; null without idxen and offen
};

// Operands from n: address (or off), descriptor, scalar offset.
inline Buffer buffer_of(Wave &w, const Op &op, int n, bool format = false) {
  const uint32_t *d = w.s + op.o[n + 1].index;
  const uint32_t *v = op.o[n].kind == Kind::kVector ? vrow(w, op, n) : nullptr;
  Buffer b;
  b.base = d[0] | uint64_t(d[1] & 0xffff) << 32;
  b.stride = d[1] >> 16 & 0x3fff;
  b.records = d[2];
  b.swizzle = d[1] >> 31;
  b.index_stride = 8u << (d[3] >> 21 & 3);
  b.add_lane = d[3] >> 23 & 1;
  if (b.add_lane && !format) b.stride |= (d[3] >> 15 & 15) << 14;
  b.scratch = b.swizzle && b.add_lane && b.base == reinterpret_cast<uint64_t>(w.scratch);
  b.soffset = op.o[n + 2].kind == Kind::kOff ? 0 : scalar32(w, op, n + 2);
  b.imm = uint32_t(op.imm);
  b.idxen = op.flags & kIdxen;
  b.offen = op.flags & kOffen;
  b.index = b.idxen ? v : nullptr;
  b.offset = b.offen ? v + (b.idxen ? 64 : 0) : nullptr;
  return b;
}

// Swizzled buffers keep element `offset / 4` of index_stride records side by side (CDNA3 ISA,
// "Swizzled buffer addressing"). Elements are 4 bytes wide since gfx9 (LLVM,
// getScratchRsrcWords23).
inline uint64_t swizzled(const Buffer &b, uint32_t index, uint64_t offset) {
  const uint64_t group = index / b.index_stride, in_group = index % b.index_stride;
  return (group * b.stride + offset / 4 * 4) * b.index_stride + in_group * 4 + offset % 4;
}

// For each enabled lane its address `more` bytes into its data, and how many of `words` leading
// words of `unit` bytes are inside the buffer.
//
// num_records counts bytes when stride is 0 or the instruction has no idxen, and records otherwise
// (gfx9 VMEM; Mesa says so in its buffer descriptors). Bytes are checked word by word against the
// whole offset; records by the index alone, because unswizzled accesses may be wider than the
// stride: AITER's backward kernels read 16 bytes at stride 4. A swizzled record also ends at its
// stride. Lanes that are added without idxen make a private buffer, which is not checked: its
// num_records means nothing (CDNA4 ISA, "Range Checking").
//
// The private segment of gfx90a lies lane after lane here, as FLAT and SCRATCH find it; the scalar
// offset, which hardware adds to the address of 64 interleaved lanes, counts 64 bytes for one of a
// lane (LLVM AMDGPU User Guide, "Private segment buffer").
//
// False after a fault.
inline bool locate(Wave &w, const Op &op, const Buffer &b, uint32_t more, uint32_t unit,
                   uint32_t words, uint64_t *address, uint32_t *inside) {
  FOR_EACH_LANE(i, exec_of(w)) {
    const uint32_t index = (b.index ? b.index[i] : 0) + (b.add_lane ? uint32_t(i) : 0);
    const uint64_t offset = uint64_t(b.offset ? b.offset[i] : 0) + b.imm + more;
    if (b.scratch) {
      const uint64_t at = offset + b.soffset / 64;
      if (at + uint64_t(unit) * words > w.scratch_bytes) {
        fault_value(w, op, i, "accesses scratch beyond the kernel's private segment, at offset",
                    at);
        return false;
      }
      address[i] = b.base + uint64_t(i) * w.scratch_bytes + at;
      inside[i] = words;
      continue;
    }
    const uint64_t place =
        b.swizzle ? swizzled(b, index, offset) : offset + uint64_t(index) * b.stride;
    address[i] = b.base + b.soffset + place;
    if (b.add_lane && !b.idxen) {
      inside[i] = words;
    } else if (b.stride == 0 || !b.idxen) {
      const uint64_t limit = b.records > b.soffset ? b.records - b.soffset : 0;
      inside[i] = 0;
      while (inside[i] < words && place + uint64_t(unit) * (inside[i] + 1) <= limit) ++inside[i];
    } else {
      const bool out = index >= b.records || (b.swizzle && offset >= b.stride);
      inside[i] = out ? 0 : words;
    }
  }
  return true;
}

// locate, then checks against the live regions: lanes by the number of words they may touch, each
// group with its own size.
inline bool locate_checked(Wave &w, const Op &op, const Buffer &b, uint32_t more, uint32_t unit,
                           uint32_t words, uint64_t *a, uint32_t *inside, bool write) {
  if (!locate(w, op, b, more, unit, words, a, inside)) return false;
  if (b.scratch) return true;
  for (uint32_t k = 1; k <= words; ++k) {
    uint64_t mask = 0;
    FOR_EACH_LANE(i, exec_of(w)) mask |= uint64_t(inside[i] == k) << i;
    if (mask && !(write ? writable(w, op, a, mask, unit * k) : readable(w, op, a, mask, unit * k)))
      return false;
  }
  return true;
}

}  // namespace
}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
