// What graph nodes do, made from HIP's parameter structures: for nodes added by hand and for new
// parameters of existing ones. Each checks as the call outside of a graph does.
#pragma once

#include "emulator/hip/hip_abi.h"
#include "emulator/hip/stream.h"

namespace flydsl::emu::hip {

hipError_t make_kernel_work(const hipKernelNodeParams *parameters, Work *work);
hipError_t make_fill_work(const hipMemsetParams *parameters, Work *work);
hipError_t make_copy_work(void *to, const void *from, size_t bytes, hipMemcpyKind kind, Work *work);
hipError_t make_copy_work(const hipMemcpy3DParms *parameters, Work *work);
hipError_t make_host_work(const hipHostNodeParams *parameters, Work *work);

}  // namespace flydsl::emu::hip
