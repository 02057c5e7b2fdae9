// Threads, waves and work-groups on any architecture: the one place where kernels that are not written for one
// instruction set learn the wave size. (`lanes.hip.h` is for those that are made for waves of 64.)
#pragma once

#include "common/vectors.hip.h"

namespace flydsl::kernels {

#if defined(__NVPTX__)

constexpr u32 kWaveSize = 32;

FLYDSL_DEVICE u32 thread_index() {
  return __nvvm_read_ptx_sreg_tid_x();
}
FLYDSL_DEVICE u32 group_index() {
  return __nvvm_read_ptx_sreg_ctaid_x();
}
FLYDSL_DEVICE u32 lane_xor_bits(u32 value, u32 mask) {
  return __nvvm_shfl_sync_bfly_i32(~0u, value, mask, kWaveSize - 1);
}
// Of a value that all lanes share.
FLYDSL_DEVICE u32 wave_uniform(u32 value) {
  return value;
}
// The value of lane `from`.
FLYDSL_DEVICE u32 lane_bits(u32 value, u32 from) {
  return __nvvm_shfl_sync_idx_i32(~0u, value, from, kWaveSize - 1);
}
// The same, known to be one value, where `from` is.
FLYDSL_DEVICE u32 uniform_lane_bits(u32 value, u32 from) {
  return lane_bits(value, from);
}
// Bit l is lane l's predicate.
FLYDSL_DEVICE u64 lanes_where(bool predicate) {
  return __nvvm_vote_ballot_sync(~0u, predicate);
}
FLYDSL_DEVICE u32 lane_index() {
  return __nvvm_read_ptx_sreg_laneid();
}
// How many of these lanes come before this one.
FLYDSL_DEVICE u32 lanes_before(u64 lanes) {
  return static_cast<u32>(__builtin_popcount(static_cast<u32>(lanes) & ((1u << lane_index()) - 1)));
}
// LDS accesses of the wave before it are done before any after it starts.
FLYDSL_DEVICE void wave_barrier() {
  __nvvm_bar_warp_sync(~0u);
}
FLYDSL_DEVICE void group_barrier() {
  __syncthreads();
}
FLYDSL_DEVICE void group_barrier_of_memory() {
  __syncthreads();
}

#else

#if defined(__GFX9__)
constexpr u32 kWaveSize = 64;
#else
constexpr u32 kWaveSize = 32;  // RDNA and gfx1250
#endif

FLYDSL_DEVICE u32 thread_index() {
  return __builtin_amdgcn_workitem_id_x();
}
FLYDSL_DEVICE u32 group_index() {
  return __builtin_amdgcn_workgroup_id_x();
}
// The value of lane l ^ mask, mask a constant below the wave size once loops are unrolled.
FLYDSL_DEVICE u32 lane_xor_bits(u32 value, u32 mask) {
  u32 lane = __builtin_amdgcn_mbcnt_lo(~0u, 0);
  if constexpr (kWaveSize == 64) lane = __builtin_amdgcn_mbcnt_hi(~0u, lane);
  return __builtin_amdgcn_ds_bpermute((lane ^ mask) * 4, value);
}
FLYDSL_DEVICE u32 wave_uniform(u32 value) {
  return __builtin_amdgcn_readfirstlane(value);
}
FLYDSL_DEVICE u32 lane_bits(u32 value, u32 from) {
  return __builtin_amdgcn_ds_bpermute(from * 4, value);
}
FLYDSL_DEVICE u32 uniform_lane_bits(u32 value, u32 from) {
  return __builtin_amdgcn_readlane(value, from);
}
FLYDSL_DEVICE u64 lanes_where(bool predicate) {
  if constexpr (kWaveSize == 64) return __builtin_amdgcn_ballot_w64(predicate);
  return __builtin_amdgcn_ballot_w32(predicate);
}
FLYDSL_DEVICE u32 lanes_before(u64 lanes) {
  const u32 low = __builtin_amdgcn_mbcnt_lo(static_cast<u32>(lanes), 0);
  if constexpr (kWaveSize == 32) return low;
  return __builtin_amdgcn_mbcnt_hi(static_cast<u32>(lanes >> 32), low);
}
FLYDSL_DEVICE u32 lane_index() {
  return lanes_before(~u64{0});
}
// A wave's LDS accesses are done in their order: only the compiler has to be kept from changing it.
FLYDSL_DEVICE void wave_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront", "local");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront", "local");
}
// The waits are spelled out: clang 22 loses those of a fence at the head of a loop whose end writes LDS (the emulator's check
// of races finds it).
FLYDSL_DEVICE void wait_for_lds() {
#if defined(__GFX12__)
  asm volatile("s_wait_dscnt 0x0" ::: "memory");
#else
  asm volatile("s_waitcnt lgkmcnt(0)" ::: "memory");
#endif
}
FLYDSL_DEVICE void wait_for_memory() {
#if defined(__GFX12__)
  asm volatile("s_wait_loadcnt 0x0\n\ts_wait_storecnt 0x0" ::: "memory");
#elif defined(__GFX9__)
  asm volatile("s_waitcnt vmcnt(0)" ::: "memory");
#else
  asm volatile("s_waitcnt vmcnt(0)\n\ts_waitcnt_vscnt null, 0x0" ::: "memory");
#endif
}

// All LDS accesses of the work-group before it are done before any after it starts.
FLYDSL_DEVICE void group_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup", "local");
  wait_for_lds();
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup", "local");
}
// And all accesses to global memory.
FLYDSL_DEVICE void group_barrier_of_memory() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  wait_for_lds();
  wait_for_memory();
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

#endif

FLYDSL_DEVICE u32 count_lanes(u64 lanes) {
  if constexpr (kWaveSize == 32)
    return static_cast<u32>(__builtin_popcount(static_cast<u32>(lanes)));
  return static_cast<u32>(__builtin_popcountll(lanes));
}

// Instructions are not moved across it, to keep what is in registers small.
FLYDSL_DEVICE void schedule_fence() {
#if defined(__AMDGCN__)
  __builtin_amdgcn_sched_barrier(0);
#endif
}
// Nor are memory accesses by any part of the compiler.
FLYDSL_DEVICE void compiler_fence() {
  asm volatile("" ::: "memory");
  schedule_fence();
}

// Nor by the assembler of PTX, which looks through that; `lanes` are those that come here.
FLYDSL_DEVICE void access_fence(u64 lanes) {
#if defined(__NVPTX__)
  __nvvm_bar_warp_sync(static_cast<u32>(lanes));
#else
  static_cast<void>(lanes);
#endif
  compiler_fence();
}

// The same value, of which the compiler knows nothing.
FLYDSL_DEVICE u32 opaque(u32 value) {
#if defined(__NVPTX__)
  asm volatile("" : "+r"(value));
#else
  asm volatile("" : "+v"(value));
#endif
  return value;
}
FLYDSL_DEVICE float opaque(float value) {
  return bits_as<float>(opaque(bits_as<u32>(value)));
}

}  // namespace flydsl::kernels
