#include "test/support/hip_between.h"

#include <cstdio>
#include <cstring>

#include "src/device/hip_abi.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

using flydsl::test::HipBetween;
using namespace flydsl::test;

namespace {

constexpr const char *kNames[kHipCalls] = {"hipRuntimeGetVersion",
                                           "hipGetDeviceCount",
                                           "hipGetDevice",
                                           "hipSetDevice",
                                           "hipGetDevicePropertiesR0600",
                                           "hipStreamGetDevice",
                                           "hipStreamIsCapturing",
                                           "hipModuleLoadData",
                                           "hipModuleUnload",
                                           "hipModuleGetFunction",
                                           "hipModuleLaunchKernel",
                                           "hipMalloc",
                                           "hipFree",
                                           "hipMallocAsync",
                                           "hipFreeAsync",
                                           "hipMemcpy",
                                           "hipDeviceSynchronize"};

const char *name_of(int call) {
  return kNames[call];
}

thread_local int sticky_error = 0;
int peek() {
  return sticky_error;
}

// Never destroyed: calls from a client's static destructors are counted too.
HipBetween &state() {
  static HipBetween *const made = [] {
    auto *between = new HipBetween{};
    between->name = name_of;
    between->peek_at_last_error = peek;
    return between;
  }();
  return *made;
}

void *symbol(const char *name) {
  static void *const library = [] {
    const char *path = std::getenv("HIP_BETWEEN_TARGET");
    void *opened = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (!opened) std::fprintf(stderr, "HIP_BETWEEN_TARGET: %s\n", path ? dlerror() : "not set");
    return opened;
  }();
  return library ? dlsym(library, name) : nullptr;
}

template <HipCall call, typename... Arguments>
int pass_on(Arguments... arguments) {
  static auto *const target = reinterpret_cast<int (*)(Arguments...)>(symbol(kNames[call]));
  HipBetween &between = state();
  const int number = ++between.calls[call];
  if (between.over) {
    std::fprintf(stderr, "%s was called after the program had ended\n", kNames[call]);
    std::abort();
  }
  if (between.nth != 0 && between.failing == call && between.nth == number)
    between.lost = between.lasting.load();
  else if (!between.lost)
    return target ? target(arguments...) : 100;
  return sticky_error = between.code;
}

template <typename Result, typename... Arguments>
Result pass_on_text(const char *name, Arguments... arguments) {
  auto *const target = reinterpret_cast<Result (*)(Arguments...)>(symbol(name));
  return target ? target(arguments...) : Result{};
}

}  // namespace

EXPORT HipBetween *hip_between() {
  return &state();
}

EXPORT int hipRuntimeGetVersion(int *version) {
  return pass_on<kRuntimeGetVersion>(version);
}
EXPORT int hipGetDeviceCount(int *count) {
  return pass_on<kGetDeviceCount>(count);
}
EXPORT int hipGetDevice(int *device) {
  return pass_on<kGetDevice>(device);
}
EXPORT int hipSetDevice(int device) {
  return pass_on<kSetDevice>(device);
}
EXPORT int hipGetDevicePropertiesR0600(void *properties, int device) {
  const int code = pass_on<kGetDeviceProperties>(properties, device);
  const char *id = device < 8 ? state().target_id[device] : nullptr;
  if (code == 0 && id)
    std::strcpy(static_cast<char *>(properties) + flydsl::device::kPropertiesR0600.target_id, id);
  return code;
}
EXPORT int hipStreamGetDevice(void *stream, int *device) {
  return pass_on<kStreamGetDevice>(stream, device);
}
EXPORT int hipStreamIsCapturing(void *stream, int *status) {
  return pass_on<kStreamIsCapturing>(stream, status);
}
// Not counted: it is no part of what a call needs, and works without it.
EXPORT int hipThreadExchangeStreamCaptureMode(int *mode) {
  return pass_on_text<int>("hipThreadExchangeStreamCaptureMode", mode);
}
EXPORT int hipModuleLoadData(void **module, const void *image) {
  return pass_on<kModuleLoadData>(module, image);
}
EXPORT int hipModuleUnload(void *module) {
  return pass_on<kModuleUnload>(module);
}
EXPORT int hipModuleGetFunction(void **function, void *module, const char *name) {
  return pass_on<kModuleGetFunction>(function, module, name);
}
EXPORT int hipModuleLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                 unsigned block_x, unsigned block_y, unsigned block_z,
                                 unsigned lds_bytes, void *stream, void **arguments, void **extra) {
  return pass_on<kModuleLaunchKernel>(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                      lds_bytes, stream, arguments, extra);
}
EXPORT int hipMalloc(void **pointer, size_t bytes) {
  return pass_on<kMalloc>(pointer, bytes);
}
EXPORT int hipFree(void *pointer) {
  return pass_on<kFree>(pointer);
}
EXPORT int hipMallocAsync(void **pointer, size_t bytes, void *stream) {
  return pass_on<kMallocAsync>(pointer, bytes, stream);
}
EXPORT int hipFreeAsync(void *pointer, void *stream) {
  return pass_on<kFreeAsync>(pointer, stream);
}
EXPORT int hipMemcpy(void *to, const void *from, size_t bytes, int kind) {
  return pass_on<kMemcpy>(to, from, bytes, kind);
}
EXPORT int hipDeviceSynchronize() {
  return pass_on<kDeviceSynchronize>();
}
EXPORT int hipGetLastError() {
  const int code = sticky_error;
  sticky_error = 0;
  return code ? code : pass_on_text<int>("hipGetLastError");
}
EXPORT const char *hipGetErrorName(int code) {
  return pass_on_text<const char *>("hipGetErrorName", code);
}
EXPORT const char *hipGetErrorString(int code) {
  return pass_on_text<const char *>("hipGetErrorString", code);
}
