// The few HIP keywords the kernels use; there is no HIP header to include (-nogpuinc).
#pragma once

#if __clang_major__ < 20 && !defined(__NVPTX__)
#include "common/old_compiler.hip.h"
#endif

#define FLYDSL_DEVICE __attribute__((device, always_inline)) inline
// Of a lambda that reads kernel arguments: without optimisation it would be a function, and only a kernel has them.
#define FLYDSL_INLINED __attribute__((always_inline))
#define FLYDSL_SHARED __attribute__((shared))
// A kernel of exactly `work_items` a work-group that leaves room for `waves` waves on a SIMD, which
// caps its registers at 512 / waves. (A raw launch_bounds attribute is ignored without a word.) On an NVIDIA GPU,
// whose multiprocessor has 65,536 registers, so many work-groups fit that they come to 256 threads a wave, at most 1,536.
#if defined(__NVPTX__)
#define FLYDSL_KERNEL(work_items, waves) \
  __attribute__((global,                 \
                 launch_bounds(work_items, ((waves) < 6 ? (waves)*256 : 1536) / (work_items))))
#else
#define FLYDSL_KERNEL(work_items, waves)                                      \
  __attribute__((global, amdgpu_flat_work_group_size(work_items, work_items), \
                 amdgpu_waves_per_eu(waves, waves)))
#endif
// Where code is laid out: the likely side falls through.
#define FLYDSL_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define FLYDSL_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
