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

// The calling thread's most recent launch.
void remember_launch(std::shared_ptr<const LaunchRecord> record,
                     std::shared_ptr<const Completion> completion);
// That launch once it has ended; null when there was none.
std::shared_ptr<const LaunchRecord> last_launch();

// Prints a fault to stderr as one block and keeps its text for the process.
void report_fault(const std::string &fault);

}  // namespace flydsl::emu::hip
