// The four functions of AMD's device library that HIP 5.2's headers call for threadIdx, blockIdx,
// blockDim and __syncthreads. Debian's library is for clang 15 and does not know gfx950.
#pragma once

#if defined(__HIP_DEVICE_COMPILE__)
#define FLYDSL_DEVICE extern "C" __attribute__((device))

FLYDSL_DEVICE inline unsigned long __ockl_get_local_id(unsigned axis) {
  return axis == 0   ? __builtin_amdgcn_workitem_id_x()
         : axis == 1 ? __builtin_amdgcn_workitem_id_y()
                     : __builtin_amdgcn_workitem_id_z();
}
FLYDSL_DEVICE inline unsigned long __ockl_get_group_id(unsigned axis) {
  return axis == 0   ? __builtin_amdgcn_workgroup_id_x()
         : axis == 1 ? __builtin_amdgcn_workgroup_id_y()
                     : __builtin_amdgcn_workgroup_id_z();
}
FLYDSL_DEVICE inline unsigned long __ockl_get_local_size(unsigned axis) {
  return axis == 0   ? __builtin_amdgcn_workgroup_size_x()
         : axis == 1 ? __builtin_amdgcn_workgroup_size_y()
                     : __builtin_amdgcn_workgroup_size_z();
}
FLYDSL_DEVICE inline void __atomic_work_item_fence(unsigned, unsigned, unsigned) {
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
}
#undef FLYDSL_DEVICE
#endif
