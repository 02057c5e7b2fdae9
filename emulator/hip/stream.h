// Streams and events.
//
// A stream is an in-order queue with a host thread of its own, started when work arrives and gone
// after a while without. Work waits for the completions it depends on; these were submitted
// earlier, so streams cannot wait for each other in a circle.
//
// Null stream (HIP Programming Guide, "Default stream", legacy): work on it waits for the blocking
// streams of its device, and work on those waits for it. hipStreamNonBlocking streams keep out of
// this.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "emulator/hip/completion.h"
#include "emulator/hip/device.h"
#include "emulator/hip/handle_table.h"
#include "emulator/hip/hip_abi.h"
#include "emulator/hip/launch_gate.h"

namespace flydsl::emu::hip {

struct Capture;    // capture.h
struct GraphNode;  // graph.h

// One operation of a stream, or of a graph.
struct Work {
  hipGraphNodeType type = hipGraphNodeTypeEmpty;
  // Runs it. A result other than success is a fault of the device.
  std::function<hipError_t()> run;
  // Told instead of `run` when the device has faulted; may be empty.
  std::function<void(hipError_t)> dropped;
};

using Completions = std::vector<std::shared_ptr<const Completion>>;

class Stream {
 public:
  enum class Kind : uint8_t { kNull, kBlocking, kNonBlocking };

  Stream(Device *device, Kind kind, unsigned flags, int priority)
      : device_(device), kind_(kind), flags_(flags), priority_(priority) {}
  ~Stream();
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;

  Device &device() const { return *device_; }
  Kind kind() const { return kind_; }
  unsigned flags() const { return flags_; }
  int priority() const { return priority_; }

  // Queues `work` behind all work submitted before it and behind `after`. During a capture it
  // becomes a node instead and *completion, where asked for, stays null.
  hipError_t submit(Work work, std::shared_ptr<const Completion> *completion = nullptr,
                    Completions after = {});
  // submit(), then waits: what the synchronous calls are made of.
  hipError_t run(Work work);
  // Everything that submitted work would wait for: the stream's own last work, and for the null
  // stream that of the blocking streams.
  Completions pending() const;
  void wait_idle() const;
  bool idle() const;

  // State of a capture; both under submission_mutex().
  std::shared_ptr<Capture> capture;
  std::vector<GraphNode *> capture_tail;  // what the next captured node depends on

 private:
  friend class Workers;
  struct Queued {
    Work work;
    Completions after;
    std::shared_ptr<Completion> done;
  };
  void collect_pending(Completions *list) const;
  void start_worker();
  void serve();
  void execute(Queued &item);
  void stop_worker();

  Device *device_;
  Kind kind_;
  unsigned flags_;
  int priority_;
  std::shared_ptr<Completion> tail_;  // of the last submitted work; under submission_mutex()

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Queued> queue_;
  std::thread worker_;
  bool serving_ = false;
  bool stopping_ = false;
};

// Submissions of all threads have one order, so that dependencies only point backwards.
std::mutex &submission_mutex();

struct Event {
  Device *device = nullptr;
  unsigned flags = 0;

  std::mutex mutex;
  std::shared_ptr<const Completion> recorded;  // null: never recorded
  // The last hipEventRecord was in this capture, behind these nodes.
  std::shared_ptr<Capture> capture;
  std::vector<GraphNode *> capture_nodes;
};

LaunchGate &launch_gate();
HandleTable<Stream> &streams();
HandleTable<Event> &events();

// The stream behind a handle: null and hipStreamLegacy are the current device's null stream,
// hipStreamPerThread the calling thread's own. nullptr after fail().
std::shared_ptr<Stream> stream_or_fail(hipStream_t handle, hipError_t *error);
std::shared_ptr<Event> event_or_fail(hipEvent_t handle, hipError_t *error);

// Waits for all work of a device; hipSuccess, or why the caller may not wait.
hipError_t wait_for_device(const Device &device);

// hipErrorNotPermitted after fail() in a host callback: it would wait for itself.
hipError_t may_wait(const char *what);

}  // namespace flydsl::emu::hip
