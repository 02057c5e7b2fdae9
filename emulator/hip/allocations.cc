#include "emulator/hip/allocations.h"

#include "emulator/memory/address_space.h"

namespace flydsl::emu::hip {

Allocations &Allocations::instance() {
  static auto *const allocations = new Allocations;  // never destroyed, as with device_table()
  return *allocations;
}

void *Allocations::allocate(size_t bytes, Device *device, bool host, unsigned flags) {
  if (!host) {
    size_t used = device->used_bytes;
    do {
      if (bytes > device->memory_bytes - used) return nullptr;
    } while (!device->used_bytes.compare_exchange_weak(used, used + bytes));
  }
  void *memory = AddressSpace::instance().allocate(bytes, host ? "hipHostMalloc" : "hipMalloc");
  if (memory == nullptr) {
    if (!host) device->used_bytes -= bytes;
    return nullptr;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  by_begin_[memory] = {memory, bytes, device, host, flags};
  return memory;
}

bool Allocations::release(void *pointer) {
  Allocation allocation;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = by_begin_.find(pointer);
    if (found == by_begin_.end()) return false;
    allocation = found->second;
    by_begin_.erase(found);
  }
  AddressSpace::instance().release(pointer);
  if (!allocation.host) allocation.device->used_bytes -= allocation.bytes;
  return true;
}

std::optional<Allocation> Allocations::find(const void *pointer) const {
  std::lock_guard<std::mutex> lock(mutex_);
  auto after = by_begin_.upper_bound(pointer);
  if (after == by_begin_.begin()) return std::nullopt;
  const Allocation &allocation = (--after)->second;
  const auto distance = static_cast<size_t>(static_cast<const char *>(pointer) -
                                            static_cast<const char *>(allocation.begin));
  if (distance >= allocation.bytes) return std::nullopt;
  return allocation;
}

}  // namespace flydsl::emu::hip
