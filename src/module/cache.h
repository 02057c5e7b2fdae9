// Loaded kernels, one per device and archive entry.
//
// The warm path is one atomic load. A first use locks its own kernel only: threads that need the
// same kernel wait for one load, threads that need others do not wait. A failed load is not
// remembered; the next use tries again.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "src/archive/reader.h"
#include "src/device/runtime.h"
#include "src/status/status.h"

namespace flydsl::module {

// The kernel arguments an operator is about to pass; an entry that expects others is refused.
struct KernargContract {
  uint64_t layout_id;
  uint32_t bytes;
};

class ModuleCache {
 public:
  // Both outlive the cache.
  ModuleCache(const device::Runtime &runtime, const archive::Archive &archive);
  // Unloads everything. No call may be running, no loaded kernel at work.
  ~ModuleCache();
  ModuleCache(const ModuleCache &) = delete;
  ModuleCache &operator=(const ModuleCache &) = delete;

  // The kernel of `entry` on `device`, which the caller has made current. `stream` is the one it
  // will be launched on: if that is being captured into a graph and the kernel is not loaded yet,
  // CAPTURE_NEEDS_PREFETCH, since loading could invalidate the capture. Errors: ARCHIVE_*,
  // KERNEL_LOAD_FAILED, DEVICE_ERROR, DEVICE_LOST, OUT_OF_DEVICE_MEMORY.
  Status get(int device, uint32_t entry, const KernargContract &contract, device::HipStream stream,
             device::HipFunction *function);

 private:
  struct Slot {
    std::atomic<device::HipFunction> function{nullptr};
    std::mutex mutex;  // guards the fields below and loading
    device::HipModule module = nullptr;
    // HIP does not promise that a module copies its image, so it lives as long as the module.
    std::vector<unsigned char> image;
  };
  using Table = std::unique_ptr<Slot[]>;

  Slot &slot(int device, uint32_t entry);
  Status check_entry(int device, uint32_t entry, const KernargContract &contract) const;
  Status load(uint32_t entry, Slot *slot) const;
  Status capture_error(int device, uint32_t entry, const std::string &detail) const;

  const device::Runtime &runtime_;
  const archive::Archive &archive_;
  std::mutex tables_mutex_;  // guards the creation of a device's table
  std::vector<Table> table_storage_;
  std::vector<std::atomic<Slot *>> tables_;
};

}  // namespace flydsl::module
