// Units that the SIMDs of a compute unit share: LDS pipe, address unit, instruction cache.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "emulator/timing/constants.h"
#include "emulator/timing/memory_port.h"
#include "emulator/timing/trace.h"

namespace flydsl::emu::timing {

// First come, first served, with a bounded number of requests that wait. Times are clocks.
class Pipe {
 public:
  explicit Pipe(double waiting_limit) : starts_(std::max<size_t>(size_t(waiting_limit), 1), -1.0) {}

  // Clock from which it takes one more request.
  double accepts_at() const { return starts_[next_]; }
  // A request that arrives at `clock`; returns when it has been served.
  double serve(double clock, double duration) {
    const double start = std::max(clock, free_);
    starts_[next_] = start;
    next_ = next_ + 1 < starts_.size() ? next_ + 1 : 0;
    busy_ += duration;
    return free_ = start + duration;
  }
  // The same for what does not wait in its queue.
  double serve_unqueued(double clock, double duration) {
    busy_ += duration;
    return free_ = std::max(clock, free_) + duration;
  }
  double busy() const { return busy_; }

 private:
  std::vector<double> starts_;  // of the last requests: the oldest must have begun
  size_t next_ = 0;
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
