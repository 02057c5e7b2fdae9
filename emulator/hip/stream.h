// Streams and events.
//
// A stream is an in-order queue of work. Today submit() runs the work at once on the caller's
// thread, so the order across streams that events and the null stream ask for holds by itself;
// everything else already goes through this interface and through wait_idle() as an asynchronous
// queue would need it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>

#include "emulator/hip/device.h"
#include "emulator/hip/handle_table.h"
#include "emulator/hip/hip_abi.h"
#include "emulator/hip/launch_gate.h"

namespace flydsl::emu::hip {

class Stream {
 public:
  Stream(Device *device, unsigned flags, int priority)
      : device_(device), flags_(flags), priority_(priority) {}

  Device &device() const { return *device_; }
  unsigned flags() const { return flags_; }
  int priority() const { return priority_; }

  // Runs `work` after all work submitted before it, and returns its result.
  hipError_t submit(const std::function<hipError_t()> &work);
  void wait_idle();
  bool idle();

 private:
  Device *device_;
  unsigned flags_;
  int priority_;
  std::mutex running_;
};

struct Event {
  Device *device = nullptr;
  unsigned flags = 0;

  std::mutex mutex;
  bool recorded = false;
  std::chrono::steady_clock::time_point when;  // the stream reached the event
};

LaunchGate &launch_gate();
HandleTable<Stream> &streams();
HandleTable<Event> &events();

// The stream behind a handle: null and hipStreamLegacy are the current device's null stream,
// hipStreamPerThread likewise (one in-order queue is a valid order for it). nullptr after fail().
std::shared_ptr<Stream> stream_or_fail(hipStream_t handle, hipError_t *error);

}  // namespace flydsl::emu::hip
