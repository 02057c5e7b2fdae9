// Addresses of vector memory instructions and their checks against the live regions.
#pragma once

#include "emulator/isa/lanes.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

// Where a copy to LDS begins: M0[17:2] * 4 (CDNA4 ISA, "Memory Buffer Load to LDS" and "Flat Memory
// Instructions"; M0[15:2] where LDS has 64 KiB), plus the instruction's offset.
inline uint64_t copy_destination(const Wave &w, const Op &op) {
  const uint32_t field = op.architecture == Architecture::kGfx950 ? 0x3fffc : 0xfffc;
  return uint64_t(w.s[kM0] & field) + uint64_t(int64_t(op.imm));
}

// Generic (FLAT) addresses whose upper half is an aperture refer to LDS or scratch; where the
// apertures lie is the driver's choice, here 2^48 and 2^49 as amdkfd places them on gfx9.
constexpr uint64_t kSharedAperture = 0x0001000000000000ull,
                   kPrivateAperture = 0x0002000000000000ull;

inline const uint32_t *vrow(Wave &w, const Op &op, int n) {
  return w.base[0] + op.o[n].index * 64;
}

// Addresses of a GLOBAL or FLAT instruction whose address operand is n; a scalar base, if any, is
// operand n_base.
inline void global_addresses(Wave &w, const Op &op, int n, int n_base, uint64_t *out) {
  const uint64_t offset = uint64_t(int64_t(op.imm));
  const uint32_t *a = vrow(w, op, n);
  if (n_base >= 0 && op.o[n_base].kind != Kind::kOff) {
    const uint64_t base = scalar64(w, op, n_base) + offset;
    LANES out[i] = base + a[i];
  } else {
    LANES out[i] = wide(a, i) + offset;
  }
}

// All enabled lanes inside the region used last?
inline bool in_region(const uint64_t *a, uint64_t mask, uint64_t begin, uint64_t end,
                      uint32_t bytes) {
  if (end - begin < bytes) return false;
  const uint64_t span = end - begin - bytes;
  if (mask == ~uint64_t(0)) {
    uint64_t bad = 0;
    LANES bad |= uint64_t(a[i] - begin > span);
    return bad == 0;
  }
  bool good = true;
  FOR_EACH_LANE(i, mask) good &= a[i] - begin <= span;
  return good;
}
inline bool readable(Wave &w, const Op &op, const uint64_t *a, uint64_t mask, uint32_t bytes) {
  if (__builtin_expect(in_region(a, mask, w.region_begin, w.region_end, bytes), 1)) return true;
  return check_lanes(w, op, a, mask, bytes, false);
}
inline bool writable(Wave &w, const Op &op, const uint64_t *a, uint64_t mask, uint32_t bytes) {
  if (__builtin_expect(in_region(a, mask, w.wregion_begin, w.wregion_end, bytes), 1)) return true;
  return check_lanes(w, op, a, mask, bytes, true);
}

// Reads kWords words a lane to w.out.
template <int kWords>
inline void load_words(Wave &w, const uint64_t *a, uint64_t mask) {
  FOR_EACH_LANE(i, mask) {
    uint32_t t[kWords];
    memcpy(t, reinterpret_cast<const void *>(a[i]), sizeof t);
    for (int k = 0; k < kWords; ++k) w.out[64 * k + i] = t[k];
  }
}
template <int kWords>
inline void store_words(const uint32_t *data, const uint64_t *a, uint64_t mask) {
  FOR_EACH_LANE(i, mask) {
    uint32_t t[kWords];
    for (int k = 0; k < kWords; ++k) t[k] = data[64 * k + i];
    memcpy(reinterpret_cast<void *>(a[i]), t, sizeof t);
  }
}
// Sub-word loads; kShift -1: whole register, 0 / 16: that half, the other kept.
template <class T, int kShift>
inline void load_small(uint32_t *d, const uint64_t *a, uint64_t mask) {
  FOR_EACH_LANE(i, mask) {
    T t;
    memcpy(&t, reinterpret_cast<const void *>(a[i]), sizeof t);
    const uint32_t x = uint32_t(int32_t(t));
    d[i] = kShift < 0 ? x
           : kShift   ? (d[i] & 0xffff) | x << 16
                      : (d[i] & 0xffff0000u) | (x & 0xffff);
  }
}
template <class T, int kShift>
inline void store_small(const uint32_t *d, const uint64_t *a, uint64_t mask) {
  FOR_EACH_LANE(i, mask) {
    const T t = T(d[i] >> kShift);
    memcpy(reinterpret_cast<void *>(a[i]), &t, sizeof t);
  }
}
inline void write_rows(Wave &w, uint32_t *d, int rows) {
  for (int r = 0; r < rows; ++r) store_masked(d + 64 * r, w.out + 64 * r, exec_of(w));
}

// Turns LDS and scratch aperture addresses of FLAT instructions into host addresses. False after a
// fault.
inline bool resolve_flat(Wave &w, const Op &op, uint64_t *a, uint64_t mask, uint32_t bytes,
                         uint64_t *global_mask) {
  *global_mask = mask;
  FOR_EACH_LANE(i, mask) {
    const uint64_t aperture = a[i] >> 32 << 32, offset = a[i] & 0xffffffff;
    if (aperture == kSharedAperture) {
      if (offset + bytes > w.lds_bytes) {
        fault_lds(w, op, i, offset, bytes);
        return false;
      }
      a[i] = reinterpret_cast<uint64_t>(w.lds) + offset;
      *global_mask &= ~(uint64_t(1) << i);
    } else if (aperture == kPrivateAperture) {
      if (offset + bytes > w.scratch_bytes) {
        fault_value(w, op, i, "accesses scratch beyond the kernel's private segment, at offset",
                    offset);
        return false;
      }
      a[i] = reinterpret_cast<uint64_t>(w.scratch) + uint64_t(i) * w.scratch_bytes + offset;
      *global_mask &= ~(uint64_t(1) << i);
    }
  }
  return true;
}

}  // namespace
}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
