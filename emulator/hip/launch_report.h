// What the flydsl_emu_* functions tell about launches.
#pragma once

#include <memory>
#include <string>

#include "emulator/engine/dispatch.h"
#include "emulator/hip/completion.h"
#include "emulator/hip/launch_timing.h"

namespace flydsl::emu::hip {

// Counts of one launch, filled before its completion.
struct LaunchRecord {
  DispatchResult result;
  std::shared_ptr<const TimedLaunch> timing;  // null: not modelled, or that failed
};

// Of each thread. A modelled launch may hold megabytes, and an operator's call has a few launches.
constexpr uint64_t kRememberedLaunches = 16;

// A launch of the calling thread.
void remember_launch(std::shared_ptr<const LaunchRecord> record,
                     std::shared_ptr<const Completion> completion);
// How many there were.
uint64_t launch_count();
// The thread's most recent launch but `back`, once it has ended; null when there was none, or it is forgotten.
std::shared_ptr<const LaunchRecord> recent_launch(uint64_t back);

// Prints a fault to stderr as one block and keeps its text for the process.
void report_fault(const std::string &fault);

}  // namespace flydsl::emu::hip
