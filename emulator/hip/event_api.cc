// hipEvent*. Times are the host's, taken when the stream reaches the event.
#include "emulator/hip/api_call.h"
#include "emulator/hip/stream.h"

namespace flydsl::emu::hip {

HandleTable<Event> &events() {
  static auto *const table = new HandleTable<Event>;
  return *table;
}

namespace {

std::shared_ptr<Event> event_or_fail(hipEvent_t handle, hipError_t *error) {
  std::shared_ptr<Event> event = events().find(handle);
  if (!event)
    *error = fail(hipErrorInvalidHandle, "event %p does not exist", static_cast<void *>(handle));
  return event;
}

hipError_t create(hipEvent_t *handle, unsigned flags) {
  if (handle == nullptr) return fail(hipErrorInvalidValue, "event is null");
  // hipEventBlockingSync 1, DisableTiming 2, Interprocess 4, and the three fence flags.
  constexpr unsigned kAllowed = 0x7 | 0x20000000 | 0x40000000 | 0x80000000;
  if ((flags & ~kAllowed) != 0) return fail(hipErrorInvalidValue, "event flags are 0x%x", flags);
  hipError_t error = hipSuccess;
  Device *device = current_device_or_fail(&error);
  if (device == nullptr) return error;
  auto event = std::make_shared<Event>();
  event->device = device;
  event->flags = flags;
  *handle = static_cast<hipEvent_t>(const_cast<void *>(events().add(std::move(event))));
  return hipSuccess;
}

}  // namespace
}  // namespace flydsl::emu::hip

using namespace flydsl::emu::hip;

FLYDSL_EMU_EXPORT hipError_t hipEventCreate(hipEvent_t *event) {
  return api_call([&] { return create(event, 0); });
}

FLYDSL_EMU_EXPORT hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags) {
  return api_call([&] { return create(event, flags); });
}

FLYDSL_EMU_EXPORT hipError_t hipEventDestroy(hipEvent_t handle) {
  return api_call([&] {
    if (!events().remove(handle))
      return fail(hipErrorInvalidHandle, "event %p does not exist", static_cast<void *>(handle));
    return hipSuccess;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipEventRecord(hipEvent_t handle, hipStream_t stream_handle) {
  return api_call([&] {
    hipError_t error = hipSuccess;
    const std::shared_ptr<Event> event = event_or_fail(handle, &error);
    if (!event) return error;
    const std::shared_ptr<Stream> stream = stream_or_fail(stream_handle, &error);
    if (!stream) return error;
    if (&stream->device() != event->device)
      return fail(hipErrorInvalidHandle, "the event belongs to device %d, the stream to device %d",
                  event->device->ordinal, stream->device().ordinal);
    return stream->submit([&] {
      std::lock_guard<std::mutex> lock(event->mutex);
      event->recorded = true;
      event->when = std::chrono::steady_clock::now();
      return hipSuccess;
    });
  });
}

FLYDSL_EMU_EXPORT hipError_t hipEventSynchronize(hipEvent_t handle) {
  return api_call([&] {
    hipError_t error = hipSuccess;
    const std::shared_ptr<Event> event = event_or_fail(handle, &error);
    return event ? device_status(*event->device) : error;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipEventQuery(hipEvent_t handle) {
  return api_call([&] {
    hipError_t error = hipSuccess;
    const std::shared_ptr<Event> event = event_or_fail(handle, &error);
    return event ? device_status(*event->device) : error;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipEventElapsedTime(float *milliseconds, hipEvent_t start,
                                                 hipEvent_t stop) {
  return api_call([&] {
    if (milliseconds == nullptr) return fail(hipErrorInvalidValue, "the result is null");
    hipError_t error = hipSuccess;
    std::chrono::steady_clock::time_point times[2];
    const hipEvent_t handles[2] = {start, stop};
    for (int i = 0; i < 2; ++i) {
      const std::shared_ptr<Event> event = event_or_fail(handles[i], &error);
      if (!event) return error;
      std::lock_guard<std::mutex> lock(event->mutex);
      if (!event->recorded || (event->flags & hipEventDisableTiming) != 0)
        return fail(hipErrorInvalidHandle, "the %s event was %s", i == 0 ? "first" : "second",
                    event->recorded ? "created without timing" : "never recorded");
      times[i] = event->when;
    }
    *milliseconds = std::chrono::duration<float, std::milli>(times[1] - times[0]).count();
    return hipSuccess;
  });
}
