// What hipRTC's built-in header gives programs, as far as this one does: HIP's keywords and indices.
// Written to be compiled by clang for the device.
#pragma once

namespace flydsl::emu::hip {

constexpr char kHiprtcKeywords[] = R"(
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __constant__ __attribute__((constant))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(threads, ...) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define __syncthreads()                                  \
  (__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"), \
   __builtin_amdgcn_s_barrier(),                          \
   __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"))
struct __flydsl_index {
  unsigned x, y, z;
};
#define threadIdx                                                                  \
  (__flydsl_index{__builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(), \
                  __builtin_amdgcn_workitem_id_z()})
#define blockIdx                                                                     \
  (__flydsl_index{__builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(), \
                  __builtin_amdgcn_workgroup_id_z()})
#define blockDim                                                                         \
  (__flydsl_index{__builtin_amdgcn_workgroup_size_x(), __builtin_amdgcn_workgroup_size_y(), \
                  __builtin_amdgcn_workgroup_size_z()})
#define gridDim                                                                    \
  (__flydsl_index{__builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x(), \
                  __builtin_amdgcn_grid_size_y() / __builtin_amdgcn_workgroup_size_y(), \
                  __builtin_amdgcn_grid_size_z() / __builtin_amdgcn_workgroup_size_z()})
template <typename T>
__device__ inline T atomicAdd(T *address, T value) {
  return __hip_atomic_fetch_add(address, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
)";

}  // namespace flydsl::emu::hip
