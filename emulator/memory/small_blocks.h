// Small allocations, packed into arenas: a mapping with guard pages for each would cost three
// kernel mappings apiece, and Linux allows a process 65,530 of them by default (vm.max_map_count).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

namespace flydsl::emu {

class SmallBlocks {
 public:
  static constexpr size_t kAlignment = 256;     // what hipMalloc promises
  static constexpr size_t kRedZoneBytes = 256;  // never handed out, after each block
  static constexpr size_t kLargestBytes = 16 * 1024;

  SmallBlocks() = default;
  ~SmallBlocks();
  SmallBlocks(const SmallBlocks &) = delete;
  SmallBlocks &operator=(const SmallBlocks &) = delete;

  // 1 <= bytes <= kLargestBytes; nullptr when the host has no memory. Contents are undefined.
  void *allocate(size_t bytes);
  // False when `pointer` is not a live block. An arena without live blocks goes back to the host.
  bool release(void *pointer);

 private:
  struct Arena {
    size_t used_bytes = 0;  // blocks are cut from the front
    size_t live_blocks = 0;
    std::map<size_t, std::vector<uint64_t>> free_by_slot_bytes;
  };
  static constexpr size_t kArenaBytes = 1024 * 1024;

  std::map<uint64_t, Arena> arenas_;                      // by address
  std::unordered_map<uint64_t, size_t> live_slot_bytes_;  // block -> bytes with red zone
};

}  // namespace flydsl::emu
