// Stream capture: between hipStreamBeginCapture and hipStreamEndCapture, work becomes graph nodes.
// Rules: HIP Programming Guide and CUDA Programming Guide, "Stream Capture" and "Prohibited and
// Unhandled Operations".
#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "emulator/hip/graph.h"
#include "emulator/hip/hip_abi.h"

namespace flydsl::emu::hip {

// All state is under submission_mutex().
struct Capture {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  hipStreamCaptureMode mode = hipStreamCaptureModeGlobal;
  uint64_t id = 0;
  std::thread::id thread;
  Stream *origin = nullptr;
  std::vector<Stream *> streams;  // that take part: the origin, and those joined by events
  bool invalidated = false;
  bool ended = false;
};

// With submission_mutex() held:
// Makes a node of `work`, behind the stream's earlier ones.
hipError_t add_captured(Stream &stream, Work work);
// Work on the null stream would depend on a capturing stream: an error that invalidates the
// capture.
hipError_t refuse_implicit_dependency(const Stream &stream);

// Without it:
// For calls that a capture in progress forbids: hipMalloc, hipFree, hipModuleUnload, ...
hipError_t refuse_while_capturing(const char *what);
// For waits for a device, which end every capture, whatever its mode and the thread's (clr, CHECK_SUPPORTED_DURING_CAPTURE).
hipError_t refuse_amid_captures(const char *what);
// For calls that ask for the end of captured work.
hipError_t refuse_on_capturing_stream(const Stream &stream, const char *what);
hipError_t refuse_on_captured_event(Event &event, const char *what);
// hipStreamWaitEvent in, or into, a capture: *handled tells whether that is all.
hipError_t wait_for_captured_event(Stream &stream, Event &event, bool *handled);

}  // namespace flydsl::emu::hip
