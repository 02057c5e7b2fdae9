// A kernel launch as work for a stream.
#pragma once

#include <cstddef>
#include <memory>

#include "emulator/engine/dispatch.h"
#include "emulator/hip/module.h"
#include "emulator/hip/stream.h"

namespace flydsl::emu::hip {

struct LaunchRecord;

struct LaunchRequest {
  Dispatch dispatch;  // without kernarg
  void *const *parameters = nullptr;
  void *const *extra = nullptr;
  bool cooperative = false;
};

// Checks what a device checks, copies the arguments, and makes the work. `record` may be null.
hipError_t make_launch(const std::shared_ptr<Function> &function, const LaunchRequest &request,
                       Device &device, std::shared_ptr<LaunchRecord> record, Work *work);
// The same, into a stream. `function` is a hipFunction_t or the host-side stub of a kernel.
hipError_t launch(const void *function, const LaunchRequest &request, hipStream_t stream);

LaunchRequest launch_request(const dim3 &grid, const dim3 &block, size_t dynamic_lds_bytes,
                             void *const *parameters, void *const *extra);

}  // namespace flydsl::emu::hip
