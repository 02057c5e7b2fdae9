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

#if !__has_builtin(__builtin_amdgcn_global_load_lds)
#define FLYDSL_NO_COPIES_TO_LDS 1
#else
#define FLYDSL_NO_COPIES_TO_LDS 0
#endif

// bf16 is 16 bits, then, that kernels widen and round themselves.
#define FLYDSL_NO_BF16 (__clang_major__ < 18)
