// hipEvent*. Times are the host's, taken when the stream reaches the event.
#include "emulator/hip/api_call.h"
#include "emulator/hip/capture.h"
#include "emulator/hip/stream.h"

namespace flydsl::emu::hip {

HandleTable<Event> &events() {
  static auto *const table = new HandleTable<Event>;
  return *table;
}

std::shared_ptr<Event> event_or_fail(hipEvent_t handle, hipError_t *error) {
  std::shared_ptr<Event> event = events().find(handle);
  if (!event)
    *error = fail(hipErrorInvalidHandle, "event %p does not exist", static_cast<void *>(handle));
  return event;
}

namespace {

std::shared_ptr<const Completion> recorded_of(Event &event) {
  std::lock_guard<std::mutex> lock(event.mutex);
  return event.recorded;
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
    {
      std::lock_guard<std::mutex> order(submission_mutex());
      std::lock_guard<std::mutex> lock(event->mutex);
      event->capture = stream->capture;
      event->capture_nodes = stream->capture_tail;
      if (stream->capture) return hipSuccess;
    }
    std::shared_ptr<const Completion> completion;
    error = stream->submit({}, &completion);
    if (error != hipSuccess) return error;
    std::lock_guard<std::mutex> lock(event->mutex);
    event->recorded = std::move(completion);
    return hipSuccess;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipEventRecordWithFlags(hipEvent_t event, hipStream_t stream,
                                                     unsigned flags) {
  if (flags != 0)
    return api_call([&] { return fail(hipErrorInvalidValue, "flags are 0x%x", flags); });
  return hipEventRecord(event, stream);
}

FLYDSL_EMU_EXPORT hipError_t hipEventSynchronize(hipEvent_t handle) {
  return api_call([&] {
    hipError_t error = hipSuccess;
    const std::shared_ptr<Event> event = event_or_fail(handle, &error);
    if (!event) return error;
    error = refuse_on_captured_event(*event, "hipEventSynchronize");
    if (error == hipSuccess) error = may_wait("hipEventSynchronize");
    if (error != hipSuccess) return error;
    if (const auto recorded = recorded_of(*event)) recorded->wait();
    return device_status(*event->device);
  });
}

FLYDSL_EMU_EXPORT hipError_t hipEventQuery(hipEvent_t handle) {
  return api_call([&] {
    hipError_t error = hipSuccess;
    const std::shared_ptr<Event> event = event_or_fail(handle, &error);
    if (!event) return error;
    error = refuse_on_captured_event(*event, "hipEventQuery");
    if (error != hipSuccess) return error;
    const auto recorded = recorded_of(*event);
    return !recorded || recorded->done() ? device_status(*event->device) : hipErrorNotReady;
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
      const auto recorded = recorded_of(*event);
      if (!recorded || (event->flags & hipEventDisableTiming) != 0)
        return fail(hipErrorInvalidHandle, "the %s event was %s", i == 0 ? "first" : "second",
                    recorded ? "created without timing" : "never recorded");
      if (!recorded->done()) return hipErrorNotReady;
      times[i] = recorded->when();
    }
    *milliseconds = std::chrono::duration<float, std::milli>(times[1] - times[0]).count();
    return hipSuccess;
  });
}
