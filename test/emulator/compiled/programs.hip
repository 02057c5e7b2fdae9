// The programs as kernels, and kernels whose waves work together.
#include "programs.h"

#define KERNEL extern "C" __attribute__((global))
using programs::i32;
using programs::u32;
using programs::u64;

static __attribute__((device)) u32 local_id() {
  return __builtin_amdgcn_workitem_id_x();
}
static __attribute__((device)) u32 global_id() {
  return __builtin_amdgcn_workgroup_id_x() * 128 + local_id();
}

#define AS_KERNEL(name)                                 \
  KERNEL void name(const u32 *in, u64 *out) {           \
    const u32 id = global_id();                         \
    out[id] = programs::name(id, in + id * 8);          \
  }
EACH_PROGRAM(AS_KERNEL)

// Results that do not depend on the order of the lanes.
KERNEL void atomics(const u32 *in, u64 *out) {
  const u32 id = global_id(), x = in[id * 8];
  __hip_atomic_fetch_add(out + 0, u64(x), __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  __hip_atomic_fetch_xor(out + 1, u64(x) << 13, __ATOMIC_SEQ_CST, __HIP_MEMORY_SCOPE_AGENT);
  __hip_atomic_fetch_max((u32 *)(out + 2), x, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);
  __hip_atomic_fetch_min((i32 *)(out + 3), i32(x), __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
  __hip_atomic_fetch_add((float *)(out + 4), float(x & 255), __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  __hip_atomic_fetch_add((double *)(out + 5), double(x & 1023), __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  u64 seen = __hip_atomic_load(out + 6, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  while (!__hip_atomic_compare_exchange_strong(out + 6, &seen, seen + (x & 7), __ATOMIC_RELAXED,
                                               __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)) {
  }
  __hip_atomic_fetch_and((u32 *)(out + 7), x | 0xffff0000u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// Sum of a work-group through LDS and barriers, atomics in LDS for a histogram.
KERNEL void together(const u32 *in, u64 *out) {
  __attribute__((shared)) static u64 sums[128];
  __attribute__((shared)) static u32 histogram[16];
  const u32 id = global_id(), local = local_id();
  if (local < 16) histogram[local] = 0;
  sums[local] = in[id * 8];
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  __hip_atomic_fetch_add(&histogram[in[id * 8] & 15], 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  for (u32 step = 64; step; step >>= 1) {
    if (local < step) sums[local] += sums[local + step];
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  }
  out[id] = sums[0] ^ u64(histogram[local & 15]) << 48;
}
