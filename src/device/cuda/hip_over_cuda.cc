// The HIP functions that src/device/load.cc and tools/measured_call.cc look for, on an NVIDIA GPU: a library of its own, named
// by FLYDSL_AOT_HIP_LIBRARY, so that the product knows nothing of it. CUDA's driver API is opened at run time; no NVIDIA header
// is needed. Development only (FLYDSL_AOT_CUDA): architecture-neutral kernels are verified and timed with it.
//
// Numbers and signatures: CUDA Driver API reference, version 12 (cuda.h). Memory and streams are those of the device's primary
// context, which the CUDA runtime, and so PyTorch, uses too.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

using Result = int;  // CUresult
using Context = void *;
constexpr Result kSuccess = 0, kNotInitialized = 3, kNoDevice = 100;

struct Driver {
  Result (*init)(unsigned) = nullptr;
  Result (*device_count)(int *) = nullptr;
  Result (*device_attribute)(int *, int, int) = nullptr;
  Result (*device_name)(char *, int, int) = nullptr;
  Result (*primary_retain)(Context *, int) = nullptr;
  Result (*set_current)(Context) = nullptr;
  Result (*get_current)(Context *) = nullptr;
  Result (*current_device)(int *) = nullptr;
  Result (*stream_context)(void *, Context *) = nullptr;
  Result (*stream_capturing)(void *, int *) = nullptr;
  Result (*push)(Context) = nullptr;
  Result (*pop)(Context *) = nullptr;
  Result (*module_load)(void **, const void *) = nullptr;
  Result (*module_unload)(void *) = nullptr;
  Result (*module_function)(void **, void *, const char *) = nullptr;
  Result (*function_get)(int *, int, void *) = nullptr;
  Result (*function_set)(void *, int, int) = nullptr;
  Result (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void *, void **, void **) = nullptr;
  Result (*alloc)(uint64_t *, size_t) = nullptr;
  Result (*release)(uint64_t) = nullptr;
  Result (*copy)(uint64_t, uint64_t, size_t) = nullptr;
  Result (*synchronize)() = nullptr;
  Result (*stream_create)(void **, unsigned) = nullptr;
  Result (*stream_destroy)(void *) = nullptr;
  Result (*stream_synchronize)(void *) = nullptr;
  Result (*begin_capture)(void *, int) = nullptr;
  Result (*end_capture)(void *, void **) = nullptr;
  Result (*graph_instantiate)(void **, void *, unsigned long long) = nullptr;
  Result (*graph_launch)(void *, void *) = nullptr;
  Result (*graph_destroy)(void *) = nullptr;
  Result (*graph_exec_destroy)(void *) = nullptr;
  Result (*event_create)(void **, unsigned) = nullptr;
  Result (*event_destroy)(void *) = nullptr;
  Result (*event_record)(void *, void *) = nullptr;
  Result (*event_synchronize)(void *) = nullptr;
  Result (*elapsed)(float *, void *, void *) = nullptr;
  Result (*error_name)(Result, const char **) = nullptr;
  Result (*error_string)(Result, const char **) = nullptr;
  Result state = kNotInitialized;
};

template <typename Function>
bool find(void *library, const char *name, Function *function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

Driver load() {
  Driver driver;
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return driver;
  const bool found = find(library, "cuInit", &driver.init) &
                     find(library, "cuDeviceGetCount", &driver.device_count) &
                     find(library, "cuDeviceGetAttribute", &driver.device_attribute) &
                     find(library, "cuDeviceGetName", &driver.device_name) &
                     find(library, "cuDevicePrimaryCtxRetain", &driver.primary_retain) &
                     find(library, "cuCtxSetCurrent", &driver.set_current) &
                     find(library, "cuCtxGetCurrent", &driver.get_current) &
                     find(library, "cuCtxGetDevice", &driver.current_device) &
                     find(library, "cuStreamGetCtx", &driver.stream_context) &
                     find(library, "cuStreamIsCapturing", &driver.stream_capturing) &
                     find(library, "cuCtxPushCurrent_v2", &driver.push) &
                     find(library, "cuCtxPopCurrent_v2", &driver.pop) &
                     find(library, "cuModuleLoadData", &driver.module_load) &
                     find(library, "cuModuleUnload", &driver.module_unload) &
                     find(library, "cuModuleGetFunction", &driver.module_function) &
                     find(library, "cuFuncGetAttribute", &driver.function_get) &
                     find(library, "cuFuncSetAttribute", &driver.function_set) &
                     find(library, "cuLaunchKernel", &driver.launch) &
                     find(library, "cuMemAlloc_v2", &driver.alloc) &
                     find(library, "cuMemFree_v2", &driver.release) &
                     find(library, "cuMemcpy", &driver.copy) &
                     find(library, "cuCtxSynchronize", &driver.synchronize) &
                     find(library, "cuStreamCreate", &driver.stream_create) &
                     find(library, "cuStreamDestroy_v2", &driver.stream_destroy) &
                     find(library, "cuStreamSynchronize", &driver.stream_synchronize) &
                     find(library, "cuStreamBeginCapture_v2", &driver.begin_capture) &
                     find(library, "cuStreamEndCapture", &driver.end_capture) &
                     find(library, "cuGraphInstantiateWithFlags", &driver.graph_instantiate) &
                     find(library, "cuGraphLaunch", &driver.graph_launch) &
                     find(library, "cuGraphDestroy", &driver.graph_destroy) &
                     find(library, "cuGraphExecDestroy", &driver.graph_exec_destroy) &
                     find(library, "cuEventCreate", &driver.event_create) &
                     find(library, "cuEventDestroy_v2", &driver.event_destroy) &
                     find(library, "cuEventRecord", &driver.event_record) &
                     find(library, "cuEventSynchronize", &driver.event_synchronize) &
                     find(library, "cuEventElapsedTime", &driver.elapsed) &
                     find(library, "cuGetErrorName", &driver.error_name) &
                     find(library, "cuGetErrorString", &driver.error_string);
  if (found) driver.state = driver.init(0);
  return driver;
}

const Driver &driver() {
  static const Driver loaded = load();
  return loaded;
}

// The current device's primary context becomes current where the thread has none.
Result with_context() {
  const Driver &cuda = driver();
  if (cuda.state != kSuccess) return cuda.state;
  Context context = nullptr;
  if (cuda.get_current(&context) == kSuccess && context) return kSuccess;
  if (const Result result = cuda.primary_retain(&context, 0); result != kSuccess) return result;
  return cuda.set_current(context);
}

constexpr int kMultiprocessors = 16, kMajor = 75, kMinor = 76;      // CUdevice_attribute
constexpr int kMaxSharedMemory = 97;                                // of a block that opts in
constexpr int kDeclaredSharedMemory = 1, kDynamicSharedMemory = 8;  // CUfunction_attribute

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT Result hipRuntimeGetVersion(int *version) {
  if (driver().state != kSuccess) return driver().state;
  *version = 60000000;  // the functions below are those of HIP 6
  return kSuccess;
}
EXPORT Result hipGetDeviceCount(int *count) {
  return driver().state == kSuccess ? driver().device_count(count) : kNoDevice;
}
EXPORT Result hipGetDevice(int *device) {
  const Result result = with_context();
  return result == kSuccess ? driver().current_device(device) : result;
}
EXPORT Result hipSetDevice(int device) {
  if (driver().state != kSuccess) return driver().state;
  Context context = nullptr;
  const Result result = driver().primary_retain(&context, device);
  return result == kSuccess ? driver().set_current(context) : result;
}
// Offsets: src/device/hip_abi.h, kPropertiesR0600.
EXPORT Result hipGetDevicePropertiesR0600(void *properties, int device) {
  char *bytes = static_cast<char *>(properties);
  std::memset(bytes, 0, 1472);
  int multiprocessors = 0, major = 0, minor = 0;
  Result result = driver().device_name(bytes, 256, device);
  if (result == kSuccess)
    result = driver().device_attribute(&multiprocessors, kMultiprocessors, device);
  if (result == kSuccess) result = driver().device_attribute(&major, kMajor, device);
  if (result == kSuccess) result = driver().device_attribute(&minor, kMinor, device);
  std::memcpy(bytes + 388, &multiprocessors, sizeof multiprocessors);
  std::snprintf(bytes + 1160, 256, "sm_%d%d", major, minor);
  return result;
}
EXPORT Result hipStreamGetDevice(void *stream, int *device) {
  Context context = nullptr;
  Result result = with_context();
  if (result == kSuccess) result = driver().stream_context(stream, &context);
  if (result == kSuccess) result = driver().push(context);
  if (result != kSuccess) return result;
  result = driver().current_device(device);
  driver().pop(&context);
  return result;
}
EXPORT Result hipStreamIsCapturing(void *stream, int *status) {
  const Result result = with_context();
  return result == kSuccess ? driver().stream_capturing(stream, status) : result;
}
EXPORT Result hipModuleLoadData(void **module, const void *image) {
  const Result result = with_context();
  return result == kSuccess ? driver().module_load(module, image) : result;
}
EXPORT Result hipModuleUnload(void *module) {
  const Result result = with_context();
  return result == kSuccess ? driver().module_unload(module) : result;
}
EXPORT Result hipModuleGetFunction(void **function, void *module, const char *name) {
  const Result result = driver().module_function(function, module, name);
  if (result != kSuccess) return result;
  // Launches may ask for all LDS that the device has; CUDA wants to be told past 48 KiB.
  int device = 0, all = 0, declared = 0;
  const bool known = driver().current_device(&device) == kSuccess &&
                     driver().device_attribute(&all, kMaxSharedMemory, device) == kSuccess &&
                     driver().function_get(&declared, kDeclaredSharedMemory, *function) == kSuccess;
  return known ? driver().function_set(*function, kDynamicSharedMemory, all - declared) : result;
}
EXPORT Result hipModuleLaunchKernel(void *function, unsigned grid_x, unsigned grid_y,
                                    unsigned grid_z, unsigned block_x, unsigned block_y,
                                    unsigned block_z, unsigned lds_bytes, void *stream,
                                    void **arguments, void **extra) {
  const Result result = with_context();
  if (result != kSuccess) return result;
  // {1, buffer, 2, its size's address, 3} of HIP; CUDA's list ends with 0.
  void *list[5] = {};
  if (extra) std::memcpy(list, extra, 4 * sizeof *list);
  return driver().launch(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, lds_bytes,
                         stream, arguments, extra ? list : nullptr);
}
EXPORT Result hipMalloc(void **pointer, size_t bytes) {
  Result result = with_context();
  uint64_t address = 0;
  if (result == kSuccess && bytes > 0) result = driver().alloc(&address, bytes);
  *pointer = reinterpret_cast<void *>(address);
  return result;
}
EXPORT Result hipFree(void *pointer) {
  const Result result = with_context();
  if (result != kSuccess || !pointer) return result;
  return driver().release(reinterpret_cast<uint64_t>(pointer));
}
// Unified addresses say what is where.
EXPORT Result hipMemcpy(void *to, const void *from, size_t bytes, int) {
  const Result result = with_context();
  if (result != kSuccess || bytes == 0) return result;
  return driver().copy(reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from), bytes);
}
EXPORT Result hipDeviceSynchronize() {
  const Result result = with_context();
  return result == kSuccess ? driver().synchronize() : result;
}
EXPORT Result hipStreamCreate(void **stream) {
  const Result result = with_context();
  return result == kSuccess ? driver().stream_create(stream, 0) : result;
}
EXPORT Result hipStreamDestroy(void *stream) {
  return driver().stream_destroy(stream);
}
EXPORT Result hipStreamSynchronize(void *stream) {
  const Result result = with_context();
  return result == kSuccess ? driver().stream_synchronize(stream) : result;
}
// The modes have the same numbers.
EXPORT Result hipStreamBeginCapture(void *stream, int mode) {
  return driver().begin_capture(stream, mode);
}
EXPORT Result hipStreamEndCapture(void *stream, void **graph) {
  return driver().end_capture(stream, graph);
}
EXPORT Result hipGraphInstantiate(void **exec, void *graph, void **, char *, size_t) {
  return driver().graph_instantiate(exec, graph, 0);
}
EXPORT Result hipGraphLaunch(void *exec, void *stream) {
  return driver().graph_launch(exec, stream);
}
EXPORT Result hipGraphDestroy(void *graph) {
  return driver().graph_destroy(graph);
}
EXPORT Result hipGraphExecDestroy(void *exec) {
  return driver().graph_exec_destroy(exec);
}
EXPORT Result hipEventCreate(void **event) {
  const Result result = with_context();
  return result == kSuccess ? driver().event_create(event, 0) : result;
}
EXPORT Result hipEventDestroy(void *event) {
  return driver().event_destroy(event);
}
EXPORT Result hipEventRecord(void *event, void *stream) {
  return driver().event_record(event, stream);
}
EXPORT Result hipEventSynchronize(void *event) {
  return driver().event_synchronize(event);
}
EXPORT Result hipEventElapsedTime(float *milliseconds, void *begin, void *end) {
  return driver().elapsed(milliseconds, begin, end);
}
EXPORT Result hipGetLastError() {
  return kSuccess;  // the driver API keeps none
}
EXPORT const char *hipGetErrorName(Result error) {
  const char *name = nullptr;
  if (driver().error_name) driver().error_name(error, &name);
  return name ? name : "no usable libcuda.so.1";
}
EXPORT const char *hipGetErrorString(Result error) {
  const char *text = nullptr;
  if (driver().error_string) driver().error_string(error, &text);
  return text ? text : "no usable libcuda.so.1";
}
