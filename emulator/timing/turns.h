// Work-groups that depend on one another, while only a few of them are recorded: numbers that they take from
// counters, and values that they wait for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace flydsl::emu::timing {

// What the recorders of one launch know together.
//
// A ticket: an atomic add that one lane executes and whose old value comes back. The first work-groups run up to theirs,
// one after the other, and show which counter each uses: one for all, or work-group L one that L modulo some number
// decides. From then on each gets what it would find if the work-groups took their turns in the order of the
// grid: L the number of those before it that use the same counter, and with each further ticket as many more as use it.
//
// A wait: a dword at one address, loaded at device scope again and again with no other memory access in between.
// The work-groups that would write it are not there, so the smallest value with which the wave goes on is made up.
// What it polls leaves the trace, but for one load. Another load of the same address before that is a first look at
// what the wave waits for: from then on it finds it.
class Turns {
 public:
  // `natural`: every work-group of the launch runs, so nothing is made up.
  Turns(uint64_t groups, bool natural) : groups_(groups), natural_(natural) {}

  bool natural() const { return natural_; }
  static constexpr uint32_t kMostTries = 1 << 14;
  static constexpr uint64_t kGroupsThatShow = 64;

  // While the first work-groups run for their tickets: a wave ends after one.
  bool learning() const { return learning_; }
  void learn(bool on) {
    learning_ = on;
    if (!on) find_period();
  }
  void took(uint64_t group, uint64_t address, uint32_t got, uint32_t step) {
    std::lock_guard lock(mutex_);
    if (group != shown_.size()) return;
    shown_.push_back(address);
    counters_.emplace(address, Counter{got, step, 0});
  }
  bool tickets() const { return !period_.empty(); }
  bool one_counter() const { return counters_.size() == 1; }

  // The k-th (from 0) that the work-group takes. False: nothing is known of the counter.
  bool ticket(uint64_t address, uint64_t group, uint32_t kth, uint32_t *value) const {
    const auto found = counters_.find(address);
    if (!tickets() || found == counters_.end()) return false;
    const uint64_t rank = users(address, group) + kth * users(address, groups_);
    *value = uint32_t(found->second.base + found->second.step * rank);
    return true;
  }

  // The load `op` has polled.
  void waits(uint32_t op) {
    std::lock_guard lock(mutex_);
    wait_ops_.insert(op);
  }
  // The load `op` is a first look at what another one waits for.
  void looks(uint32_t op) {
    std::lock_guard lock(mutex_);
    wait_ops_.insert(op);
    looks_.insert(op);
  }
  bool is_look(uint32_t op) const {
    std::lock_guard lock(mutex_);
    return looks_.count(op) != 0;
  }
  std::set<uint32_t> wait_ops() const {
    std::lock_guard lock(mutex_);
    return wait_ops_;
  }
  // A load waits for what no value in reach is.
  void give_up(const std::string &why) {
    std::lock_guard lock(mutex_);
    if (error_.empty()) error_ = why;
  }
  std::string error() const {
    std::lock_guard lock(mutex_);
    return error_;
  }

 private:
  struct Counter {
    uint32_t base, step;
    uint64_t in_period;
  };

  // Counters of work-groups 0, 1, ... as far as they repeat themselves; none where they do not.
  void find_period() {
    const size_t seen = shown_.size();
    for (size_t period = 1; period <= seen / 2 || (period == seen && seen == groups_); ++period) {
      if (!std::equal(shown_.begin() + ptrdiff_t(period), shown_.end(), shown_.begin())) continue;
      period_.assign(shown_.begin(), shown_.begin() + ptrdiff_t(period));
      break;
    }
    for (auto &[address, counter] : counters_)
      counter.in_period = uint64_t(std::count(period_.begin(), period_.end(), address));
  }
  // Work-groups below `group` that use the counter.
  uint64_t users(uint64_t address, uint64_t group) const {
    const uint64_t rest = group % period_.size();
    return group / period_.size() * counters_.at(address).in_period +
           uint64_t(std::count(period_.begin(), period_.begin() + ptrdiff_t(rest), address));
  }

  const uint64_t groups_;
  const bool natural_;
  bool learning_ = false;
  mutable std::mutex mutex_;
  std::vector<uint64_t> shown_, period_;
  std::map<uint64_t, Counter> counters_;  // by address
  std::set<uint32_t> wait_ops_, looks_;
  std::string error_;
};

}  // namespace flydsl::emu::timing
