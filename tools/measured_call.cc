#include "tools/measured_call.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <vector>

#include "tools/exit_status.h"
#include "tools/input_data.h"

namespace flydsl::tools {
namespace {

using Error = int;  // hipError_t, 0: success

// HIP's functions from the library that is open already: the product itself needs neither events nor graphs.
struct Functions {
  Error (*stream_create)(void **) = nullptr;
  Error (*stream_destroy)(void *) = nullptr;
  Error (*stream_synchronize)(void *) = nullptr;
  Error (*begin_capture)(void *, int) = nullptr;
  Error (*end_capture)(void *, void **) = nullptr;
  Error (*graph_instantiate)(void **, void *, void **, char *, size_t) = nullptr;
  Error (*graph_launch)(void *, void *) = nullptr;
  Error (*graph_destroy)(void *) = nullptr;
  Error (*graph_exec_destroy)(void *) = nullptr;
  Error (*event_create)(void **) = nullptr;
  Error (*event_destroy)(void *) = nullptr;
  Error (*event_record)(void *, void *) = nullptr;
  Error (*event_synchronize)(void *) = nullptr;
  Error (*elapsed_ms)(float *, void *, void *) = nullptr;
  Error (*copy)(void *, const void *, size_t, int) = nullptr;
  const char *(*error_string)(Error) = nullptr;

  explicit Functions(const char *path) {
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) throw ToolError(kExitFailure, dlerror());
    const auto find = [&](const char *name, auto *function) {
      *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(library, name));
      if (!*function) throw ToolError(kExitFailure, std::string(path) + ": has no " + name);
    };
    find("hipStreamCreate", &stream_create);
    find("hipStreamDestroy", &stream_destroy);
    find("hipStreamSynchronize", &stream_synchronize);
    find("hipStreamBeginCapture", &begin_capture);
    find("hipStreamEndCapture", &end_capture);
    find("hipGraphInstantiate", &graph_instantiate);
    find("hipGraphLaunch", &graph_launch);
    find("hipGraphDestroy", &graph_destroy);
    find("hipGraphExecDestroy", &graph_exec_destroy);
    find("hipEventCreate", &event_create);
    find("hipEventDestroy", &event_destroy);
    find("hipEventRecord", &event_record);
    find("hipEventSynchronize", &event_synchronize);
    find("hipEventElapsedTime", &elapsed_ms);
    find("hipMemcpy", &copy);
    find("hipGetErrorString", &error_string);
  }
  void check(Error error, const char *what) const {
    if (error != 0)
      throw ToolError(kExitFailure, std::string(what) + " failed: " + std::to_string(error) + " (" +
                                        error_string(error) + ")");
  }
};

// A handle of the runtime that frees itself.
class Owned {
 public:
  explicit Owned(Error (*destroy)(void *)) : destroy_(destroy) {}
  ~Owned() {
    if (handle_) destroy_(handle_);
  }
  Owned(const Owned &) = delete;
  Owned &operator=(const Owned &) = delete;
  void **slot() { return &handle_; }
  void *get() const { return handle_; }

 private:
  Error (*destroy_)(void *);
  void *handle_ = nullptr;
};

// Copies of a problem's operands.
class Operands {
 public:
  Operands(const Functions &hip, const LibraryHandle &library, BoundProblem &bound)
      : problem_(*bound.problem) {
    // More than the largest cache of a GPU that is known (256 MiB), twice.
    constexpr uint64_t kBytes = uint64_t{512} << 20, kMost = 64;
    uint64_t bytes = 0;
    for_each([&](BoundTensor &tensor, size_t) { bytes += bytes_of(tensor); });
    copies_.resize(std::clamp<uint64_t>(kBytes / std::max<uint64_t>(bytes, 1) + 1, 2, kMost));
    for (size_t copy = 0; copy < copies_.size(); ++copy) {
      for_each([&](BoundTensor &tensor, size_t) {
        copies_[copy].push_back(
            memory_.emplace_back(library, bytes_of(tensor), tensor.name).data());
      });
    }
    use(0);
    upload_inputs(library, bound);
    // The others from the first: random numbers take longer to make than all that is measured.
    constexpr int kOnDevice = 3;  // hipMemcpyDeviceToDevice
    for (size_t copy = 1; copy < copies_.size(); ++copy) {
      for_each([&](BoundTensor &tensor, size_t i) {
        hip.check(hip.copy(copies_[copy][i], copies_[0][i], bytes_of(tensor), kOnDevice),
                  "hipMemcpy");
      });
    }
  }
  void use(size_t call) {
    const std::vector<void *> &copy = copies_[call % copies_.size()];
    for_each([&](BoundTensor &tensor, size_t i) { tensor.tensor->data = copy[i]; });
  }
  size_t copies() const { return copies_.size(); }

 private:
  template <typename Function>
  void for_each(const Function &function) {
    size_t i = 0;
    for (auto *tensors : {&problem_.inputs, &problem_.outputs})
      for (BoundTensor &tensor : *tensors) function(tensor, i++);
  }

  Problem &problem_;
  std::deque<DeviceMemory> memory_;
  std::vector<std::vector<void *>> copies_;  // addresses in the order of for_each
};

// Of replays, a second's worth of them at most, the median without the first ones.
double median_ms(const Functions &hip, void *graph, void *stream) {
  constexpr size_t kMost = 15, kFewest = 3, kFirst = 3;
  Owned begin(hip.event_destroy), end(hip.event_destroy);
  hip.check(hip.event_create(begin.slot()), "hipEventCreate");
  hip.check(hip.event_create(end.slot()), "hipEventCreate");
  std::vector<float> samples;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  for (size_t i = 0; i < kFirst + kMost; ++i) {
    float milliseconds = 0;
    hip.check(hip.event_record(begin.get(), stream), "hipEventRecord");
    hip.check(hip.graph_launch(graph, stream), "hipGraphLaunch");
    hip.check(hip.event_record(end.get(), stream), "hipEventRecord");
    hip.check(hip.event_synchronize(end.get()), "hipEventSynchronize");
    hip.check(hip.elapsed_ms(&milliseconds, begin.get(), end.get()), "hipEventElapsedTime");
    if (i >= kFirst) samples.push_back(milliseconds);
    if (samples.size() >= kFewest && std::chrono::steady_clock::now() > deadline) break;
  }
  std::nth_element(samples.begin(), samples.begin() + samples.size() / 2, samples.end());
  return static_cast<double>(samples[samples.size() / 2]);
}

}  // namespace

double measured_call_us(const LibraryHandle &library, BoundProblem &bound) {
  const Functions hip(library.info().device_library);
  Problem &problem = *bound.problem;
  Operands operands(hip, library, bound);
  flydsl_aot_query_result result{};
  result.struct_size = sizeof result;
  check(problem.query(library.get(), &result), bound.op->name);
  std::deque<DeviceMemory> workspace;  // of calls in a stream, one after another
  if (result.workspace_bytes > 0) {
    problem.set_workspace(
        workspace.emplace_back(library, result.workspace_bytes, "the workspace").data(),
        result.workspace_bytes);
  }

  Owned stream(hip.stream_destroy), graph(hip.graph_destroy), replayed(hip.graph_exec_destroy);
  hip.check(hip.stream_create(stream.slot()), "hipStreamCreate");
  // A kernel is loaded by its first call, which a capture does not allow.
  check(problem.launch(library.get(), stream.get()), bound.op->name);
  hip.check(hip.stream_synchronize(stream.get()), "hipStreamSynchronize");
  const size_t calls = std::max<size_t>(operands.copies(), 4);
  constexpr int kOfThread = 1;  // hipStreamCaptureModeThreadLocal
  hip.check(hip.begin_capture(stream.get(), kOfThread), "hipStreamBeginCapture");
  for (size_t call = 0; call < calls; ++call) {
    operands.use(call);
    check(problem.launch(library.get(), stream.get()), bound.op->name);
  }
  hip.check(hip.end_capture(stream.get(), graph.slot()), "hipStreamEndCapture");
  hip.check(hip.graph_instantiate(replayed.slot(), graph.get(), nullptr, nullptr, 0),
            "hipGraphInstantiate");
  return median_ms(hip, replayed.get(), stream.get()) * 1000 / static_cast<double>(calls);
}

}  // namespace flydsl::tools
