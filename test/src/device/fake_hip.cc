#include "test/src/device/fake_hip.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#ifndef FAKE_HIP_MAJOR
#error "FAKE_HIP_MAJOR is the HIP version to pretend to be"
#endif

#define EXPORT extern "C" __attribute__((visibility("default")))

using flydsl::test::FakeHip;

namespace {

thread_local int sticky_error = 0;
thread_local int device = 0;
thread_local int stream_capture_mode = 0;  // global

FakeHip state;

struct Module {
  int device;
};
struct Function {
  Module *module;
  char symbol[128];
};
// Functions are never freed: a test may look at a handle after its module is gone.
std::atomic<int> function_count;
Function functions[4096];

// Guards what is recorded besides the counters: tests launch and load from many threads.
std::mutex record_mutex;

int result(int code) {
  if (code != 0) sticky_error = code;
  return code;
}

int peek() {
  return sticky_error;
}
int current() {
  return device;
}
int capture_mode() {
  return stream_capture_mode;
}
void make_current(int which) {
  device = which;
}

void reset() {
  std::memset(&state.runtime_version, 0, sizeof state.runtime_version);
  state.runtime_version = FAKE_HIP_MAJOR * 10000000 + 200000 + 7;
  state.device_count = 2;
  for (auto &id : state.target_id) std::strcpy(id, "gfx950:sramecc+:xnack-");
  state.compute_units = 256;
  state.captures_ended = false;
  state.load_delay_us = 0;
  for (int *error :
       {&state.version_error, &state.count_error, &state.properties_error, &state.get_device_error,
        &state.set_device_error, &state.stream_device_error, &state.capture_error,
        &state.load_error, &state.function_error, &state.launch_error, &state.malloc_error,
        &state.memcpy_error, &state.synchronize_error}) {
    *error = 0;
  }
  for (auto *counter : {&state.loads, &state.unloads, &state.launches, &state.live_modules,
                        &state.allocations, &state.strict_unloads}) {
    *counter = 0;
  }
  for (auto &counter : state.loads_on_device) counter = 0;
  std::memset(&state.last_launch, 0, sizeof state.last_launch);
  std::memset(state.recent, 0, sizeof state.recent);
  std::memset(state.last_image, 0, sizeof state.last_image);
  state.peek_at_last_error = peek;
  state.current_device = current;
  state.capture_mode = capture_mode;
  state.make_current = make_current;
  state.reset = reset;
  sticky_error = 0;
  device = 0;
}

[[maybe_unused]] void put(void *properties, size_t offset, const void *data, size_t bytes) {
  std::memcpy(static_cast<char *>(properties) + offset, data, bytes);
}

}  // namespace

EXPORT FakeHip *fake_hip() {
  if (!state.reset) reset();
  return &state;
}

EXPORT int hipRuntimeGetVersion(int *version) {
  *version = fake_hip()->runtime_version;
  return result(state.version_error);
}

EXPORT int hipGetDeviceCount(int *count) {
  *count = state.count_error ? 0 : state.device_count;
  return result(state.count_error);
}

EXPORT int hipGetDevice(int *which) {
  *which = device;
  return result(state.get_device_error);
}

EXPORT int hipSetDevice(int which) {
  if (which < 0 || which >= state.device_count) return result(101);
  if (state.set_device_error == 0) device = which;
  return result(state.set_device_error);
}

// The unversioned symbol: layout R0000. Beyond version 5 it gives a name that no test expects, so
// that its use shows.
EXPORT int hipGetDeviceProperties(void *properties, int which) {
  if (which < 0 || which >= state.device_count) return result(101);
  std::memset(properties, 0, 792);
  const char *name = FAKE_HIP_MAJOR == 5 ? "Fake 5" : "wrong layout";
  put(properties, 0, name, std::strlen(name) + 1);
  put(properties, 336, &state.compute_units, 4);
  put(properties, 396, state.target_id[which], 64);
  return result(state.properties_error);
}

#if FAKE_HIP_MAJOR >= 6
EXPORT int hipGetDevicePropertiesR0600(void *properties, int which) {
  if (which < 0 || which >= state.device_count) return result(101);
  std::memset(properties, 0xEE, 1472);
  put(properties, 0, "Fake 600", 9);
  put(properties, 388, &state.compute_units, 4);
  put(properties, 1160, state.target_id[which], 64);
  return result(state.properties_error);
}

EXPORT int hipStreamGetDevice(void *stream, int *which) {
  *which = static_cast<int>((reinterpret_cast<uintptr_t>(stream) - 1024) / 16);
  return result(state.stream_device_error);
}
#endif

EXPORT int hipStreamIsCapturing(void *stream, int *status) {
  *status = state.captures_ended ? 0 : static_cast<int>(reinterpret_cast<uintptr_t>(stream) & 1);
  return result(state.capture_error);
}

#if FAKE_HIP_MAJOR >= 6
EXPORT int hipThreadExchangeStreamCaptureMode(int *mode) {
  std::swap(stream_capture_mode, *mode);
  return 0;
}
#endif

#ifndef FAKE_HIP_INCOMPLETE
EXPORT int hipModuleLoadData(void **module, const void *image) {
  if (state.load_delay_us) usleep(static_cast<useconds_t>(state.load_delay_us));
  if (state.load_error) return result(state.load_error);
  ++state.loads;
  ++state.loads_on_device[device];
  ++state.live_modules;
  const std::lock_guard lock(record_mutex);
  std::memcpy(state.last_image, image, sizeof state.last_image);
  *module = new Module{device};
  return 0;
}
#endif

EXPORT int hipModuleUnload(void *module) {
  if (static_cast<Module *>(module)->device != device) return result(400);
  ++state.unloads;
  state.strict_unloads += stream_capture_mode != 2;
  --state.live_modules;
  delete static_cast<Module *>(module);
  return 0;
}

EXPORT int hipModuleGetFunction(void **function, void *module, const char *symbol) {
  if (state.function_error) return result(state.function_error);
  Function &made = functions[function_count++ % 4096];
  made.module = static_cast<Module *>(module);
  std::strncpy(made.symbol, symbol, sizeof made.symbol - 1);
  *function = &made;
  return 0;
}

EXPORT int hipModuleLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                 unsigned by, unsigned bz, unsigned lds_bytes, void *stream,
                                 void **params, void **extra) {
  const Function &kernel = *static_cast<Function *>(function);
  // What goes wrong on real devices: a kernel of another device, or extra not in the documented
  // form.
  if (kernel.module->device != device || params || extra[0] != reinterpret_cast<void *>(1) ||
      extra[2] != reinterpret_cast<void *>(2) || extra[4] != reinterpret_cast<void *>(3)) {
    return result(400);
  }
  if (state.launch_error) return result(state.launch_error);
  const int number = state.launches++;
  FakeHip::Launch launch{};
  std::strcpy(launch.symbol, kernel.symbol);
  launch.device = device;
  launch.stream = stream;
  const unsigned grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
  std::memcpy(launch.grid, grid, sizeof grid);
  std::memcpy(launch.block, block, sizeof block);
  launch.lds_bytes = lds_bytes;
  launch.kernarg_bytes = static_cast<unsigned>(*static_cast<size_t *>(extra[3]));
  std::memcpy(launch.kernarg, extra[1], launch.kernarg_bytes < 1024 ? launch.kernarg_bytes : 1024);
  const std::lock_guard lock(record_mutex);
  state.last_launch = state.recent[number % 8] = launch;
  return 0;
}

EXPORT int hipMalloc(void **pointer, size_t bytes) {
  if (state.malloc_error) return result(state.malloc_error);
  ++state.allocations;
  // As HIP's own: tuning rows tell alignments apart.
  constexpr size_t kAlignment = 256;
  *pointer = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  return *pointer ? 0 : result(2);
}

EXPORT int hipFree(void *pointer) {
  --state.allocations;
  std::free(pointer);
  return 0;
}

EXPORT int hipMemcpy(void *destination, const void *source, size_t bytes, int kind) {
  if (state.memcpy_error) return result(state.memcpy_error);
  if (kind != 1 && kind != 2) return result(21);
  std::memcpy(destination, source, bytes);
  return 0;
}

EXPORT int hipDeviceSynchronize() {
  return result(state.synchronize_error);
}

EXPORT int hipGetLastError() {
  const int code = sticky_error;
  sticky_error = 0;
  return code;
}

EXPORT const char *hipGetErrorName(int code) {
  return code == 719 ? "hipErrorLaunchFailure" : "hipErrorFake";
}
EXPORT const char *hipGetErrorString(int code) {
  return code == 719 ? "unspecified launch failure" : "fake failure";
}

#ifdef FAKE_HIP_EMULATOR
// What marks a runtime as the emulator, and explains its refusals (emulator/hip/flydsl_emu.h).
EXPORT const char *flydsl_emu_last_error() {
  return "the argument was wrong";
}
EXPORT const char *flydsl_emu_last_fault() {
  return "lane 5 read out of bounds";
}
#endif
