// LDS: reads, writes, copies from global memory, and the waits around barriers.
#pragma once

#include "common/isa.hip.h"
#include "common/vectors.hip.h"

namespace flydsl::kernels {

FLYDSL_DEVICE u32x4 read_b128(lds_ptr<const char> from) {
  return *(lds_ptr<const u32x4>)from;
}

FLYDSL_DEVICE void write_b128(lds_ptr<char> to, u32x4 value) {
  *(lds_ptr<u32x4>)to = value;
}

// Four 16-bit elements.
FLYDSL_DEVICE u32x2 read_elements(lds_ptr<const char> e0, lds_ptr<const char> e1,
                                  lds_ptr<const char> e2, lds_ptr<const char> e3) {
  const auto pair = [](lds_ptr<const char> low, lds_ptr<const char> high) FLYDSL_INLINED {
    return *(lds_ptr<const u16>)low | static_cast<u32>(*(lds_ptr<const u16>)high) << 16;
  };
  return u32x2{pair(e0, e1), pair(e2, e3)};
}

#if FLYDSL_GFX950
// ds_read_b64_tr_b16: each lane names 8 bytes. Inside 16 lanes, lane l, element n receives element
// l % 4 of what lane 4 n + (l / 4) % 4 named: a 4 x 16 tile comes out transposed.
FLYDSL_DEVICE u32x2 read_transposed_b64(lds_ptr<const char> from) {
  using i16x4 = vec<short, 4>;
  return bits_as<u32x2>(__builtin_amdgcn_ds_read_tr16_b64_v4i16((lds_ptr<i16x4>)from));
}

// ds_read_b64_tr_b8: the same with bytes. Element n is byte l % 8 of what lane 2 n + (l / 8) % 2 named: an
// 8 x 16 tile comes out transposed.
FLYDSL_DEVICE u32x2 read_transposed_bytes_b64(lds_ptr<const char> from) {
  using i32x2 = vec<int, 2>;
  return bits_as<u32x2>(__builtin_amdgcn_ds_read_tr8_b64_v2i32((lds_ptr<i32x2>)from));
}
#endif

// A column of 4 elements of a 4 x 16 tile of 16-bit elements whose rows are `pitch` bytes apart: each 16 lanes read a tile, lane l
// column l % 16. Lanes name tile + column_place<pitch>(lane) and an immediate; on gfx950 that is a transposed read, else four.
template <int pitch>
FLYDSL_DEVICE u32 column_place(u32 lane) {
  return kGfx950 ? lane % 16 / 4 * pitch + lane % 4 * 8 : lane % 16 * 2;
}
template <int pitch>
FLYDSL_DEVICE u32x2 read_column(lds_ptr<const char> from) {
#if FLYDSL_GFX950
  return read_transposed_b64(from);
#else
  return read_elements(from, from + pitch, from + 2 * pitch, from + 3 * pitch);
#endif
}

// 16 bytes a lane from global memory to LDS without passing registers. `to` is the same in all
// lanes; lane l lands at to + 16 l. Both must be 16-byte aligned. Counts as a memory load (vmcnt).
// `offset` bytes are added on both sides. Before gfx950 through registers: the lane waits for its
// load before it writes, so that what is to be fetched ahead is better held in registers.
template <int offset = 0>
FLYDSL_DEVICE void copy_b128(lds_ptr<char> to, global_ptr<const char> from) {
#if FLYDSL_GFX950
  __builtin_amdgcn_global_load_lds((global_ptr<void>)from, (lds_ptr<void>)to, 16, offset, 0);
#else
  const u32 lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
  write_b128(to + (offset + 16 * lane), *(global_ptr<const u32x4>)(from + offset));
#endif
}

// The same with 4 bytes a lane, which land at to + 4 l.
FLYDSL_DEVICE void copy_b32(lds_ptr<char> to, global_ptr<const char> from) {
  __builtin_amdgcn_global_load_lds((global_ptr<void>)from, (lds_ptr<void>)to, 4, 0, 0);
}

// Waits until this wave's memory loads, copies to LDS among them, have landed. The encoding is
// vmcnt(0), other counters at their maximum (gfx9: vmcnt in bits 3:0 and 15:14). Copies through registers end in
// LDS writes, for which the barrier waits.
FLYDSL_DEVICE void wait_for_copies() {
  __builtin_amdgcn_s_waitcnt(0x0f70);
}

// All LDS accesses of the work-group's waves before it are done before any after it starts. Copies
// to LDS are not among them: wait_for_copies first.
FLYDSL_DEVICE void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup", "local");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup", "local");
}

}  // namespace flydsl::kernels
