#include "emulator/hip/launch.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <shared_mutex>

#include "emulator/engine/environment.h"
#include "emulator/hip/api_call.h"
#include "emulator/hip/kernel_arguments.h"
#include "emulator/hip/launch_report.h"
#include "emulator/hip/launch_timing.h"
#include "emulator/hip/occupancy.h"
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

// "The grid must not be larger than what runs at once" (HIP, hipLaunchCooperativeKernel).
hipError_t check_cooperative(const LoadedKernel &loaded, const Dispatch &dispatch,
                             const Device &device) {
  const int items = static_cast<int>(dispatch.block[0] * dispatch.block[1] * dispatch.block[2]);
  const uint64_t most =
      uint64_t(groups_per_compute_unit(*device.model, loaded, items, dispatch.dynamic_lds_bytes)) *
      device.compute_units;
  const uint64_t groups = uint64_t{dispatch.grid[0]} * dispatch.grid[1] * dispatch.grid[2];
  if (groups > most)
    return fail(hipErrorCooperativeLaunchTooLarge,
                "%s: %llu work-groups, %s runs at most %llu of them at once",
                loaded.kernel.name.c_str(), static_cast<unsigned long long>(groups),
                device.model->arch, static_cast<unsigned long long>(most));
  return hipSuccess;
}

hipError_t check_timing(const LoadedKernel &loaded, const LaunchRequest &request,
                        const Device &device) {
  const char *name = loaded.kernel.name.c_str();
  if (std::strcmp(device.model->arch, "gfx950") != 0)
    return fail(hipErrorNotSupported, "%s: the timing model knows gfx950; the device is %s", name,
                device.model->arch);
  if (device.compute_units != device.model->compute_units)
    return fail(hipErrorNotSupported,
                "%s: the timing model knows %d compute units; FLYDSL_EMU_COMPUTE_UNITS is %d", name,
                device.model->compute_units, device.compute_units);
  if (request.cooperative)
    return fail(hipErrorNotSupported,
                "%s: the timing model runs work-groups one by one: no cooperative launches", name);
  return hipSuccess;
}

struct Launch {
  std::shared_ptr<Function> function;  // keeps the code loaded
  const Device *device = nullptr;
  std::shared_ptr<KernelArguments> arguments;
  std::shared_ptr<LaunchRecord> record;
  Dispatch dispatch;
  bool cooperative = false;
  TimingRequest timing = {};

  hipError_t run() const {
    // Two cooperative launches at once could take the host threads that the other one waits for.
    static auto *const alone = new std::mutex;
    std::unique_lock<std::mutex> one_cooperative(*alone, std::defer_lock);
    DispatchOptions options;
    options.all_groups_at_once = cooperative;
    if (cooperative) one_cooperative.lock();

    std::shared_lock<LaunchGate> in_place(launch_gate());
    const auto memory = AddressSpace::instance().snapshot();
    DispatchResult result;
    hipError_t modelled = hipSuccess;
    if (timing.mode == TimingMode::kOff) {
      result = run_dispatch(function->kernel->kernel, dispatch, *memory, options);
    } else {
      std::shared_ptr<const TimedLaunch> timed;
      modelled = run_timed(*function->kernel, dispatch, *device, *memory, timing, &result, &timed);
      if (record) record->timing = std::move(timed);
    }
    if (record) record->result = result;
    for (const std::string &warning : result.warnings)
      std::fprintf(stderr, "flydsl_emu: warning: %s\n", warning.c_str());
    if (modelled != hipSuccess) return modelled;
    if (result.ok) return hipSuccess;
    report_fault(result.fault);
    return fail(hipErrorLaunchFailure, "kernel fault: %s", result.fault.c_str());
  }
};

// As HIP_LAUNCH_BLOCKING of AMD's runtime: each launch ends before the call returns.
bool launches_block() {
  const char *text = std::getenv("HIP_LAUNCH_BLOCKING");
  return flag_variable("FLYDSL_EMU_LAUNCH_BLOCKING", false) ||
         (text != nullptr && std::atoi(text) != 0);
}

}  // namespace

LaunchRequest launch_request(const dim3 &grid, const dim3 &block, size_t dynamic_lds_bytes,
                             void *const *parameters, void *const *extra) {
  LaunchRequest request;
  const uint32_t sizes[2][3] = {{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}};
  for (int axis = 0; axis < 3; ++axis) {
    request.dispatch.grid[axis] = sizes[0][axis];
    request.dispatch.block[axis] = sizes[1][axis];
  }
  // What passes 32 bits passes the LDS, too.
  request.dispatch.dynamic_lds_bytes =
      static_cast<uint32_t>(std::min<size_t>(dynamic_lds_bytes, UINT32_MAX));
  request.parameters = parameters;
  request.extra = extra;
  return request;
}

hipError_t make_launch(const std::shared_ptr<Function> &function, const LaunchRequest &request,
                       Device &device, std::shared_ptr<LaunchRecord> record, Work *work) {
  const LoadedKernel &loaded = *function->kernel;
  Launch launch = {function,          &device,          nullptr,
                   std::move(record), request.dispatch, request.cooperative};
  hipError_t error = check_block(loaded, launch.dispatch.block);
  if (error == hipSuccess) error = check_grid(loaded, launch.dispatch.grid, launch.dispatch.block);
  if (error == hipSuccess) error = check_lds(loaded, launch.dispatch.dynamic_lds_bytes, device);
  if (error == hipSuccess && request.cooperative)
    error = check_cooperative(loaded, launch.dispatch, device);
  if (error == hipSuccess) error = timing_request(&launch.timing);
  if (error == hipSuccess && launch.timing.mode != TimingMode::kOff)
    error = check_timing(loaded, request, device);
  if (error != hipSuccess) return error;
  launch.arguments = std::make_shared<KernelArguments>(loaded.metadata);
  error = launch.arguments->set_explicit(request.parameters, request.extra);
  if (error != hipSuccess) return error;
  launch.arguments->set_hidden(launch.dispatch);
  launch.dispatch.kernarg = launch.arguments->data();
  work->type = hipGraphNodeTypeKernel;
  work->run = [launch = std::move(launch)] { return launch.run(); };
  return hipSuccess;
}

hipError_t launch(const void *handle, const LaunchRequest &request, hipStream_t stream_handle) {
  hipError_t error = hipSuccess;
  const std::shared_ptr<Stream> stream = stream_or_fail(stream_handle, &error);
  if (!stream) return error;
  const std::shared_ptr<Function> function = function_or_fail(handle, stream->device(), &error);
  if (!function) return error;
  auto record = std::make_shared<LaunchRecord>();
  Work work;
  error = make_launch(function, request, stream->device(), record, &work);
  if (error != hipSuccess) return error;
  std::shared_ptr<const Completion> completion;
  error = stream->submit(std::move(work), &completion);
  if (error != hipSuccess || !completion) return error;
  remember_launch(std::move(record), completion);
  if (!launches_block()) return hipSuccess;
  completion->wait();
  return device_status(stream->device());
}

}  // namespace flydsl::emu::hip
