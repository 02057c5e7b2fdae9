// A line on stderr about a launch that takes long.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace flydsl::emu {

// FLYDSL_EMU_PROGRESS=1 shows it from the start, 0 never; else after a second when stderr is a
// terminal.
class Progress {
 public:
  Progress(const std::string &kernel, uint64_t groups);
  ~Progress();  // removes the line
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;
  void group_done();

 private:
  using Clock = std::chrono::steady_clock;
  const std::string &kernel_;
  uint64_t groups_;
  bool enabled_;
  std::mutex mutex_;
  uint64_t done_ = 0;
  bool shown_ = false;
  Clock::time_point start_, next_;
};

}  // namespace flydsl::emu
