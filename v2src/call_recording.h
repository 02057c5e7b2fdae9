// Makes a known call of one that goes the long way: what it launches is noted; then it is made again with other addresses and seeds,
// without launching, and each word of the kernels' arguments must be the same or have moved with one of these.
#pragma once

#include <memory>
#include <vector>

#include "v2src/known_call.h"

namespace flydsl {

class CallRecording {
 public:
  // From here on this thread's launches are noted.
  explicit CallRecording(const CallForm &form);
  ~CallRecording();
  CallRecording(const CallRecording &) = delete;
  CallRecording &operator=(const CallRecording &) = delete;

  // Fills `params`, a struct of this version, with the caller's but for other addresses and seeds; from here on launches are noted only.
  // False: the call is not one that can be kept.
  bool rehearse(void *params);
  // After both: what they have shown, null if that is not enough.
  std::unique_ptr<KnownCall> finish();

  // What the long way tells of the thread's call. (Calls are not recorded most of the time, which is seen first.)
  // A launch. True: the call is rehearsed, and it must not be made.
  static bool launches(uint32_t entry, const module::KernargContract &contract,
                       const device::LaunchShape &shape, const void *kernarg,
                       size_t kernarg_bytes) noexcept {
    return any() && note_launch(entry, contract, shape, kernarg, kernarg_bytes);
  }
  // That the call depends on whether memory from here on is apart from other memory.
  static void compares(const void *data) noexcept {
    if (any()) note_address(data);
  }
  // Whether it is rehearsed, and then the device that it is for.
  static bool is_rehearsal(int *device) noexcept { return any() && find_rehearsal(device); }
  // Whether some thread's call is recorded.
  static bool any() noexcept { return count_.load(std::memory_order_relaxed) != 0; }

 private:
  static bool note_launch(uint32_t entry, const module::KernargContract &contract,
                          const device::LaunchShape &shape, const void *kernarg,
                          size_t kernarg_bytes) noexcept;
  static void note_address(const void *data) noexcept;
  static bool find_rehearsal(int *device) noexcept;
  static std::atomic<int> count_;

  struct Noted;
  struct Launches {
    std::vector<Noted> all;
    bool too_many = false;  // for a known call, or for the memory there is
  };
  struct Range;

  bool find_groups();
  bool find_moves();
  bool set_arguments(KnownCall *call) const;

  const CallForm &form_;
  bool rehearses_ = false;
  Launches made_, rehearsed_;
  std::vector<KnownCall::Group> groups_;
  std::vector<KnownCall::Follower> followers_;
  uint64_t apart_ = 0;              // bits of groups
  std::vector<uint64_t> moved_by_;  // for each source
};

}  // namespace flydsl
