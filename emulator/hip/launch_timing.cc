#include "emulator/hip/launch_timing.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "emulator/engine/program_impl.h"
#include "emulator/hip/api_call.h"
#include "emulator/hip/launch_report.h"
#include "emulator/hip/occupancy.h"
#include "emulator/timing/costs.h"
#include "emulator/timing/launch_model.h"
#include "emulator/timing/report.h"
#include "emulator/timing/trace_store.h"

namespace flydsl::emu::hip {
namespace {

constexpr int kAsEnvironmentSays = -1;
std::atomic<int> g_mode{kAsEnvironmentSays};

std::string environment(const char *variable) {
  const char *text = std::getenv(variable);
  return text == nullptr ? "" : text;
}

bool parse_mode(const std::string &word, TimingMode *mode) {
  if (word == "off")
    *mode = TimingMode::kOff;
  else if (word == "sample")
    *mode = TimingMode::kSample;
  else if (word == "full")
    *mode = TimingMode::kFull;
  else
    return false;
  return true;
}

// Adds to a file that other threads and processes may add to, too: in one piece.
hipError_t append(const std::string &path, const std::string &text) {
  const int file = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  const bool written =
      file >= 0 && write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int reason = errno;
  if (file >= 0 && close(file) == 0 && written) return hipSuccess;
  return fail(hipErrorInvalidValue, "FLYDSL_EMU_TIMING=%s: %s", path.c_str(),
              std::strerror(reason));
}

// FILE for the first launch of the process, FILE.2, FILE.3 ... for the next ones.
std::string numbered(const std::string &path) {
  static std::atomic<int> count{0};
  const int n = ++count;
  return n == 1 ? path : path + "." + std::to_string(n);
}

timing::LaunchFacts facts_of(const LoadedKernel &loaded, const Dispatch &dispatch,
                             const Device &device) {
  timing::LaunchFacts facts;
  facts.kernel = loaded.kernel.name;
  facts.target = device.model->target_id;
  uint32_t items = 1;
  for (int axis = 0; axis < 3; ++axis) {
    facts.grid[axis] = dispatch.grid[axis];
    facts.block[axis] = dispatch.block[axis];
    items *= dispatch.block[axis];
  }
  facts.compute_units = static_cast<uint32_t>(device.model->compute_units);
  facts.unit = compute_unit_resources(*device.model);
  facts.group = group_resources(loaded, items, dispatch.dynamic_lds_bytes);
  return facts;
}

// Kept for flydsl_emu_last_timing, too.
hipError_t fault(hipError_t code, const std::string &text, DispatchResult *result) {
  result->ok = false;
  result->fault = text;
  report_fault(text);
  return fail(code, "%s", text.c_str());
}

}  // namespace

bool set_timing_mode(const char *word) {
  TimingMode mode;
  if (word != nullptr && !parse_mode(word, &mode)) return false;
  g_mode = word == nullptr ? kAsEnvironmentSays : static_cast<int>(mode);
  return true;
}

hipError_t timing_request(TimingRequest *request) {
  request->file = environment("FLYDSL_EMU_TIMING");
  request->save = environment("FLYDSL_EMU_TIMING_SAVE");
  const std::string word = environment("FLYDSL_EMU_TIMING_MODE");
  TimingMode by_environment = TimingMode::kSample;
  if (!word.empty() && !parse_mode(word, &by_environment))
    return fail(hipErrorInvalidValue, "FLYDSL_EMU_TIMING_MODE=%s: sample, full or off",
                word.c_str());
  if (request->file.empty() && request->save.empty()) by_environment = TimingMode::kOff;
  const int set = g_mode;
  request->mode = set == kAsEnvironmentSays ? by_environment : static_cast<TimingMode>(set);
  if (request->mode == TimingMode::kOff) return hipSuccess;
  // Found out before the launch runs, not after.
  if (!request->file.empty())
    if (const hipError_t failed = append(request->file, ""); failed != hipSuccess) return failed;
  std::string error;
  request->constants =
      timing::constants_with_changes(environment("FLYDSL_EMU_TIMING_CONSTANTS").c_str(), &error);
  if (!error.empty())
    return fail(hipErrorInvalidValue, "FLYDSL_EMU_TIMING_CONSTANTS: %s", error.c_str());
  return hipSuccess;
}

TimedLaunch::TimedLaunch(timing::RecordedLaunch recorded, const timing::Constants &constants)
    : recorded_(std::move(recorded)),
      constants_(constants),
      summary_(timing::launch_json(timing::model_launch(recorded_, constants_), *recorded_.program,
                                   false)) {}

const std::string &TimedLaunch::detail() const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (detail_.empty()) {
    timing::ModelOptions options;
    options.profile = options.timeline = true;
    detail_ = timing::launch_json(timing::model_launch(recorded_, constants_, options),
                                  *recorded_.program, true);
  }
  return detail_;
}

hipError_t run_timed(const LoadedKernel &loaded, const Dispatch &dispatch, const Device &device,
                     const RegionSnapshot &memory, const TimingRequest &request,
                     DispatchResult *result, std::shared_ptr<const TimedLaunch> *timed) {
  const Kernel &kernel = loaded.kernel;
  timing::RecordLimits limits;
  if (const char *text = std::getenv("FLYDSL_EMU_INSTRUCTION_LIMIT"))
    if (const uint64_t limit = std::strtoull(text, nullptr, 10)) limits.group_instructions = limit;
  timing::RecordedLaunch recorded;
  std::string error;
  if (!timing::record_launch(kernel, dispatch, memory, facts_of(loaded, dispatch, device),
                             request.mode == TimingMode::kFull, limits, &recorded, result, &error))
    return fault(hipErrorLaunchFailure, error, result);
  try {
    const auto done = std::make_shared<TimedLaunch>(std::move(recorded), request.constants);
    if (!request.save.empty() &&
        !timing::save_launch(done->recorded(), numbered(request.save), &error))
      return fault(hipErrorInvalidValue, "FLYDSL_EMU_TIMING_SAVE: " + error, result);
    if (!request.file.empty())
      if (const hipError_t failed = append(request.file, done->summary() + "\n");
          failed != hipSuccess)
        return failed;
    *timed = done;
  } catch (const timing::UnknownCost &unknown) {
    return fault(hipErrorNotSupported, kernel.name + ": " + unknown.what(), result);
  } catch (const std::invalid_argument &wrong) {
    return fault(hipErrorInvalidConfiguration, kernel.name + ": " + wrong.what(), result);
  } catch (const std::exception &other) {
    return fault(hipErrorUnknown, kernel.name + ": the timing model failed: " + other.what(),
                 result);
  }
  return hipSuccess;
}

}  // namespace flydsl::emu::hip
