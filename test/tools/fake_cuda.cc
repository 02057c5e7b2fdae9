// CUDA's driver API as src/device/cuda uses it, without a GPU: memory is the host's, a kernel computes nothing, and the device's
// clock goes on by what each launch takes: 5 us of kernels whose names hold FAKE_CUDA_FAST, 10 us of others. FAKE_CUDA_DEVICES: how
// many there are (1). FAKE_CUDA_FAILS: a function that fails. What a capture must not see fails as on a device.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using Result = int;  // CUresult
constexpr Result kInvalidValue = 1, kNotInitialized = 3, kNoDevice = 100, kCaptureInvalid = 901,
                 kLaunchFailed = 719;

struct Kernel {
  std::string name;
};
struct Stream {
  bool captures = false;
  double captured_us = 0;
};
struct Graph {
  double us = 0;
};
struct Event {
  double at_us = -1;
};

Stream null_stream;
Stream *capturing = nullptr;
double now_us = 0;

Stream &stream_of(void *handle) {
  return handle ? *static_cast<Stream *>(handle) : null_stream;
}
const char *setting(const char *name, const char *fallback) {
  const char *value = std::getenv(name);
  return value ? value : fallback;
}
bool fails(const char *function) {
  return std::strcmp(setting("FAKE_CUDA_FAILS", ""), function) == 0;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT Result cuInit(unsigned) {
  return std::atoi(setting("FAKE_CUDA_DEVICES", "1")) > 0 ? 0 : kNoDevice;
}
EXPORT Result cuDeviceGetCount(int *count) {
  *count = std::atoi(setting("FAKE_CUDA_DEVICES", "1"));
  return 0;
}
EXPORT Result cuDeviceGetAttribute(int *value, int attribute, int) {
  constexpr int kMultiprocessors = 16, kMajor = 75, kMinor = 76, kMaxSharedMemory = 97;
  *value = attribute == kMultiprocessors   ? 132
           : attribute == kMajor           ? 9
           : attribute == kMinor           ? 0
           : attribute == kMaxSharedMemory ? 232448
                                           : -1;
  return *value < 0 ? kInvalidValue : 0;
}
EXPORT Result cuDeviceGetName(char *name, int bytes, int) {
  std::strncpy(name, "Fake GPU", static_cast<size_t>(bytes));
  return 0;
}
EXPORT Result cuDevicePrimaryCtxRetain(void **context, int) {
  *context = &null_stream;
  return 0;
}
EXPORT Result cuCtxSetCurrent(void *) {
  return 0;
}
EXPORT Result cuCtxGetCurrent(void **context) {
  *context = &null_stream;
  return 0;
}
EXPORT Result cuCtxGetDevice(int *device) {
  *device = 0;
  return 0;
}
EXPORT Result cuStreamGetCtx(void *, void **context) {
  *context = &null_stream;
  return 0;
}
EXPORT Result cuCtxPushCurrent_v2(void *) {
  return 0;
}
EXPORT Result cuCtxPopCurrent_v2(void **) {
  return 0;
}
EXPORT Result cuModuleLoadData(void **module, const void *) {
  if (capturing) return kCaptureInvalid;
  *module = &null_stream;
  return 0;
}
EXPORT Result cuModuleUnload(void *) {
  return 0;
}
EXPORT Result cuModuleGetFunction(void **function, void *, const char *name) {
  static std::vector<Kernel *> kernels;  // as long as the process
  *function = kernels.emplace_back(new Kernel{name});
  return 0;
}
EXPORT Result cuFuncGetAttribute(int *value, int, void *) {
  *value = 0;
  return 0;
}
EXPORT Result cuFuncSetAttribute(void *, int, int) {
  return 0;
}
EXPORT Result cuLaunchKernel(void *function, unsigned, unsigned, unsigned, unsigned, unsigned,
                             unsigned, unsigned, void *handle, void **, void **) {
  if (fails("cuLaunchKernel")) return kLaunchFailed;
  Stream &stream = stream_of(handle);
  if (capturing && capturing != &stream) return kCaptureInvalid;
  const char *fast = std::getenv("FAKE_CUDA_FAST");
  const std::string &name = static_cast<Kernel *>(function)->name;
  const double us = fast && name.find(fast) != std::string::npos ? 5 : 10;
  (stream.captures ? stream.captured_us : now_us) += us;
  return 0;
}
EXPORT Result cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  if (capturing) return kCaptureInvalid;
  *address = reinterpret_cast<uint64_t>(std::malloc(bytes));
  return *address ? 0 : 2;
}
EXPORT Result cuMemFree_v2(uint64_t address) {
  std::free(reinterpret_cast<void *>(address));
  return 0;
}
EXPORT Result cuMemcpy(uint64_t to, uint64_t from, size_t bytes) {
  if (capturing) return kCaptureInvalid;
  std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<const void *>(from), bytes);
  return 0;
}
EXPORT Result cuCtxSynchronize() {
  return capturing ? kCaptureInvalid : 0;
}
EXPORT Result cuStreamCreate(void **stream, unsigned) {
  *stream = new Stream;
  return 0;
}
EXPORT Result cuStreamDestroy_v2(void *stream) {
  if (capturing == stream) capturing = nullptr;
  delete static_cast<Stream *>(stream);
  return 0;
}
EXPORT Result cuStreamSynchronize(void *handle) {
  return stream_of(handle).captures ? kCaptureInvalid : 0;
}
EXPORT Result cuStreamIsCapturing(void *handle, int *status) {
  *status = stream_of(handle).captures;
  return 0;
}
EXPORT Result cuStreamBeginCapture_v2(void *handle, int) {
  if (!handle) return kInvalidValue;
  capturing = static_cast<Stream *>(handle);
  capturing->captures = true;
  return 0;
}
EXPORT Result cuStreamEndCapture(void *handle, void **graph) {
  Stream &stream = stream_of(handle);
  if (!stream.captures) return kInvalidValue;
  *graph = new Graph{stream.captured_us};
  stream = {};
  capturing = nullptr;
  return 0;
}
EXPORT Result cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long) {
  *exec = new Graph(*static_cast<Graph *>(graph));
  return 0;
}
EXPORT Result cuGraphLaunch(void *exec, void *) {
  now_us += static_cast<Graph *>(exec)->us;
  return 0;
}
EXPORT Result cuGraphDestroy(void *graph) {
  delete static_cast<Graph *>(graph);
  return 0;
}
EXPORT Result cuGraphExecDestroy(void *exec) {
  delete static_cast<Graph *>(exec);
  return 0;
}
EXPORT Result cuEventCreate(void **event, unsigned) {
  *event = new Event;
  return 0;
}
EXPORT Result cuEventDestroy_v2(void *event) {
  delete static_cast<Event *>(event);
  return 0;
}
EXPORT Result cuEventRecord(void *event, void *) {
  static_cast<Event *>(event)->at_us = now_us;
  return 0;
}
EXPORT Result cuEventSynchronize(void *event) {
  return static_cast<Event *>(event)->at_us < 0 ? kNotInitialized : 0;
}
EXPORT Result cuEventElapsedTime(float *milliseconds, void *begin, void *end) {
  *milliseconds = static_cast<float>(
      (static_cast<Event *>(end)->at_us - static_cast<Event *>(begin)->at_us) / 1000);
  return 0;
}
EXPORT Result cuGetErrorName(Result, const char **name) {
  *name = "CUDA_ERROR_FAKE";
  return 0;
}
EXPORT Result cuGetErrorString(Result, const char **text) {
  *text = "an error of the fake driver";
  return 0;
}
