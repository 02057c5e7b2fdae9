// A device library that stands between the product and another one, named by HIP_BETWEEN_TARGET: it counts the calls of every function
// and makes one of them fail. (fake_hip computes nothing; this one lets kernels run.)
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <string>

namespace flydsl::test {

// Every function of the product's table that can fail.
enum HipCall {
  kRuntimeGetVersion,
  kGetDeviceCount,
  kGetDevice,
  kSetDevice,
  kGetDeviceProperties,
  kStreamGetDevice,
  kStreamIsCapturing,
  kModuleLoadData,
  kModuleUnload,
  kModuleGetFunction,
  kModuleLaunchKernel,
  kMalloc,
  kFree,
  kMallocAsync,
  kFreeAsync,
  kMemcpy,
  kDeviceSynchronize,
  kHipCalls
};

struct HipBetween {
  std::atomic<int> calls[kHipCalls];
  // The nth call of `failing` from the reset on, from 1, returns `code` without reaching the target; 0: none does.
  std::atomic<int> failing, nth, code;
  // With `lasting` every call from that one on fails so, as on a device that is lost; `lost`: it has come to that.
  std::atomic<bool> lasting, lost;
  const char *target_id[8];  // what devices say that they are; null: as the target says

  std::atomic<bool> over;  // a call from here on ends the process with a message

  const char *(*name)(int call);
  int (*peek_at_last_error)();  // the calling thread's, of injected failures
  void reset() {
    for (auto &count : calls) count = 0;
    nth = code = failing = 0;
    lasting = lost = false;
    for (auto &id : target_id) id = nullptr;
  }
  void fail(int call, int number, int with, bool from_then_on = false) {
    reset();
    failing = call;
    code = with;
    lasting = from_then_on;
    nth = number;
  }
};

inline HipBetween *open_hip_between(const char *path, const std::string &target) {
  setenv("HIP_BETWEEN_TARGET", target.c_str(), 1);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return nullptr;
  auto *get = reinterpret_cast<HipBetween *(*)()>(dlsym(library, "hip_between"));
  return get ? get() : nullptr;
}

}  // namespace flydsl::test
