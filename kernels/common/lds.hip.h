// LDS: reads, writes, copies from global memory, and the waits around barriers.
#pragma once

#include "common/vectors.hip.h"

namespace flydsl::kernels {

FLYDSL_DEVICE u32x4 read_b128(lds_ptr<const char> from) {
  return *(lds_ptr<const u32x4>)from;
}

FLYDSL_DEVICE void write_b128(lds_ptr<char> to, u32x4 value) {
  *(lds_ptr<u32x4>)to = value;
}

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

// 16 bytes a lane from global memory to LDS without passing registers. `to` is the same in all
// lanes; lane l lands at to + 16 l. Both must be 16-byte aligned. Counts as a memory load (vmcnt).
// `offset` bytes are added on both sides.
template <int offset = 0>
FLYDSL_DEVICE void copy_b128(lds_ptr<char> to, global_ptr<const char> from) {
  __builtin_amdgcn_global_load_lds((global_ptr<void>)from, (lds_ptr<void>)to, 16, offset, 0);
}

// The same with 4 bytes a lane, which land at to + 4 l.
FLYDSL_DEVICE void copy_b32(lds_ptr<char> to, global_ptr<const char> from) {
  __builtin_amdgcn_global_load_lds((global_ptr<void>)from, (lds_ptr<void>)to, 4, 0, 0);
}

// Waits until this wave's memory loads, copies to LDS among them, have landed. The encoding is
// vmcnt(0), other counters at their maximum (gfx9: vmcnt in bits 3:0 and 15:14).
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
