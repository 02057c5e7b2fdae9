// Host functions in streams: hipLaunchHostFunc, hipStreamAddCallback.
#include "emulator/hip/api_call.h"
#include "emulator/hip/stream.h"

using namespace flydsl::emu::hip;

FLYDSL_EMU_EXPORT hipError_t hipLaunchHostFunc(hipStream_t handle, hipHostFn_t function,
                                               void *user_data) {
  return api_call([&] {
    if (function == nullptr) return fail(hipErrorInvalidValue, "the function is null");
    hipError_t error = hipSuccess;
    const std::shared_ptr<Stream> stream = stream_or_fail(handle, &error);
    if (!stream) return error;
    Work work;
    work.type = hipGraphNodeTypeHost;
    work.run = [function, user_data] {
      function(user_data);
      return hipSuccess;
    };
    return stream->submit(std::move(work));
  });
}

// Unlike a host function it also runs, and is told so, when the device has faulted.
FLYDSL_EMU_EXPORT hipError_t hipStreamAddCallback(hipStream_t handle, hipStreamCallback_t callback,
                                                  void *user_data, unsigned flags) {
  return api_call([&] {
    if (callback == nullptr || flags != 0)
      return fail(hipErrorInvalidValue, "the callback is null or flags are not 0");
    hipError_t error = hipSuccess;
    const std::shared_ptr<Stream> stream = stream_or_fail(handle, &error);
    if (!stream) return error;
    Work work;
    work.type = hipGraphNodeTypeHost;
    work.run = [=] {
      callback(handle, hipSuccess, user_data);
      return hipSuccess;
    };
    work.dropped = [=](hipError_t status) { callback(handle, status, user_data); };
    return stream->submit(std::move(work));
  });
}
