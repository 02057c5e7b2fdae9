#include "emulator/memory/address_space.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "emulator/memory/host_pages.h"
#include "emulator/memory/small_blocks.h"

namespace flydsl::emu {
namespace {

constexpr int kPoison = 0xAB;
// Larger allocations are poisoned at both ends only: writing every page of a multi-gigabyte buffer
// would make it real memory before anyone uses it. The pages between read as zero.
constexpr size_t kFullPoisonBytes = size_t{64} << 20;
constexpr size_t kEndPoisonBytes = size_t{1} << 20;

void poison(void *memory, size_t bytes) {
  if (bytes <= kFullPoisonBytes) {
    std::memset(memory, kPoison, bytes);
    return;
  }
  std::memset(memory, kPoison, kEndPoisonBytes);
  std::memset(static_cast<char *>(memory) + bytes - kEndPoisonBytes, kPoison, kEndPoisonBytes);
}

}  // namespace

const Region *RegionSnapshot::find(uint64_t address) const {
  auto after = std::upper_bound(regions_.begin(), regions_.end(), address,
                                [](uint64_t value, const Region &r) { return value < r.begin; });
  if (after == regions_.begin()) return nullptr;
  const Region &candidate = *--after;
  return address < candidate.end ? &candidate : nullptr;
}

const Region *RegionSnapshot::nearest(uint64_t address) const {
  if (regions_.empty()) return nullptr;
  auto after = std::upper_bound(regions_.begin(), regions_.end(), address,
                                [](uint64_t value, const Region &r) { return value < r.begin; });
  if (after == regions_.begin()) return &*after;
  const Region &below = *std::prev(after);
  if (after == regions_.end() || address < below.end) return &below;
  return address - below.end <= after->begin - address ? &below : &*after;
}

struct AddressSpace::State {
  struct Entry {
    Region region;
    enum Owner { kSmallBlock, kOwnMapping, kForeign } owner = kForeign;
  };

  mutable std::mutex mutex;
  std::map<uint64_t, Entry> entries;  // by begin; never overlapping
  SmallBlocks small_blocks;
  size_t allocated_bytes = 0;
  mutable std::shared_ptr<const RegionSnapshot> snapshot;  // null: must be rebuilt

  void add(const void *begin, size_t bytes, bool writable, const char *what, Entry::Owner owner) {
    const uint64_t address = reinterpret_cast<uint64_t>(begin);
    entries[address] = {{address, address + bytes, writable, what}, owner};
    snapshot.reset();
  }
};

AddressSpace::AddressSpace() : state_(std::make_unique<State>()) {}
AddressSpace::~AddressSpace() = default;

AddressSpace &AddressSpace::instance() {
  // Never destroyed: a client's own static objects may release device memory after this library's
  // would be gone.
  static AddressSpace *const space = new AddressSpace;
  return *space;
}

void *AddressSpace::allocate(size_t bytes, const char *what) {
  if (bytes == 0) return nullptr;
  std::lock_guard<std::mutex> lock(state_->mutex);
  const bool small = bytes <= SmallBlocks::kLargestBytes;
  void *memory = small ? state_->small_blocks.allocate(bytes) : map_guarded_pages(bytes);
  if (memory == nullptr) return nullptr;
  poison(memory, bytes);
  state_->add(memory, bytes, true, what,
              small ? State::Entry::kSmallBlock : State::Entry::kOwnMapping);
  state_->allocated_bytes += bytes;
  return memory;
}

bool AddressSpace::release(void *pointer) {
  std::lock_guard<std::mutex> lock(state_->mutex);
  const auto found = state_->entries.find(reinterpret_cast<uint64_t>(pointer));
  if (found == state_->entries.end() || found->second.owner == State::Entry::kForeign) return false;
  const State::Entry entry = found->second;
  const size_t bytes = entry.region.end - entry.region.begin;
  state_->entries.erase(found);
  state_->snapshot.reset();
  state_->allocated_bytes -= bytes;
  if (entry.owner == State::Entry::kSmallBlock) {
    state_->small_blocks.release(pointer);
  } else {
    unmap_guarded_pages(pointer, bytes);
  }
  return true;
}

void AddressSpace::remember(const void *begin, size_t bytes, bool writable, const char *what) {
  if (bytes == 0) return;
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->add(begin, bytes, writable, what, State::Entry::kForeign);
}

void AddressSpace::forget(const void *begin) {
  std::lock_guard<std::mutex> lock(state_->mutex);
  const auto found = state_->entries.find(reinterpret_cast<uint64_t>(begin));
  if (found == state_->entries.end() || found->second.owner != State::Entry::kForeign) return;
  state_->entries.erase(found);
  state_->snapshot.reset();
}

std::shared_ptr<const RegionSnapshot> AddressSpace::snapshot() const {
  std::lock_guard<std::mutex> lock(state_->mutex);
  if (!state_->snapshot) {
    std::vector<Region> regions;
    regions.reserve(state_->entries.size());
    for (const auto &[begin, entry] : state_->entries) regions.push_back(entry.region);
    state_->snapshot = std::make_shared<const RegionSnapshot>(std::move(regions));
  }
  return state_->snapshot;
}

size_t AddressSpace::live_bytes() const {
  std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->allocated_bytes;
}

}  // namespace flydsl::emu
