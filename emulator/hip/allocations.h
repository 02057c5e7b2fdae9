// Which HIP call made which allocation, for accounting per device and for hipPointerGetAttributes.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>

#include "emulator/hip/device.h"

namespace flydsl::emu::hip {

struct Allocation {
  void *begin = nullptr;
  size_t bytes = 0;
  Device *device = nullptr;
  bool host = false;  // hipHostMalloc: does not count as device memory
  unsigned flags = 0;
};

class Allocations {
 public:
  static Allocations &instance();

  // nullptr when the device or the host has no room.
  void *allocate(size_t bytes, Device *device, bool host, unsigned flags);
  bool release(void *pointer);
  // The allocation that contains `pointer`.
  std::optional<Allocation> find(const void *pointer) const;

 private:
  mutable std::mutex mutex_;
  std::map<const void *, Allocation> by_begin_;
};

}  // namespace flydsl::emu::hip
