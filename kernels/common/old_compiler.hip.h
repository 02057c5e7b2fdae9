// For compilers before clang 20, as hipRTC of ROCm 5 and 6 has: what these lack of the builtins that architecture-neutral kernels use.
// The kernels of archives never see it. (ROCm 5.2's clang 15 also lacks __bf16 on the device: elements.hip.h, reals.hip.h.)
#pragma once

// An order for LDS alone is a hint of later ones; without it the fence orders global memory as well.
#define __builtin_amdgcn_fence(order, scope, ...) __builtin_amdgcn_fence(order, scope)

#if !__has_builtin(__builtin_amdgcn_ballot_w64)
// 33: the comparison is "not equal". Lanes that are not active give 0.
#define __builtin_amdgcn_ballot_w64(predicate) \
  __builtin_amdgcn_uicmp(static_cast<unsigned>(predicate), 0u, 33)
#define __builtin_amdgcn_ballot_w32(predicate) \
  static_cast<unsigned>(__builtin_amdgcn_uicmp(static_cast<unsigned>(predicate), 0u, 33))
#endif

// The same instructions, with a few more for subnormal numbers.
#if !__has_builtin(__builtin_amdgcn_exp2f)
#define __builtin_amdgcn_exp2f(x) __builtin_exp2f(x)
#define __builtin_amdgcn_logf(x) __builtin_log2f(x)
#endif

// Copies to LDS, of 4 bytes a lane, through registers: a barrier orders their writes.
#if !__has_builtin(__builtin_amdgcn_global_load_lds)
#define __builtin_amdgcn_global_load_lds(from, to, bytes, offset, aux) \
  flydsl::kernels::copy_4_bytes_to_lds(from, to)
namespace flydsl::kernels {
__attribute__((device, always_inline)) inline void copy_4_bytes_to_lds(
    const __attribute__((address_space(1))) void *from,
    __attribute__((address_space(3))) void *to) {
  const unsigned lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
  ((__attribute__((address_space(3))) unsigned *)to)[lane] =
      *(const __attribute__((address_space(1))) unsigned *)from;
}
}  // namespace flydsl::kernels
#endif

// bf16 is 16 bits, then, that kernels widen and round themselves.
#define FLYDSL_NO_BF16 (__clang_major__ < 18)
#if FLYDSL_NO_BF16
namespace flydsl::kernels {
// To nearest even; a NaN stays one.
__attribute__((device, always_inline)) inline unsigned short rounded_bf16(float value) {
  const unsigned bits = __builtin_bit_cast(unsigned, value);
  if (value != value) return static_cast<unsigned short>(bits >> 16 | 0x40);
  return static_cast<unsigned short>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
__attribute__((device, always_inline)) inline unsigned rounded_bf16_pair(float low, float high) {
  return rounded_bf16(low) | static_cast<unsigned>(rounded_bf16(high)) << 16;
}
}  // namespace flydsl::kernels
#endif
