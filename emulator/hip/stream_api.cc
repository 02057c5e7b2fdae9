// hipStream*.
#include <mutex>

#include "emulator/hip/api_call.h"
#include "emulator/hip/current_device.h"
#include "emulator/hip/stream.h"

namespace flydsl::emu::hip {

hipError_t Stream::submit(const std::function<hipError_t()> &work) {
  std::lock_guard<std::mutex> in_order(running_);
  return work();
}

void Stream::wait_idle() {
  std::lock_guard<std::mutex> in_order(running_);
}

bool Stream::idle() {
  const std::unique_lock<std::mutex> in_order(running_, std::try_to_lock);
  return in_order.owns_lock();
}

// None of these is ever destroyed, as with device_table().
LaunchGate &launch_gate() {
  static auto *const gate = new LaunchGate;
  return *gate;
}

HandleTable<Stream> &streams() {
  static auto *const table = new HandleTable<Stream>;
  return *table;
}

std::shared_ptr<Stream> stream_or_fail(hipStream_t handle, hipError_t *error) {
  if (reinterpret_cast<uintptr_t>(handle) <= hipStreamPerThreadValue) {
    Device *device = current_device_or_fail(error);
    return device == nullptr ? nullptr : device->null_stream;
  }
  std::shared_ptr<Stream> stream = streams().find(handle);
  if (!stream)
    *error = fail(hipErrorInvalidHandle, "stream %p does not exist", static_cast<void *>(handle));
  return stream;
}

namespace {

hipError_t create(hipStream_t *handle, unsigned flags, int priority) {
  if (handle == nullptr) return fail(hipErrorInvalidValue, "stream is null");
  if (flags != hipStreamDefault && flags != hipStreamNonBlocking)
    return fail(hipErrorInvalidValue, "stream flags are 0x%x, 0 and 1 are allowed", flags);
  hipError_t error = hipSuccess;
  Device *device = current_device_or_fail(&error);
  if (device == nullptr) return error;
  auto stream = std::make_shared<Stream>(device, flags, priority);
  *handle = static_cast<hipStream_t>(const_cast<void *>(streams().add(std::move(stream))));
  return hipSuccess;
}

}  // namespace
}  // namespace flydsl::emu::hip

using namespace flydsl::emu::hip;

FLYDSL_EMU_EXPORT hipError_t hipStreamCreate(hipStream_t *stream) {
  return api_call([&] { return create(stream, hipStreamDefault, 0); });
}

FLYDSL_EMU_EXPORT hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags) {
  return api_call([&] { return create(stream, flags, 0); });
}

FLYDSL_EMU_EXPORT hipError_t hipStreamCreateWithPriority(hipStream_t *stream, unsigned flags,
                                                         int priority) {
  return api_call([&] { return create(stream, flags, priority); });
}

FLYDSL_EMU_EXPORT hipError_t hipStreamDestroy(hipStream_t handle) {
  return api_call([&] {
    if (reinterpret_cast<uintptr_t>(handle) <= hipStreamPerThreadValue)
      return fail(hipErrorInvalidHandle, "the null stream cannot be destroyed");
    const std::shared_ptr<Stream> stream = streams().remove(handle);
    if (!stream)
      return fail(hipErrorInvalidHandle, "stream %p does not exist", static_cast<void *>(handle));
    stream->wait_idle();
    return hipSuccess;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipStreamSynchronize(hipStream_t handle) {
  return api_call([&] {
    hipError_t error = hipSuccess;
    const std::shared_ptr<Stream> stream = stream_or_fail(handle, &error);
    if (!stream) return error;
    stream->wait_idle();
    return device_status(stream->device());
  });
}

FLYDSL_EMU_EXPORT hipError_t hipStreamQuery(hipStream_t handle) {
  return api_call([&] {
    hipError_t error = hipSuccess;
    const std::shared_ptr<Stream> stream = stream_or_fail(handle, &error);
    if (!stream) return error;
    return stream->idle() ? device_status(stream->device()) : hipErrorNotReady;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipStreamWaitEvent(hipStream_t handle, hipEvent_t event,
                                                unsigned flags) {
  return api_call([&] {
    hipError_t error = hipSuccess;
    if (!stream_or_fail(handle, &error)) return error;
    if (flags != 0) return fail(hipErrorInvalidValue, "flags are 0x%x, must be 0", flags);
    if (!events().find(event))
      return fail(hipErrorInvalidHandle, "event %p does not exist", static_cast<void *>(event));
    // Work recorded before the event has already run when hipEventRecord returned.
    return hipSuccess;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipStreamGetDevice(hipStream_t handle, hipDevice_t *device) {
  return api_call([&] {
    if (device == nullptr) return fail(hipErrorInvalidValue, "device is null");
    hipError_t error = hipSuccess;
    const std::shared_ptr<Stream> stream = stream_or_fail(handle, &error);
    if (!stream) return error;
    *device = stream->device().ordinal;
    return hipSuccess;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipStreamGetFlags(hipStream_t handle, unsigned *flags) {
  return api_call([&] {
    if (flags == nullptr) return fail(hipErrorInvalidValue, "flags is null");
    hipError_t error = hipSuccess;
    const std::shared_ptr<Stream> stream = stream_or_fail(handle, &error);
    if (!stream) return error;
    *flags = stream->flags();
    return hipSuccess;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipStreamGetPriority(hipStream_t handle, int *priority) {
  return api_call([&] {
    if (priority == nullptr) return fail(hipErrorInvalidValue, "priority is null");
    hipError_t error = hipSuccess;
    const std::shared_ptr<Stream> stream = stream_or_fail(handle, &error);
    if (!stream) return error;
    *priority = stream->priority();
    return hipSuccess;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipStreamIsCapturing(hipStream_t handle,
                                                  hipStreamCaptureStatus *status) {
  return api_call([&] {
    if (status == nullptr) return fail(hipErrorInvalidValue, "status is null");
    hipError_t error = hipSuccess;
    if (!stream_or_fail(handle, &error)) return error;
    *status = hipStreamCaptureStatusNone;  // there is no hipStreamBeginCapture here
    return hipSuccess;
  });
}
