// The device's global memory as the emulator sees it: which bytes are allocated.
//
// Device addresses are host addresses. Every global access of a kernel is checked against the live regions, so
// an access one byte past an allocation is reported, not served from its neighbour.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace flydsl::emu {

struct Region {
  uint64_t begin = 0;
  uint64_t end = 0;  // one past the last byte
  bool writable = true;
  const char *what = "";  // "hipMalloc", "code object", "kernel arguments", ...: static text for reports
};

// An immutable, sorted list of the regions live at one moment. A dispatch holds one snapshot from start to end.
class RegionSnapshot {
 public:
  explicit RegionSnapshot(std::vector<Region> sorted) : regions_(std::move(sorted)) {}
  // The region that contains `address`, or nullptr. Valid as long as the snapshot.
  const Region *find(uint64_t address) const;
  // For reports: the region that ends nearest below or begins nearest above, or nullptr if there is none.
  const Region *nearest(uint64_t address) const;

 private:
  std::vector<Region> regions_;
};

class AddressSpace {
 public:
  static AddressSpace &instance();

  // Fresh memory filled with a poison pattern (0xAB), aligned to 256 bytes, padded by an unmapped page on either
  // side where that is affordable; nullptr when memory is exhausted.
  void *allocate(size_t bytes, const char *what);
  // False when `pointer` is not the start of a live allocation made by allocate().
  bool release(void *pointer);
  // Memory owned by someone else (loaded code, kernel arguments). forget() takes the same begin.
  void remember(const void *begin, size_t bytes, bool writable, const char *what);
  void forget(const void *begin);

  std::shared_ptr<const RegionSnapshot> snapshot() const;
  size_t live_bytes() const;

 private:
  AddressSpace();
  ~AddressSpace();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace flydsl::emu
