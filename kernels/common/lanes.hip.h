// Values across the lanes of a wave: 64 of them, 32 on what is not gfx9. (Without `halves`: those are of 64.)
#pragma once

#include "common/isa.hip.h"
#include "common/vectors.hip.h"

namespace flydsl::kernels {

#if defined(__GFX9__)
constexpr u32 kWaveLanes = 64;
#else
constexpr u32 kWaveLanes = 32;
#endif

FLYDSL_DEVICE u32 uniform(u32 value) {
  return __builtin_amdgcn_readfirstlane(value);
}
FLYDSL_DEVICE u64 uniform(u64 value) {
  return uniform(static_cast<u32>(value)) | static_cast<u64>(uniform(static_cast<u32>(value >> 32)))
                                                << 32;
}

// The same value; what is computed from the result is not moved to before this point (out of a loop,
// where it would have to be kept in registers).
FLYDSL_DEVICE u32 computed_here(u32 value) {
  asm volatile("" : "+v"(value));
  return value;
}

// The same in a scalar register, of a value that all lanes share.
FLYDSL_DEVICE u32 uniform_computed_here(u32 value) {
  asm volatile("" : "+s"(value));
  return value;
}

// The lane's number, computed anew where it is asked for: two instructions, and no register to keep.
FLYDSL_DEVICE u32 lane_number_here() {
  const u32 all = uniform_computed_here(~0u);
#if defined(__GFX9__)
  return __builtin_amdgcn_mbcnt_hi(all, __builtin_amdgcn_mbcnt_lo(all, 0));
#else
  return __builtin_amdgcn_mbcnt_lo(all, 0);
#endif
}

FLYDSL_DEVICE u64 ballot(bool predicate) {
#if defined(__GFX9__)
  return __builtin_amdgcn_ballot_w64(predicate);
#else
  return __builtin_amdgcn_ballot_w32(predicate);
#endif
}

FLYDSL_DEVICE float broadcast(float value, u32 lane) {
  return bits_as<float>(__builtin_amdgcn_readlane(bits_as<u32>(value), lane));
}

// Exchanges lanes 32-63 of `a` with lanes 0-31 of `b` (v_permlane32_swap_b32; before gfx950 each lane gives its part to lane ^ 32).
FLYDSL_DEVICE u32x2 swap_halves(u32 a, u32 b) {
#if FLYDSL_GFX950
  return bits_as<u32x2>(__builtin_amdgcn_permlane32_swap(a, b, false, false));
#else
  const u32 lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
  const bool high = lane >= 32;
  const u32 other = __builtin_amdgcn_ds_bpermute((lane ^ 32) * 4, high ? a : b);
  return high ? u32x2{other, b} : u32x2{a, other};
#endif
}

// The larger, or the sum, of lanes l and l ^ 32, in both. A NaN loses against a number in the
// maximum.
FLYDSL_DEVICE float max_of_halves(float value) {
  const u32x2 both = swap_halves(bits_as<u32>(value), bits_as<u32>(value));
  return __builtin_fmaxf(bits_as<float>(both[0]), bits_as<float>(both[1]));
}
FLYDSL_DEVICE float sum_of_halves(float value) {
  const u32x2 both = swap_halves(bits_as<u32>(value), bits_as<u32>(value));
  return bits_as<float>(both[0]) + bits_as<float>(both[1]);
}

FLYDSL_DEVICE float lane_xor(float value, u32 lane, u32 mask) {
  return bits_as<float>(__builtin_amdgcn_ds_bpermute((lane ^ mask) * 4, bits_as<u32>(value)));
}
// Over all lanes, in every lane.
FLYDSL_DEVICE float max_of_wave(float value, u32 lane) {
  for (u32 mask = 1; mask < kWaveLanes; mask *= 2)
    value = __builtin_fmaxf(value, lane_xor(value, lane, mask));
  return value;
}
FLYDSL_DEVICE float sum_of_wave(float value, u32 lane) {
  for (u32 mask = 1; mask < kWaveLanes; mask *= 2) value += lane_xor(value, lane, mask);
  return value;
}

}  // namespace flydsl::kernels
