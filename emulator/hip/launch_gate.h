// Keeps memory in place under running kernels: launches and copies hold it shared, what unmaps
// memory (hipFree, hipModuleUnload) holds it alone. Unlike std::shared_mutex on Linux it lets a
// waiting hipFree go before later launches, so threads that launch without a break cannot hold it
// off for ever. Usable with std::shared_lock and std::unique_lock.
#pragma once

#include <condition_variable>
#include <mutex>

namespace flydsl::emu::hip {

class LaunchGate {
 public:
  void lock_shared() {
    std::unique_lock<std::mutex> guard(mutex_);
    changed_.wait(guard, [&] { return !alone_ && waiting_ == 0; });
    ++sharing_;
  }
  void unlock_shared() {
    std::lock_guard<std::mutex> guard(mutex_);
    if (--sharing_ == 0) changed_.notify_all();
  }
  void lock() {
    std::unique_lock<std::mutex> guard(mutex_);
    ++waiting_;
    changed_.wait(guard, [&] { return !alone_ && sharing_ == 0; });
    --waiting_;
    alone_ = true;
  }
  void unlock() {
    std::lock_guard<std::mutex> guard(mutex_);
    alone_ = false;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  unsigned sharing_ = 0;
  unsigned waiting_ = 0;
  bool alone_ = false;
};

}  // namespace flydsl::emu::hip
