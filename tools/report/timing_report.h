// The timing model's JSON about one launch or the launches of a call, checked and as a struct. The model defines what each
// value means: emulator/timing/README.md.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace flydsl::tools {

using Json = nlohmann::ordered_json;  // members stay as the model orders them
using NamedValues = std::vector<std::pair<std::string, double>>;

// An instruction of the kernel in the compute unit that was simulated in detail.
struct ProfiledOperation {
  uint64_t offset = 0;  // bytes from the start of the kernel's code
  std::string text;
  std::string source;  // "file:line", empty if not known
  uint64_t issued = 0;
  NamedValues stalls;       // clocks by reason, largest first
  double stall_clocks = 0;  // all reasons
};

struct TimelineEvent {
  double begin = 0, end = 0;  // clocks
  size_t operation = 0;       // index in `profile`
  uint32_t simd = 0, wave = 0;
  std::string category;
};

struct LdsHypothesis {
  std::string bytes_per_clock;
  double seconds = 0, tflops = 0;
};

// Somebody else's kernel on the same problem under the same model.
struct PeerReport {
  std::string peer, kernel;
  std::string refused;  // why there is none
  double seconds = 0, problem_tflops = 0;
  double matrix_flops = 0, hbm_bytes = 0;
};

// One of several launches of a call.
struct LaunchReport {
  std::string kernel;
  uint64_t grid[3] = {};
  double seconds = 0, tflops = 0, hbm_gb_per_s = 0;
};

// Of a call with several launches: report/launches.h says which members are of all together.
struct TimingReport {
  std::string kernel, arch, constants_hash, extrapolation;
  uint64_t grid[3] = {}, block[3] = {};
  double seconds = 0, clocks = 0, clock_hz = 0;
  double matrix_flops = 0, tflops = 0, share_of_peak = 0;
  double hbm_bytes = 0, hbm_gb_per_s = 0, l2_hit_rate = 0, idle = 0;
  double peak_tflops = 0, peak_hbm_gb_per_s = 0;
  NamedValues utilisation;
  uint64_t groups_per_compute_unit = 0, waves_per_simd = 0;
  std::string occupancy_limit;
  uint64_t groups = 0, groups_sampled = 0;
  std::vector<LdsHypothesis> lds_hypotheses;
  NamedValues stalls;  // share of wave-slots by reason, largest first
  std::vector<ProfiledOperation> profile;
  std::vector<TimelineEvent> timeline;
  bool timeline_truncated = false;
  std::vector<LaunchReport> launches;  // in order; empty if there was one
  size_t longest = 0;                  // of `launches`

  // What the command adds about the problem; empty or 0 in a report of the model alone.
  std::string op, backend, data;
  std::vector<std::pair<std::string, std::string>> inputs;  // name, shape and dtype
  std::vector<std::string> settings;
  double problem_flops = 0;   // by the operator's definition, not what the kernel executes
  double problem_tflops = 0;  // the same over `seconds`
  std::vector<PeerReport> peers;
};

// Throws std::runtime_error that names the key that is missing or of another type.
TimingReport parse_timing_report(const Json &json);

}  // namespace flydsl::tools
