// Launches under the timing model (emulator/timing/): what asks for it, and the run of one.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "emulator/hip/device.h"
#include "emulator/hip/hip_abi.h"
#include "emulator/loader/code_object.h"
#include "emulator/timing/constants.h"
#include "emulator/timing/recorded_launch.h"

namespace flydsl::emu::hip {

enum class TimingMode : uint8_t {
  kOff,
  kSample,  // only the work-groups that the model needs run
  kFull,    // all run
};

// What flydsl_emu_set_timing() and the environment ask for at this moment.
struct TimingRequest {
  TimingMode mode = TimingMode::kOff;
  std::string file;  // FLYDSL_EMU_TIMING: gets a JSON line; may be empty
  std::string save;  // FLYDSL_EMU_TIMING_SAVE: gets the recorded launch; may be empty
  timing::Constants constants;
};
// hipErrorInvalidValue after fail() when a variable is wrong.
hipError_t timing_request(TimingRequest *request);
// "off", "sample", "full": process-wide from now on, whatever the environment says; null: what it says.
// False: another word.
bool set_timing_mode(const char *mode);

// A launch that was modelled.
class TimedLaunch {
 public:
  TimedLaunch(timing::RecordedLaunch recorded, const timing::Constants &constants);
  const std::string &summary() const { return summary_; }
  // The same with profile and timeline; made at the first call.
  const std::string &detail() const;
  const timing::RecordedLaunch &recorded() const { return recorded_; }

 private:
  timing::RecordedLaunch recorded_;
  timing::Constants constants_;
  std::string summary_;
  mutable std::mutex mutex_;
  mutable std::string detail_;
};

// Runs and models a launch as asked. *timed stays null when it fails.
hipError_t run_timed(const LoadedKernel &kernel, const Dispatch &dispatch, const Device &device,
                     const RegionSnapshot &memory, const TimingRequest &request,
                     DispatchResult *result, std::shared_ptr<const TimedLaunch> *timed);

}  // namespace flydsl::emu::hip
