// Kernel launches: by hipFunction_t, and by the stubs of compiled HIP programs.
#include <cstdint>
#include <cstring>

#include "emulator/hip/api_call.h"
#include "emulator/hip/launch.h"

FLYDSL_EMU_EXPORT hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream);

namespace flydsl::emu::hip {
namespace {

// Between <<<...>>> and the stub that it calls, and for hipConfigureCall with hipSetupArgument.
// Plain data: see error_api.cc.
struct Configuration {
  dim3 grid, block;
  size_t dynamic_lds_bytes;
  hipStream_t stream;
};
constexpr int kMostConfigurations = 16;
constexpr size_t kMostArgumentBytes = 4096;
thread_local Configuration t_configurations[kMostConfigurations];
thread_local int t_configuration_count = 0;
thread_local char t_arguments[kMostArgumentBytes];
thread_local size_t t_argument_bytes = 0;

hipError_t push(const Configuration &configuration) {
  if (t_configuration_count == kMostConfigurations)
    return fail(hipErrorInvalidConfiguration, "%d configured calls without a launch",
                kMostConfigurations);
  t_configurations[t_configuration_count++] = configuration;
  return hipSuccess;
}

hipError_t pop(Configuration *configuration) {
  if (t_configuration_count == 0)
    return fail(hipErrorMissingConfiguration, "no call was configured in this thread");
  *configuration = t_configurations[--t_configuration_count];
  return hipSuccess;
}

// With events around it; both may be null.
hipError_t launch_between(const void *function, const LaunchRequest &request, hipStream_t stream,
                          hipEvent_t start, hipEvent_t stop) {
  hipError_t error = start == nullptr ? hipSuccess : hipEventRecord(start, stream);
  if (error == hipSuccess) error = launch(function, request, stream);
  if (error == hipSuccess && stop != nullptr) error = hipEventRecord(stop, stream);
  return error;
}

}  // namespace
}  // namespace flydsl::emu::hip

using namespace flydsl::emu::hip;

FLYDSL_EMU_EXPORT hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned grid_x,
                                                   unsigned grid_y, unsigned grid_z,
                                                   unsigned block_x, unsigned block_y,
                                                   unsigned block_z, unsigned dynamic_lds_bytes,
                                                   hipStream_t stream, void **parameters,
                                                   void **extra) {
  return api_call([&] {
    return launch(function,
                  launch_request({grid_x, grid_y, grid_z}, {block_x, block_y, block_z},
                                 dynamic_lds_bytes, parameters, extra),
                  stream);
  });
}

FLYDSL_EMU_EXPORT hipError_t hipModuleLaunchCooperativeKernel(
    hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
    unsigned block_y, unsigned block_z, unsigned dynamic_lds_bytes, hipStream_t stream,
    void **parameters) {
  return api_call([&] {
    LaunchRequest request = launch_request({grid_x, grid_y, grid_z}, {block_x, block_y, block_z},
                                           dynamic_lds_bytes, parameters, nullptr);
    request.cooperative = true;
    return launch(function, request, stream);
  });
}

// Sizes in work-items. A last work-group that would be cut short is refused: hidden arguments and
// the dispatch packet are for whole ones.
FLYDSL_EMU_EXPORT hipError_t hipExtModuleLaunchKernel(
    hipFunction_t function, uint32_t items_x, uint32_t items_y, uint32_t items_z, uint32_t block_x,
    uint32_t block_y, uint32_t block_z, size_t dynamic_lds_bytes, hipStream_t stream,
    void **parameters, void **extra, hipEvent_t start, hipEvent_t stop, uint32_t) {
  return api_call([&] {
    const uint32_t items[3] = {items_x, items_y, items_z}, block[3] = {block_x, block_y, block_z};
    for (int axis = 0; axis < 3; ++axis)
      if (block[axis] == 0 || items[axis] % block[axis] != 0)
        return fail(hipErrorInvalidConfiguration,
                    "axis %d: %u work-items are not whole work-groups of %u", axis, items[axis],
                    block[axis]);
    return launch_between(
        function,
        launch_request({items_x / block_x, items_y / block_y, items_z / block_z},
                       {block_x, block_y, block_z}, dynamic_lds_bytes, parameters, extra),
        stream, start, stop);
  });
}

FLYDSL_EMU_EXPORT hipError_t hipLaunchKernel(const void *stub, dim3 grid, dim3 block,
                                             void **arguments, size_t dynamic_lds_bytes,
                                             hipStream_t stream) {
  return api_call([&] {
    return launch(stub, launch_request(grid, block, dynamic_lds_bytes, arguments, nullptr), stream);
  });
}

FLYDSL_EMU_EXPORT hipError_t hipExtLaunchKernel(const void *stub, dim3 grid, dim3 block,
                                                void **arguments, size_t dynamic_lds_bytes,
                                                hipStream_t stream, hipEvent_t start,
                                                hipEvent_t stop, int) {
  return api_call([&] {
    return launch_between(stub, launch_request(grid, block, dynamic_lds_bytes, arguments, nullptr),
                          stream, start, stop);
  });
}

FLYDSL_EMU_EXPORT hipError_t hipLaunchCooperativeKernel(const void *stub, dim3 grid, dim3 block,
                                                        void **arguments,
                                                        unsigned dynamic_lds_bytes,
                                                        hipStream_t stream) {
  return api_call([&] {
    LaunchRequest request = launch_request(grid, block, dynamic_lds_bytes, arguments, nullptr);
    request.cooperative = true;
    return launch(stub, request, stream);
  });
}

FLYDSL_EMU_EXPORT hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block,
                                                        size_t dynamic_lds_bytes,
                                                        hipStream_t stream) {
  return api_call([&] { return push({grid, block, dynamic_lds_bytes, stream}); });
}

FLYDSL_EMU_EXPORT hipError_t __hipPopCallConfiguration(dim3 *grid, dim3 *block,
                                                       size_t *dynamic_lds_bytes,
                                                       hipStream_t *stream) {
  return api_call([&] {
    Configuration configuration = {};
    const hipError_t error = pop(&configuration);
    if (error != hipSuccess) return error;
    *grid = configuration.grid;
    *block = configuration.block;
    *dynamic_lds_bytes = configuration.dynamic_lds_bytes;
    *stream = configuration.stream;
    return hipSuccess;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipConfigureCall(dim3 grid, dim3 block, size_t dynamic_lds_bytes,
                                              hipStream_t stream) {
  return api_call([&] {
    t_argument_bytes = 0;
    return push({grid, block, dynamic_lds_bytes, stream});
  });
}

FLYDSL_EMU_EXPORT hipError_t hipSetupArgument(const void *argument, size_t bytes, size_t offset) {
  return api_call([&] {
    if (argument == nullptr || offset > kMostArgumentBytes || bytes > kMostArgumentBytes - offset)
      return fail(hipErrorInvalidValue, "%zu bytes of argument at offset %zu", bytes, offset);
    std::memcpy(t_arguments + offset, argument, bytes);
    if (t_argument_bytes < offset + bytes) t_argument_bytes = offset + bytes;
    return hipSuccess;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipLaunchByPtr(const void *stub) {
  return api_call([&] {
    Configuration configuration = {};
    const hipError_t error = pop(&configuration);
    if (error != hipSuccess) return error;
    void *extra[] = {reinterpret_cast<void *>(HIP_LAUNCH_PARAM_BUFFER_POINTER_VALUE), t_arguments,
                     reinterpret_cast<void *>(HIP_LAUNCH_PARAM_BUFFER_SIZE_VALUE),
                     &t_argument_bytes, reinterpret_cast<void *>(HIP_LAUNCH_PARAM_END_VALUE)};
    return launch(stub,
                  launch_request(configuration.grid, configuration.block,
                                 configuration.dynamic_lds_bytes, nullptr, extra),
                  configuration.stream);
  });
}
