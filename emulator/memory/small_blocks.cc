#include "emulator/memory/small_blocks.h"

#include <iterator>

#include "emulator/memory/host_pages.h"

namespace flydsl::emu {

SmallBlocks::~SmallBlocks() {
  for (const auto &[address, arena] : arenas_)
    unmap_guarded_pages(reinterpret_cast<void *>(address), kArenaBytes);
}

void *SmallBlocks::allocate(size_t bytes) {
  const size_t slot_bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment + kRedZoneBytes;
  const auto hand_out = [&](Arena &arena, uint64_t block) {
    ++arena.live_blocks;
    live_slot_bytes_[block] = slot_bytes;
    return reinterpret_cast<void *>(block);
  };
  for (auto &[address, arena] : arenas_) {
    const auto reusable = arena.free_by_slot_bytes.find(slot_bytes);
    if (reusable != arena.free_by_slot_bytes.end() && !reusable->second.empty()) {
      const uint64_t block = reusable->second.back();
      reusable->second.pop_back();
      return hand_out(arena, block);
    }
    if (arena.used_bytes + slot_bytes <= kArenaBytes) {
      const uint64_t block = address + arena.used_bytes;
      arena.used_bytes += slot_bytes;
      return hand_out(arena, block);
    }
  }
  void *pages = map_guarded_pages(kArenaBytes);
  if (pages == nullptr) return nullptr;
  const uint64_t address = reinterpret_cast<uint64_t>(pages);
  Arena &arena = arenas_[address];
  arena.used_bytes = slot_bytes;
  return hand_out(arena, address);
}

bool SmallBlocks::release(void *pointer) {
  const uint64_t block = reinterpret_cast<uint64_t>(pointer);
  const auto live = live_slot_bytes_.find(block);
  if (live == live_slot_bytes_.end()) return false;
  const size_t slot_bytes = live->second;
  live_slot_bytes_.erase(live);
  const auto owner = std::prev(arenas_.upper_bound(block));
  Arena &arena = owner->second;
  if (--arena.live_blocks == 0) {
    unmap_guarded_pages(reinterpret_cast<void *>(owner->first), kArenaBytes);
    arenas_.erase(owner);
  } else {
    arena.free_by_slot_bytes[slot_bytes].push_back(block);
  }
  return true;
}

}  // namespace flydsl::emu
