// hipStream*, but for capture (capture.cc).
#include <algorithm>

#include "emulator/hip/api_call.h"
#include "emulator/hip/capture.h"
#include "emulator/hip/current_device.h"
#include "emulator/hip/stream.h"

namespace flydsl::emu::hip {

namespace {

// AMD devices have three levels of priority; others become the nearest.
constexpr int kLeastPriority = 1, kGreatestPriority = -1;

hipError_t create(hipStream_t *handle, unsigned flags, int priority) {
  if (handle == nullptr) return fail(hipErrorInvalidValue, "stream is null");
  if (flags != hipStreamDefault && flags != hipStreamNonBlocking)
    return fail(hipErrorInvalidValue, "stream flags are 0x%x, 0 and 1 are allowed", flags);
  hipError_t error = hipSuccess;
  Device *device = current_device_or_fail(&error);
  if (device == nullptr) return error;
  const bool blocking = flags == hipStreamDefault;
  auto stream = std::make_shared<Stream>(
      device, blocking ? Stream::Kind::kBlocking : Stream::Kind::kNonBlocking, flags,
      std::clamp(priority, kGreatestPriority, kLeastPriority));
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
    hipError_t error = hipSuccess;
    const std::shared_ptr<Stream> stream = stream_or_fail(handle, &error);
    if (!stream) return error;
    error = refuse_on_capturing_stream(*stream, "hipStreamDestroy");
    if (error == hipSuccess) error = may_wait("hipStreamDestroy");
    if (error != hipSuccess) return error;
    stream->wait_idle();
    streams().remove(handle);
    return hipSuccess;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipStreamSynchronize(hipStream_t handle) {
  return api_call([&] {
    hipError_t error = hipSuccess;
    const std::shared_ptr<Stream> stream = stream_or_fail(handle, &error);
    if (!stream) return error;
    error = refuse_on_capturing_stream(*stream, "hipStreamSynchronize");
    if (error == hipSuccess) error = may_wait("hipStreamSynchronize");
    if (error != hipSuccess) return error;
    stream->wait_idle();
    return device_status(stream->device());
  });
}

FLYDSL_EMU_EXPORT hipError_t hipStreamQuery(hipStream_t handle) {
  return api_call([&] {
    hipError_t error = hipSuccess;
    const std::shared_ptr<Stream> stream = stream_or_fail(handle, &error);
    if (!stream) return error;
    error = refuse_on_capturing_stream(*stream, "hipStreamQuery");
    if (error != hipSuccess) return error;
    return stream->idle() ? device_status(stream->device()) : hipErrorNotReady;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipStreamWaitEvent(hipStream_t handle, hipEvent_t event_handle,
                                                unsigned flags) {
  return api_call([&] {
    hipError_t error = hipSuccess;
    const std::shared_ptr<Stream> stream = stream_or_fail(handle, &error);
    if (!stream) return error;
    if (flags != 0) return fail(hipErrorInvalidValue, "flags are 0x%x, must be 0", flags);
    const std::shared_ptr<Event> event = event_or_fail(event_handle, &error);
    if (!event) return error;
    bool handled = false;
    error = wait_for_captured_event(*stream, *event, &handled);
    if (error != hipSuccess || handled) return error;
    std::shared_ptr<const Completion> recorded;
    {
      std::lock_guard<std::mutex> lock(event->mutex);
      recorded = event->recorded;
    }
    if (!recorded || recorded->done()) return hipSuccess;
    return stream->submit({}, nullptr, {recorded});
  });
}

FLYDSL_EMU_EXPORT hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest) {
  return api_call([&] {
    if (least != nullptr) *least = kLeastPriority;
    if (greatest != nullptr) *greatest = kGreatestPriority;
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
