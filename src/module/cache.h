// Loaded kernels, one per device and archive entry.
//
// The warm path is one atomic load. A first use locks its own kernel only: threads that need the
// same kernel wait for one load, threads that need others do not wait. A failed load is not
// remembered; the next use tries again.
//
// With a limit a load that passes it unloads the kernels of its device that were not used for the longest time. Those that a
// call holds (Use) stay, and so does for ever what was launched into a capture: a graph goes on holding its function. None goes
// during a capture, which HIP would end (clr, CHECK_SUPPORTED_DURING_CAPTURE): unloading waits for the device.
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
  const KernargContract *other =
      nullptr;  // what else the operator can pass, for kernels of another backend

  bool is_of(const archive::Entry &entry) const {
    return entry.kernarg_layout_id == layout_id && entry.kernarg_bytes == bytes;
  }
};

// Where the code objects of kernels come from that are not in the archive's file.
class ImageSource {
 public:
  virtual ~ImageSource() = default;
  virtual Status image(uint32_t entry, std::vector<unsigned char> *image) = 0;
};

class ModuleCache {
 private:
  struct Slot {
    std::atomic<device::HipFunction> function{nullptr};
    // With a limit: calls that hold it, when it was used last, whether a graph may hold it.
    std::atomic<uint32_t> uses{0};
    std::atomic<uint64_t> last_use{0};
    std::atomic<bool> in_graph{false};
    std::mutex mutex;  // guards the fields below and loading
    device::HipModule module = nullptr;
    // HIP does not promise that a module copies its image, so it lives as long as the module.
    std::vector<unsigned char> image;
  };

 public:
  // Keeps a kernel from being unloaded while a call is about to launch it.
  class Use {
   public:
    Use() = default;
    ~Use() {
      if (held_) held_->uses.fetch_sub(1);
    }
    Use(const Use &) = delete;
    Use &operator=(const Use &) = delete;
    device::HipFunction function() const { return function_; }

   private:
    friend class ModuleCache;
    device::HipFunction function_ = nullptr;
    Slot *held_ = nullptr;  // only with a limit
  };

  // All outlive the cache. `most_loaded`: kernels on a device, 0 for no limit. `others`: null where the archive's file has all.
  ModuleCache(const device::Runtime &runtime, const archive::Archive &archive,
              uint32_t most_loaded = 0, ImageSource *others = nullptr);
  // Unloads everything. No call may be running, no loaded kernel at work.
  ~ModuleCache();
  ModuleCache(const ModuleCache &) = delete;
  ModuleCache &operator=(const ModuleCache &) = delete;

  // The kernel of `entry` on `device`, which the caller has made current. `stream` is the one it
  // will be launched on: if that is being captured into a graph and the kernel is not loaded yet,
  // CAPTURE_NEEDS_PREFETCH, since loading could invalidate the capture. Errors: ARCHIVE_*,
  // COMPILER_NOT_FOUND, COMPILE_FAILED, KERNEL_LOAD_FAILED, DEVICE_ERROR, DEVICE_LOST, OUT_OF_DEVICE_MEMORY.
  Status get(int device, uint32_t entry, const KernargContract &contract, device::HipStream stream,
             Use *use);
  // Its function if it is loaded and stays so; else null.
  device::HipFunction loaded(int device, uint32_t entry) const {
    const Slot *table = tables_[static_cast<size_t>(device)].load(std::memory_order_acquire);
    return table && most_loaded_ == 0 ? table[entry].function.load(std::memory_order_acquire)
                                      : nullptr;
  }

 private:
  using Table = std::unique_ptr<Slot[]>;

  Slot &slot(int device, uint32_t entry);
  Status check_entry(int device, uint32_t entry, const KernargContract &contract) const;
  Status load(uint32_t entry, Slot *slot) const;
  Status get_loaded(int device, uint32_t entry, const KernargContract &contract,
                    device::HipStream stream, Slot *slot, device::HipFunction *function);
  Status hold(device::HipStream stream, Slot *slot, Use *use);
  void note_capture(device::HipStream stream);
  bool amid_capture();
  void unload_least_used(int device, const Slot *loaded_now);
  bool try_unload(Slot *slot) const;
  Status capture_error(int device, uint32_t entry, const std::string &detail) const;

  const device::Runtime &runtime_;
  const archive::Archive &archive_;
  ImageSource *const others_;
  const uint32_t most_loaded_;
  std::atomic<uint64_t> clock_{0};  // of last_use
  std::mutex unload_mutex_;         // one thread unloads at a time
  std::mutex captures_mutex_;       // guards the next
  // With a limit: of calls. The captures may have ended since.
  std::vector<device::HipStream> captured_streams_;
  std::mutex tables_mutex_;  // guards the creation of a device's table
  std::vector<Table> table_storage_;
  std::vector<std::atomic<Slot *>> tables_;
};

}  // namespace flydsl::module
