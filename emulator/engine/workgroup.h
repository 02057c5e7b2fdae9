// One host thread's place to run work-groups: registers, LDS and scratch, reused from group to
// group.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "emulator/checks/observer.h"
#include "emulator/engine/memory.h"
#include "emulator/engine/options.h"

namespace flydsl::emu {

struct GroupCounts {
  uint64_t wave_instructions = 0;
  uint64_t mfma_flops = 0;
};

class WorkgroupRunner {
 public:
  WorkgroupRunner(const Kernel &kernel, const Dispatch &dispatch, const RegionSnapshot &memory,
                  const DispatchPacket &packet, const RunOptions &options, Reports &reports,
                  const checks::CheckSet *checks);
  ~WorkgroupRunner();

  // Runs work-group (x, y, z) to its end. False after a fault, described in fault(). `cancel` ends
  // it early.
  bool run(uint32_t x, uint32_t y, uint32_t z, const std::atomic<bool> &cancel);
  const std::string &fault() const { return group_.fault; }
  GroupCounts counts() const { return counts_; }
  // The instruction that ran last, for a report about the emulator itself.
  std::string place() const;

 private:
  struct Buffer;
  void start_wave(uint32_t index);
  template <class Hooks>
  bool run_waves(const std::atomic<bool> &cancel, Hooks &hooks);
  template <class Hooks>
  bool run_traced(const std::atomic<bool> &cancel, Hooks &hooks);
  bool past_limit(uint64_t executed);

  const Kernel &kernel_;
  const Dispatch &dispatch_;
  const DispatchPacket &packet_;
  const RunOptions &options_;
  uint32_t work_items_, waves_count_, lds_bytes_, private_bytes_;
  Group group_;
  std::vector<Memory> memories_;
  std::unique_ptr<Buffer> registers_, states_, lds_, scratch_;
  std::vector<Wave *> waves_;
  const Wave *running_ = nullptr;
  std::unique_ptr<checks::Observer> observer_;  // null: no checks
  std::chrono::steady_clock::time_point started_;
  GroupCounts counts_;
};

}  // namespace flydsl::emu
