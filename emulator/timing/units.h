// Units that the SIMDs of a compute unit share: LDS pipe, address unit, instruction cache.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "emulator/timing/constants.h"
#include "emulator/timing/memory_port.h"
#include "emulator/timing/trace.h"

namespace flydsl::emu::timing {

constexpr uint32_t kSimds = 4;  // of a compute unit: ISA

// First come, first served, with a bounded number of requests of each SIMD that wait. (One bound for
// all SIMDs would be unfair: the one whose slot begins right after a request is served would take each
// free place.) Times are clocks.
class Pipe {
 public:
  explicit Pipe(double waiting_limit) {
    for (Waiting &w : waiting_) w.starts.assign(std::max<size_t>(size_t(waiting_limit), 1), -1.0);
  }

  // Clock from which it takes one more request of the SIMD.
  double accepts_at(uint32_t simd) const { return waiting_[simd].starts[waiting_[simd].next]; }
  // A request that arrives at `clock`; returns when it has been served.
  double serve(double clock, uint32_t simd, double duration) {
    Waiting &w = waiting_[simd];
    const double start = std::max(clock, free_);
    w.starts[w.next] = start;
    w.next = w.next + 1 < w.starts.size() ? w.next + 1 : 0;
    busy_ += duration;
    return free_ = start + duration;
  }
  // The same for what does not wait in a SIMD's queue.
  double serve_unqueued(double clock, double duration) {
    busy_ += duration;
    return free_ = std::max(clock, free_) + duration;
  }
  double busy() const { return busy_; }

 private:
  struct Waiting {
    std::vector<double> starts;  // of the last requests: the oldest must have begun
    size_t next = 0;
  };
  Waiting waiting_[kSimds];
  double free_ = 0, busy_ = 0;
};

// Clocks that the LDS needs for the passes of an access.
inline double lds_clocks(const MemoryUse &use, const Constants &c) {
  return use.phases * std::max(1.0, use.phase_bytes / c.lds_bytes_per_clock);
}

// Lines of the code, least recently used goes. A line that is asked for brings the next one.
class InstructionCache {
 public:
  InstructionCache(uint64_t code_bytes, const Constants &c)
      : capacity_(std::max<size_t>(size_t(c.icache_bytes / kLineBytes), 2)),
        ready_(size_t(code_bytes / kLineBytes + 2), -1.0),
        used_(ready_.size(), 0) {}

  // Lines that warm_up() brings in.
  void touch(uint64_t line) { used_[line] = 1; }
  // All that were touched, if they fit.
  void warm_up() {
    const size_t touched = size_t(std::count(used_.begin(), used_.end(), 1));
    if (touched > capacity_) return;
    for (size_t n = 0; n < used_.size(); ++n)
      if (used_[n]) ready_[n] = 0;
    held_ = touched;
    tick_ = 1;
  }
  // When the line can be read by a wave that wants it at `clock`.
  double read(double clock, uint64_t line, MemoryPort &memory) {
    const double ready = fetch(clock, line, memory);
    if (line + 1 < ready_.size()) fetch(clock, line + 1, memory);
    return ready;
  }

 private:
  double fetch(double clock, uint64_t line, MemoryPort &memory) {
    used_[line] = ++tick_;
    if (ready_[line] < 0) {
      if (held_ == capacity_) evict();
      ++held_;
      ready_[line] = std::max(clock, memory.fetch(clock, line));
    }
    return ready_[line];
  }
  void evict() {
    size_t oldest = ready_.size();
    for (size_t n = 0; n < ready_.size(); ++n)
      if (ready_[n] >= 0 && (oldest == ready_.size() || used_[n] < used_[oldest])) oldest = n;
    ready_[oldest] = -1;
    --held_;
  }

  size_t capacity_, held_ = 0;
  uint64_t tick_ = 0;
  std::vector<double> ready_;  // < 0: not in the cache
  std::vector<uint64_t> used_;
};

}  // namespace flydsl::emu::timing
