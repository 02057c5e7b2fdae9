// Memory pools of hipMallocAsync. A pool counts; it keeps no freed memory, so that what was freed is
// out of bounds at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "emulator/hip/device.h"
#include "emulator/hip/handle_table.h"

namespace flydsl::emu::hip {

struct MemoryPool {
  Device *device = nullptr;

  std::mutex mutex;
  uint64_t used = 0, used_high = 0;
  uint64_t release_threshold = 0;  // kept for the client
  int reuse[3] = {1, 1, 1};        // likewise

  void add(uint64_t bytes) {
    std::lock_guard<std::mutex> lock(mutex);
    used += bytes;
    used_high = std::max(used_high, used);
  }
  void remove(uint64_t bytes) {
    std::lock_guard<std::mutex> lock(mutex);
    used -= bytes;
  }
};

HandleTable<MemoryPool> &memory_pools();
// The pool that hipMallocAsync takes memory from on this device.
std::shared_ptr<MemoryPool> current_pool(Device *device);

}  // namespace flydsl::emu::hip
