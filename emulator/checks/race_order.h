// Which accesses are ordered. Waves of a work-group: by its barriers. Work-groups: by atomics, as
// follows.
//
// An atomic, or a store at device scope, releases what its work-group did before; an atomic that
// returns its old value, or a load at device scope, acquires. Two work-groups count as ordered when
// the first has released after its access and the second has acquired after that, whatever
// addresses the two used. A store counts as done before a release only once it has been waited for, and been written back if the caches
// may keep it; a load that they may answer sees what was acquired only behind an invalidation (race_stores.h). So a wrong address of a flag goes unseen, but no program that
// synchronises is blamed.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "emulator/checks/race_shadow.h"

namespace flydsl::emu::checks {

// Shared by the host threads of a dispatch.
class ReleaseClock {
 public:
  uint64_t release(uint64_t group) {
    std::lock_guard<std::mutex> lock(mutex_);
    releases_[group].push_back(++now_);
    return now_;
  }
  uint64_t acquire() {
    std::lock_guard<std::mutex> lock(mutex_);
    return ++now_;
  }
  // From the next release on the record is covered.
  void cover(AccessRecord &record, uint32_t releases) {
    std::lock_guard<std::mutex> lock(mutex_);
    record.releases = releases;
  }
  // Did the work-group release after `record` and before `acquired`?
  bool released_before(const AccessRecord &record, uint64_t acquired) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = releases_.find(record.group);
    return found != releases_.end() && record.releases < found->second.size() &&
           found->second[record.releases] < acquired;
  }

 private:
  std::mutex mutex_;
  uint64_t now_ = 0;
  std::unordered_map<uint64_t, std::vector<uint64_t>> releases_;
};

// The accesses of the wave that runs, judged against a cell.
class Order {
 public:
  Order(const AccessLog &log, ReleaseClock &clock) : log_(log), clock_(clock) {}

  void set(const AccessRecord &me, uint64_t acquired, uint32_t oldest) {
    me_ = me;
    acquired_ = acquired;
    oldest_ = oldest;
    known_write_ = known_read_ = 0;
  }

  // Each returns the record of an access that is not ordered with this one, or 0, and updates the
  // cell to record `id`.
  uint32_t read(Cell &cell, uint32_t id) const {
    if ((cell.read & Cell::kId) == id) return 0;
    // Neighbouring cells are mostly alike, and without a finding the answer is the same.
    if (cell.write != known_write_) {
      if (const uint32_t bad = against_write(cell, false)) return bad;
      known_write_ = cell.write;
    }
    if (cell.read != known_read_) {
      known_read_ = cell.read;
      known_flags_ = read_flags(cell);
    }
    cell.read = id | (cell.read ? known_flags_ : 0);
    return 0;
  }
  // With kIfChanged: the other is a write too, so it matters only if the two values differ.
  static constexpr uint32_t kIfChanged = 1u << 31;
  uint32_t write(Cell &cell, uint32_t id) const {
    if (cell.write == id && !cell.read) return 0;
    if (const uint32_t bad = against_read(cell)) return bad;
    const uint32_t bad = against_write(cell, false);
    if (bad && cell.write & Cell::kInFlight) return bad;
    cell = {id, 0};
    return bad ? bad | kIfChanged : 0;
  }
  uint32_t atomic(Cell &cell, uint32_t id) const {
    if ((cell.write & Cell::kId) == id && cell.write & Cell::kAtomic && !cell.read) return 0;
    if (const uint32_t bad = against_write(cell, true)) return bad;
    if (const uint32_t bad = against_read(cell)) return bad;
    cell = {id | Cell::kAtomic | many_atomics(cell), 0};
    return 0;
  }

 private:
  // Records of earlier work-groups say nothing of this one's LDS.
  bool live(uint32_t id) const { return id && id >= oldest_; }
  bool unordered(const AccessRecord &r) const {
    if (r.group != me_.group) return !clock_.released_before(r, acquired_);
    return r.wave != me_.wave && r.epoch == me_.epoch;
  }
  uint32_t against_write(const Cell &cell, bool atomic) const;
  uint32_t against_read(const Cell &cell) const;
  uint32_t read_flags(const Cell &cell) const;
  uint32_t many_atomics(const Cell &cell) const;

  const AccessLog &log_;
  ReleaseClock &clock_;
  AccessRecord me_;
  uint64_t acquired_ = 0;
  uint32_t oldest_ = 0;
  mutable uint32_t known_write_ = 0, known_read_ = 0, known_flags_ = 0;
};

}  // namespace flydsl::emu::checks
