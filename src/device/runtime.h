// A device runtime in use: its devices, and the calls the rest of the library makes, with errors as
// Status.
//
// Every failure clears the runtime's sticky per-thread error (hipGetLastError): it has been
// reported through our status, and must not surface again in the caller's own hipPeekAtLastError.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/device/api.h"

namespace flydsl::device {

struct DeviceInfo {
  std::string name;
  std::string target_id;  // e.g. "gfx950:sramecc+:xnack-"
  uint32_t compute_units = 0;
};

struct LaunchShape {
  uint32_t grid[3];   // work-groups
  uint32_t block[3];  // work-items per work-group
  uint32_t lds_dynamic_bytes;
};

class Runtime {
 public:
  // Errors: as load_api, and NO_DEVICE.
  static Status open(flydsl_aot_device_kind kind, const char *option_path,
                     std::unique_ptr<Runtime> *runtime);

  const Api &api() const { return api_; }
  const std::vector<DeviceInfo> &devices() const { return devices_; }

  Status current_device(int *device) const;
  // The device that owns `stream`: the current one for null and for the per-thread and legacy
  // streams. HIP 5 has no way to ask; there the current device is taken, as the caller must make a
  // stream's device current anyway.
  Status stream_device(HipStream stream, int *device) const;
  // Whether work given to `stream` is being captured into a graph. The null stream cannot be
  // captured.
  Status stream_capturing(HipStream stream, bool *capturing) const;

  Status load_module(const void *image, HipModule *module) const;
  void unload_module(HipModule module) const;
  Status get_function(HipModule module, const char *symbol, HipFunction *function) const;
  Status launch(HipFunction function, const LaunchShape &shape, HipStream stream, void *kernarg,
                size_t kernarg_bytes) const {
    void *extra[] = {launch_param_buffer_pointer(), kernarg, launch_param_buffer_size(),
                     &kernarg_bytes, launch_param_end()};
    return check(api_.module_launch_kernel(function, shape.grid[0], shape.grid[1], shape.grid[2],
                                           shape.block[0], shape.block[1], shape.block[2],
                                           shape.lds_dynamic_bytes, stream, nullptr, extra),
                 "hipModuleLaunchKernel");
  }

  Status malloc(size_t bytes, void **pointer) const;
  Status free(void *pointer) const;
  // In the order of `stream`.
  Status malloc_async(size_t bytes, HipStream stream, void **pointer) const;
  Status free_async(void *pointer, HipStream stream) const;
  Status upload(void *device_dst, const void *host_src, size_t bytes) const;
  Status download(void *host_dst, const void *device_src, size_t bytes) const;
  Status synchronize() const;

  // Status of a call's return code; names the call, the code and its text.
  Status check(HipError code, const char *call) const {
    return code == kHipSuccess ? Status() : failure(code, call);
  }

 private:
  Status failure(HipError code, const char *call) const;
  Status read_devices();
  std::string emulator_explanation(HipError code) const;

  Api api_;
  std::vector<DeviceInfo> devices_;
};

// For a scope the thread may load and unload, although a stream that is not concerned, maybe another thread's, is being captured in a
// mode that forbids it: HIP would end that capture.
class AmidCaptures {
 public:
  explicit AmidCaptures(const Api &api);
  ~AmidCaptures();
  AmidCaptures(const AmidCaptures &) = delete;
  AmidCaptures &operator=(const AmidCaptures &) = delete;

 private:
  const Api &api_;
  int mode_ = kHipStreamCaptureModeRelaxed;  // then the caller's
  bool exchanged_ = false;
};

// Makes a device current for a scope and restores the caller's.
class DeviceScope {
 public:
  explicit DeviceScope(const Runtime &runtime) : runtime_(runtime) {}
  ~DeviceScope() {
    if (restore_ >= 0) restore();
  }
  DeviceScope(const DeviceScope &) = delete;
  DeviceScope &operator=(const DeviceScope &) = delete;

  Status enter(int device);

 private:
  void restore() const;

  const Runtime &runtime_;
  int restore_ = -1;  // -1: nothing to restore
};

}  // namespace flydsl::device
