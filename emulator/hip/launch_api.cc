// hipModuleLaunchKernel: checks what a device checks, then runs the kernel.
#include <cstdint>
#include <mutex>
#include <shared_mutex>

#include "emulator/hip/api_call.h"
#include "emulator/hip/kernel_arguments.h"
#include "emulator/hip/launch_report.h"
#include "emulator/hip/module.h"
#include "emulator/hip/stream.h"
#include "emulator/memory/address_space.h"

namespace flydsl::emu::hip {
namespace {

hipError_t check_block(const LoadedKernel &loaded, const uint32_t *block) {
  const char *name = loaded.kernel.name.c_str();
  uint64_t items = 1;
  for (int axis = 0; axis < 3; ++axis) {
    if (block[axis] == 0 || block[axis] > static_cast<uint32_t>(kMaxBlockItems))
      return fail(hipErrorInvalidConfiguration, "%s: block (%u, %u, %u), each must be 1 to %d",
                  name, block[0], block[1], block[2], kMaxBlockItems);
    items *= block[axis];
    const uint32_t required = loaded.metadata.required_block[axis];
    if (required != 0 && block[axis] != required)
      return fail(hipErrorInvalidConfiguration,
                  "%s: block (%u, %u, %u), it was compiled for (%u, %u, %u)", name, block[0],
                  block[1], block[2], loaded.metadata.required_block[0],
                  loaded.metadata.required_block[1], loaded.metadata.required_block[2]);
  }
  if (items > static_cast<uint64_t>(kMaxBlockItems))
    return fail(hipErrorInvalidConfiguration,
                "%s: %llu work-items per block, at most %d are allowed", name,
                static_cast<unsigned long long>(items), kMaxBlockItems);
  // AMD's runtime answers a block over the kernel's launch bounds with this code.
  if (items > loaded.metadata.max_workgroup_size)
    return fail(hipErrorLaunchFailure,
                "%s: %llu work-items per block, it was compiled for at most %u", name,
                static_cast<unsigned long long>(items), loaded.metadata.max_workgroup_size);
  return hipSuccess;
}

hipError_t check_grid(const LoadedKernel &loaded, const uint32_t *grid, const uint32_t *block) {
  const char *name = loaded.kernel.name.c_str();
  const uint32_t most[3] = {kMaxGridX, kMaxGridYZ, kMaxGridYZ};
  for (int axis = 0; axis < 3; ++axis) {
    if (grid[axis] == 0 || grid[axis] > most[axis])
      return fail(hipErrorInvalidConfiguration,
                  "%s: grid (%u, %u, %u), each must be at least 1 and at most (%u, %u, %u)", name,
                  grid[0], grid[1], grid[2], most[0], most[1], most[2]);
    // The dispatch packet counts work-items in 32 bits.
    if (uint64_t{grid[axis]} * block[axis] > UINT32_MAX)
      return fail(hipErrorInvalidConfiguration,
                  "%s: grid %u times block %u on axis %d passes 2^32 - 1 work-items", name,
                  grid[axis], block[axis], axis);
  }
  return hipSuccess;
}

hipError_t check_lds(const LoadedKernel &loaded, uint32_t dynamic_lds_bytes, const Device &device) {
  const uint64_t bytes = uint64_t{loaded.kernel.lds_bytes} + dynamic_lds_bytes;
  if (bytes <= static_cast<uint64_t>(device.model->lds_bytes)) return hipSuccess;
  return fail(hipErrorInvalidValue, "%s: %u static + %u dynamic bytes of LDS, %s has %d",
              loaded.kernel.name.c_str(), loaded.kernel.lds_bytes, dynamic_lds_bytes,
              device.model->arch, device.model->lds_bytes);
}

hipError_t run(const LoadedKernel &loaded, Dispatch dispatch, void *const *parameters,
               void *const *extra, Device &device) {
  KernelArguments arguments(loaded.metadata);
  const hipError_t refused = arguments.set_explicit(parameters, extra);
  if (refused != hipSuccess) return refused;
  arguments.set_hidden(dispatch);
  dispatch.kernarg = arguments.data();

  std::shared_lock<LaunchGate> in_place(launch_gate());
  const auto memory = AddressSpace::instance().snapshot();
  const DispatchResult result = run_dispatch(loaded.kernel, dispatch, *memory);
  report_dispatch(result);
  if (result.ok) return hipSuccess;
  device.faulted = true;
  return fail(hipErrorLaunchFailure, "kernel fault: %s", result.fault.c_str());
}

}  // namespace
}  // namespace flydsl::emu::hip

using namespace flydsl::emu::hip;
using flydsl::emu::LoadedKernel;

FLYDSL_EMU_EXPORT hipError_t hipModuleLaunchKernel(hipFunction_t handle, unsigned grid_x,
                                                   unsigned grid_y, unsigned grid_z,
                                                   unsigned block_x, unsigned block_y,
                                                   unsigned block_z, unsigned dynamic_lds_bytes,
                                                   hipStream_t stream_handle, void **parameters,
                                                   void **extra) {
  return api_call([&] {
    hipError_t error = hipSuccess;
    const std::shared_ptr<Function> function = function_or_fail(handle, &error);
    if (!function) return error;
    const std::shared_ptr<Stream> stream = stream_or_fail(stream_handle, &error);
    if (!stream) return error;

    flydsl::emu::Dispatch dispatch;
    const uint32_t grid[3] = {grid_x, grid_y, grid_z}, block[3] = {block_x, block_y, block_z};
    for (int axis = 0; axis < 3; ++axis) {
      dispatch.grid[axis] = grid[axis];
      dispatch.block[axis] = block[axis];
    }
    dispatch.dynamic_lds_bytes = dynamic_lds_bytes;
    const LoadedKernel &loaded = *function->kernel;
    error = check_block(loaded, dispatch.block);
    if (error == hipSuccess) error = check_grid(loaded, dispatch.grid, dispatch.block);
    if (error == hipSuccess) error = check_lds(loaded, dynamic_lds_bytes, stream->device());
    if (error != hipSuccess) return error;
    return stream->submit(
        [&] { return run(loaded, dispatch, parameters, extra, stream->device()); });
  });
}
