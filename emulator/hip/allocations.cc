#include "emulator/hip/allocations.h"

#include "emulator/hip/memory_pool.h"
#include "emulator/memory/address_space.h"
#include "emulator/memory/definedness.h"

namespace flydsl::emu::hip {
namespace {

const char *text(Allocation::Kind kind) {
  switch (kind) {
    case Allocation::Kind::kDevice:
      return "hipMalloc";
    case Allocation::Kind::kHost:
      return "hipHostMalloc";
    case Allocation::Kind::kManaged:
      return "hipMallocManaged";
    case Allocation::Kind::kRegistered:
      break;
  }
  return "hipHostRegister";
}

}  // namespace

Allocations &Allocations::instance() {
  static auto *const allocations = new Allocations;  // never destroyed, as with device_table()
  return *allocations;
}

void *Allocations::allocate(Allocation wanted) {
  Device *const device = wanted.device;
  if (wanted.on_device()) {
    size_t used = device->used_bytes;
    do {
      if (wanted.bytes > device->memory_bytes - used) return nullptr;
    } while (!device->used_bytes.compare_exchange_weak(used, used + wanted.bytes));
  }
  wanted.begin = AddressSpace::instance().allocate(wanted.bytes, text(wanted.kind));
  if (wanted.begin == nullptr) {
    if (wanted.on_device()) device->used_bytes -= wanted.bytes;
    return nullptr;
  }
  if (wanted.kind == Allocation::Kind::kDevice && Definedness::wanted())
    Definedness::instance().fresh(reinterpret_cast<uint64_t>(wanted.begin), wanted.bytes);
  if (wanted.pool) wanted.pool->add(wanted.bytes);
  std::lock_guard<std::mutex> lock(mutex_);
  void *const begin = wanted.begin;
  by_begin_[begin] = std::move(wanted);
  return begin;
}

bool Allocations::release(void *pointer) {
  Allocation allocation;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = by_begin_.find(pointer);
    if (found == by_begin_.end() || found->second.kind == Allocation::Kind::kRegistered)
      return false;
    allocation = found->second;
    by_begin_.erase(found);
  }
  if (Definedness::wanted()) Definedness::instance().forget(reinterpret_cast<uint64_t>(pointer));
  AddressSpace::instance().release(pointer);
  if (allocation.on_device()) allocation.device->used_bytes -= allocation.bytes;
  if (allocation.pool) allocation.pool->remove(allocation.bytes);
  return true;
}

bool Allocations::begin_free(void *pointer) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = by_begin_.find(pointer);
  if (found == by_begin_.end() || found->second.kind == Allocation::Kind::kRegistered ||
      found->second.freeing)
    return false;
  return found->second.freeing = true;
}

void Allocations::cancel_free(void *pointer) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = by_begin_.find(pointer);
  if (found != by_begin_.end()) found->second.freeing = false;
}

hipError_t Allocations::register_host(void *pointer, size_t bytes, Device *device, unsigned flags) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto end = static_cast<const char *>(pointer) + bytes;
  auto after = by_begin_.lower_bound(end);
  if (after != by_begin_.begin()) {
    const Allocation &below = std::prev(after)->second;
    if (static_cast<const char *>(below.begin) + below.bytes > static_cast<const char *>(pointer))
      return hipErrorHostMemoryAlreadyRegistered;
  }
  by_begin_[pointer] = {pointer, bytes,   device, Allocation::Kind::kRegistered,
                        flags,   nullptr, false};
  AddressSpace::instance().remember(pointer, bytes, true, text(Allocation::Kind::kRegistered));
  return hipSuccess;
}

bool Allocations::unregister_host(void *pointer) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = by_begin_.find(pointer);
  if (found == by_begin_.end() || found->second.kind != Allocation::Kind::kRegistered) return false;
  by_begin_.erase(found);
  AddressSpace::instance().forget(pointer);
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
