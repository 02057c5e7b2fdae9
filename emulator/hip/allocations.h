// Which HIP call made which allocation, for accounting per device and for hipPointerGetAttributes.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>

#include "emulator/hip/device.h"

namespace flydsl::emu::hip {

struct MemoryPool;

struct Allocation {
  enum class Kind : uint8_t {
    kDevice,      // hipMalloc
    kHost,        // hipHostMalloc
    kManaged,     // hipMallocManaged
    kRegistered,  // hipHostRegister: the client's own
  };

  void *begin = nullptr;
  size_t bytes = 0;
  Device *device = nullptr;
  Kind kind = Kind::kDevice;
  unsigned flags = 0;
  std::shared_ptr<MemoryPool> pool;  // of hipMallocAsync

  bool freeing = false;  // a hipFreeAsync is on its way

  bool on_device() const { return kind == Kind::kDevice; }  // counts as the device's memory
};

class Allocations {
 public:
  static Allocations &instance();

  // `wanted` without its begin. nullptr when the device or the host has no room.
  void *allocate(Allocation wanted);
  // False when `pointer` is not the start of an allocation, or of a registered range.
  bool release(void *pointer);
  // Marks an allocation whose release() is queued; false as release(), or when one is queued already.
  bool begin_free(void *pointer);
  void cancel_free(void *pointer);
  // hipErrorHostMemoryAlreadyRegistered when a part of the range is known already.
  hipError_t register_host(void *pointer, size_t bytes, Device *device, unsigned flags);
  bool unregister_host(void *pointer);
  // The allocation that contains `pointer`.
  std::optional<Allocation> find(const void *pointer) const;

 private:
  mutable std::mutex mutex_;
  std::map<const void *, Allocation> by_begin_;
};

}  // namespace flydsl::emu::hip
