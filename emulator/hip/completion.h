// The end of one piece of submitted work: others wait for it, ask for it, and read its result.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "emulator/hip/hip_abi.h"

namespace flydsl::emu::hip {

class Completion {
 public:
  void finish(hipError_t result) {
    std::lock_guard<std::mutex> lock(mutex_);
    result_ = result;
    when_ = std::chrono::steady_clock::now();
    done_ = true;
    changed_.notify_all();
  }
  bool done() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return done_;
  }
  // Waits; the work's result.
  hipError_t wait() const {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return done_; });
    return result_;
  }
  // Of a completion that is done.
  std::chrono::steady_clock::time_point when() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return when_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool done_ = false;
  hipError_t result_ = hipSuccess;
  std::chrono::steady_clock::time_point when_;
};

}  // namespace flydsl::emu::hip
