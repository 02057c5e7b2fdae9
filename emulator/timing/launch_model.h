// What the model says about one launch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/timing/compute_unit.h"
#include "emulator/timing/constants.h"
#include "emulator/timing/memory_system.h"
#include "emulator/timing/occupancy.h"
#include "emulator/timing/recorded_launch.h"

namespace flydsl::emu::timing {

// The same launch if the LDS moved other bytes a clock: published figures do not decide which it is.
struct LdsHypothesis {
  double bytes_per_clock = 0;
  double seconds = 0, clock_hz = 0;
};

struct LaunchModel {
  std::string kernel, arch;
  uint32_t grid[3] = {}, block[3] = {};
  uint32_t compute_units = 0;
  Occupancy occupancy;
  uint64_t groups = 0, groups_sampled = 0;
  std::string extrapolation;  // what was simulated, how the rest follows
  double seconds = 0;         // of the launch, overheads included
  double clock_hz = 0;        // the effective clock
  double clocks = 0;          // seconds x clock_hz
  double matrix_flops = 0;    // executed by matrix instructions in the whole launch
  double share_of_peak = 0;   // of the dense peak of the types that its matrix instructions have
  // Of the device, for those types (bf16 where there are none), and of its HBM.
  double peak_flops = 0, peak_hbm_bytes_per_second = 0;
  double hbm_bytes = 0, l2_bytes = 0;
  double l2_hit_rate = 0;
  // Shares of the time of a compute unit that holds work, 0 to 1.
  double matrix = 0, vector = 0, transcendental = 0, scalar = 0, lds = 0, vector_memory = 0;
  // Share of the places for work-groups, over the launch's time, that are empty: its tail.
  double idle = 0;
  // Of a launch whose work-groups wait for one another: how it was found out, the clocks that a work-group waits on
  // average, and the seconds if it did not. Else empty and 0.
  std::string ordering;
  double waiting_clocks = 0, waiting_share = 0, seconds_without_waiting = 0;
  bool bound_by_hbm = false;        // seconds are those that HBM needs for hbm_bytes
  LdsHypothesis lds_hypotheses[2];  // 128 and 256 bytes a clock
  // Of the work-group that stands for most of the time, with as many copies as a compute unit holds.
  uint64_t representative = 0;  // linear index
  ComputeUnitResult detail;
  bool timeline_truncated = false;
  std::string constants_hash;
};

struct ModelOptions {
  bool profile = false;  // LaunchModel::detail gets these of the representative work-group
  bool timeline = false;
  size_t timeline_limit = 1u << 17;
  const MemoryProfile *memory = nullptr;  // memory_profile() of the launch; null: made anew
};

// Where the launch's lines are found. Depends on memory_profile_key() of the constants alone.
MemoryProfile memory_profile(const RecordedLaunch &launch, const Constants &constants);

// Throws UnknownCost (costs.h) for an instruction or architecture without costs, and
// std::invalid_argument when no work-group fits a compute unit. Equal input gives equal output.
LaunchModel model_launch(const RecordedLaunch &launch, const Constants &constants,
                         const ModelOptions &options = {});

// The clock of a launch whose matrix units are busy for a share `matrix` of its time: it falls as
// they draw power.
double effective_clock_hz(const Constants &constants, double matrix);

}  // namespace flydsl::emu::timing
