// Capturing, and hipStreamBeginCapture and its family.
#include "emulator/hip/capture.h"

#include <algorithm>
#include <set>

#include "emulator/hip/api_call.h"

namespace flydsl::emu::hip {
namespace {

// Plain data: see error_api.cc.
thread_local hipStreamCaptureMode t_mode = hipStreamCaptureModeGlobal;

// The captures in progress; under submission_mutex().
std::vector<std::shared_ptr<Capture>> &captures() {
  static auto *const list = new std::vector<std::shared_ptr<Capture>>;
  return *list;
}

hipError_t invalidated() {
  return fail(hipErrorStreamCaptureInvalidated, "an earlier error invalidated this capture");
}

// Whether `capture` keeps the calling thread from unsafe calls (CUDA Runtime API,
// cudaThreadExchangeStreamCaptureMode).
bool forbids(const Capture &capture) {
  if (t_mode == hipStreamCaptureModeRelaxed) return false;
  if (capture.thread == std::this_thread::get_id())
    return capture.mode != hipStreamCaptureModeRelaxed;
  return t_mode == hipStreamCaptureModeGlobal && capture.mode == hipStreamCaptureModeGlobal;
}

// Ends the captures that forbid a call.
template <class Forbids>
hipError_t refuse(const char *what, Forbids forbids_it) {
  std::lock_guard<std::mutex> order(submission_mutex());
  hipError_t error = hipSuccess;
  for (const std::shared_ptr<Capture> &capture : captures()) {
    if (!forbids_it(*capture)) continue;
    capture->invalidated = true;
    error =
        fail(hipErrorStreamCaptureUnsupported, "%s is not permitted during a stream capture", what);
  }
  return error;
}

// Whether everything that the other streams captured lies before the origin's last nodes.
bool joined(const Capture &capture) {
  std::set<const GraphNode *> reached;
  std::vector<const GraphNode *> open(capture.origin->capture_tail.begin(),
                                      capture.origin->capture_tail.end());
  while (!open.empty()) {
    const GraphNode *node = open.back();
    open.pop_back();
    if (reached.insert(node).second)
      open.insert(open.end(), node->after.begin(), node->after.end());
  }
  for (const Stream *stream : capture.streams)
    for (const GraphNode *node : stream->capture_tail)
      if (reached.count(node) == 0) return false;
  return true;
}

void end(const std::shared_ptr<Capture> &capture) {
  for (Stream *stream : capture->streams) {
    stream->capture.reset();
    stream->capture_tail.clear();
  }
  capture->ended = true;
  auto &all = captures();
  all.erase(std::remove(all.begin(), all.end(), capture), all.end());
}

hipError_t begin_capture(Stream &stream, hipStreamCaptureMode mode) {
  if (mode > hipStreamCaptureModeRelaxed)
    return fail(hipErrorInvalidValue, "capture mode is %u", static_cast<unsigned>(mode));
  if (stream.kind() == Stream::Kind::kNull)
    return fail(hipErrorStreamCaptureUnsupported, "the null stream cannot be captured");
  static uint64_t last_id = 0;
  std::lock_guard<std::mutex> order(submission_mutex());
  if (stream.capture) return fail(hipErrorIllegalState, "the stream is being captured already");
  auto capture = std::make_shared<Capture>();
  capture->mode = mode;
  capture->id = ++last_id;
  capture->thread = std::this_thread::get_id();
  capture->origin = &stream;
  capture->streams = {&stream};
  stream.capture = capture;
  captures().push_back(std::move(capture));
  return hipSuccess;
}

hipError_t end_capture(Stream &stream, hipGraph_t *graph) {
  if (graph == nullptr) return fail(hipErrorInvalidValue, "graph is null");
  *graph = nullptr;
  std::lock_guard<std::mutex> order(submission_mutex());
  const std::shared_ptr<Capture> capture = stream.capture;
  if (!capture) return fail(hipErrorIllegalState, "the stream is not being captured");
  if (capture->origin != &stream)
    return fail(hipErrorStreamCaptureUnmatched, "the capture began in another stream");
  if (capture->mode != hipStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id())
    return fail(hipErrorStreamCaptureWrongThread,
                "the capture began in another thread, without hipStreamCaptureModeRelaxed");
  const bool complete = joined(*capture);
  end(capture);
  if (capture->invalidated) return invalidated();
  if (!complete)
    return fail(hipErrorStreamCaptureUnjoined,
                "a stream that joined the capture was not joined back by an event");
  for (const std::shared_ptr<GraphNode> &node : capture->graph->nodes) graph_nodes().add(node);
  *graph = static_cast<hipGraph_t>(const_cast<void *>(graphs().add(capture->graph)));
  return hipSuccess;
}

hipStreamCaptureStatus status_of(const Stream &stream) {
  if (!stream.capture) return hipStreamCaptureStatusNone;
  return stream.capture->invalidated ? hipStreamCaptureStatusInvalidated
                                     : hipStreamCaptureStatusActive;
}

}  // namespace

hipError_t add_captured(Stream &stream, Work work) {
  Capture &capture = *stream.capture;
  if (capture.invalidated) return invalidated();
  stream.capture_tail = {capture.graph->add(std::move(work), stream.capture_tail)};
  return hipSuccess;
}

hipError_t refuse_implicit_dependency(const Stream &stream) {
  if (stream.kind() != Stream::Kind::kNull) return hipSuccess;
  hipError_t error = hipSuccess;
  for (const std::shared_ptr<Capture> &capture : captures())
    for (const Stream *captured : capture->streams) {
      if (captured->kind() != Stream::Kind::kBlocking || &captured->device() != &stream.device())
        continue;
      capture->invalidated = true;
      error = fail(hipErrorStreamCaptureImplicit,
                   "work on the null stream depends on a blocking stream that is being captured");
    }
  return error;
}

hipError_t refuse_while_capturing(const char *what) {
  return refuse(what, forbids);
}

hipError_t refuse_amid_captures(const char *what) {
  return refuse(what, [](const Capture &) { return true; });
}

hipError_t refuse_on_capturing_stream(const Stream &stream, const char *what) {
  std::lock_guard<std::mutex> order(submission_mutex());
  if (stream.capture) {
    stream.capture->invalidated = true;
    return fail(hipErrorStreamCaptureUnsupported, "%s on a stream that is being captured", what);
  }
  return refuse_implicit_dependency(stream);
}

hipError_t refuse_on_captured_event(Event &event, const char *what) {
  std::lock_guard<std::mutex> order(submission_mutex());
  std::lock_guard<std::mutex> lock(event.mutex);
  if (!event.capture) return hipSuccess;
  event.capture->invalidated = true;
  return fail(hipErrorCapturedEvent, "%s on an event that was recorded in a capture", what);
}

hipError_t wait_for_captured_event(Stream &stream, Event &event, bool *handled) {
  std::lock_guard<std::mutex> order(submission_mutex());
  std::lock_guard<std::mutex> lock(event.mutex);
  *handled = event.capture != nullptr || stream.capture != nullptr;
  if (!*handled) return hipSuccess;
  if (!event.capture) {
    if (!event.recorded) return hipSuccess;
    stream.capture->invalidated = true;
    return fail(hipErrorStreamCaptureIsolation,
                "a captured stream would wait for an event of work outside of the capture");
  }
  Capture &capture = *event.capture;
  if (capture.ended)
    return fail(hipErrorCapturedEvent, "the event was recorded in a capture that has ended");
  if (capture.invalidated) return invalidated();
  if (stream.kind() == Stream::Kind::kNull) {
    capture.invalidated = true;
    return fail(hipErrorStreamCaptureImplicit, "the null stream cannot join a capture");
  }
  if (stream.capture && stream.capture != event.capture) {
    capture.invalidated = stream.capture->invalidated = true;
    return fail(hipErrorStreamCaptureMerge, "two captures would become one");
  }
  if (!stream.capture) {
    stream.capture = event.capture;
    capture.streams.push_back(&stream);
  }
  for (GraphNode *node : event.capture_nodes) {
    auto &tail = stream.capture_tail;
    if (std::find(tail.begin(), tail.end(), node) == tail.end()) tail.push_back(node);
  }
  return hipSuccess;
}

}  // namespace flydsl::emu::hip

using namespace flydsl::emu::hip;

FLYDSL_EMU_EXPORT hipError_t hipStreamBeginCapture(hipStream_t handle, hipStreamCaptureMode mode) {
  return api_call([&] {
    hipError_t error = hipSuccess;
    const std::shared_ptr<Stream> stream = stream_or_fail(handle, &error);
    return stream ? begin_capture(*stream, mode) : error;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipStreamEndCapture(hipStream_t handle, hipGraph_t *graph) {
  return api_call([&] {
    hipError_t error = hipSuccess;
    const std::shared_ptr<Stream> stream = stream_or_fail(handle, &error);
    return stream ? end_capture(*stream, graph) : error;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipStreamIsCapturing(hipStream_t handle,
                                                  hipStreamCaptureStatus *status) {
  return api_call([&] {
    if (status == nullptr) return fail(hipErrorInvalidValue, "status is null");
    hipError_t error = hipSuccess;
    const std::shared_ptr<Stream> stream = stream_or_fail(handle, &error);
    if (!stream) return error;
    std::lock_guard<std::mutex> order(submission_mutex());
    *status = status_of(*stream);
    return hipSuccess;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipStreamGetCaptureInfo_v2(hipStream_t handle,
                                                        hipStreamCaptureStatus *status,
                                                        unsigned long long *id, hipGraph_t *graph,
                                                        const hipGraphNode_t **dependencies,
                                                        size_t *dependency_count) {
  return api_call([&] {
    if (status == nullptr) return fail(hipErrorInvalidValue, "status is null");
    hipError_t error = hipSuccess;
    const std::shared_ptr<Stream> stream = stream_or_fail(handle, &error);
    if (!stream) return error;
    std::lock_guard<std::mutex> order(submission_mutex());
    *status = status_of(*stream);
    if (*status != hipStreamCaptureStatusActive) return hipSuccess;
    if (id != nullptr) *id = stream->capture->id;
    if (graph != nullptr) *graph = reinterpret_cast<hipGraph_t>(stream->capture->graph.get());
    if (dependencies != nullptr)
      *dependencies = reinterpret_cast<const hipGraphNode_t *>(stream->capture_tail.data());
    if (dependency_count != nullptr) *dependency_count = stream->capture_tail.size();
    return hipSuccess;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipStreamGetCaptureInfo(hipStream_t handle,
                                                     hipStreamCaptureStatus *status,
                                                     unsigned long long *id) {
  return hipStreamGetCaptureInfo_v2(handle, status, id, nullptr, nullptr, nullptr);
}

FLYDSL_EMU_EXPORT hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode *mode) {
  return api_call([&] {
    if (mode == nullptr || *mode > hipStreamCaptureModeRelaxed)
      return fail(hipErrorInvalidValue, "mode is null or unknown");
    std::swap(t_mode, *mode);
    return hipSuccess;
  });
}
