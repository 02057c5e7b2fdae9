// Memory of the device, allocated and freed in the order of a stream.
#pragma once

#include <hip/hip_runtime.h>

#include <cstdint>

#include "flydsl_aot/device.h"

namespace flydsl::aotriton {

class StreamMemory {
 public:
  StreamMemory(flydsl_aot_handle *handle, hipStream_t stream) : handle_(handle), stream_(stream) {}
  ~StreamMemory() {
    if (memory_) flydsl_aot_device_free_async(handle_, memory_, stream_);
  }
  StreamMemory(const StreamMemory &) = delete;
  StreamMemory &operator=(const StreamMemory &) = delete;

  // Once.
  flydsl_aot_status allocate(uint64_t bytes) {
    return flydsl_aot_device_malloc_async(handle_, bytes, stream_, &memory_);
  }
  void *get() const { return memory_; }
  flydsl_aot_handle *handle() const { return handle_; }
  hipStream_t stream() const { return stream_; }

 private:
  flydsl_aot_handle *handle_;
  hipStream_t stream_;
  void *memory_ = nullptr;
};

}  // namespace flydsl::aotriton
