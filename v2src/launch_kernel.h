// The launch of a loaded kernel, which both ways of a call end with.
#pragma once

#include "src/log/log.h"
#include "v2src/handle.h"

namespace flydsl {

// What there is to say of a launch: the message of a failure names its kernel.
Status explain_launch(const flydsl_aot_handle *handle, uint32_t entry,
                      const device::LaunchShape &shape, Status status);

inline Status launch_kernel(const flydsl_aot_handle *handle, uint32_t entry,
                            device::HipFunction function, const device::LaunchShape &shape,
                            void *stream, void *kernarg, size_t kernarg_bytes) {
  Status status = handle->runtime->launch(function, shape, stream, kernarg, kernarg_bytes);
  if (status.ok() && !log_enabled(LogLevel::Debug)) return status;
  return explain_launch(handle, entry, shape, std::move(status));
}

}  // namespace flydsl
