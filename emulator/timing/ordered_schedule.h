// When the work-groups of a launch end that wait for one another (turns.h, Ordering).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "emulator/timing/compute_unit.h"
#include "emulator/timing/recorded_launch.h"
#include "emulator/timing/schedule.h"

namespace flydsl::emu::timing {

struct OrderedSchedule {
  Schedule schedule;
  double waiting_clocks = 0;  // of a work-group, for others; the mean of all
};

// A simulated work-group that found everything that it waits for.
struct OrderedSample {
  double clocks = 0;
  SyncClocks syncs;  // as WaveTrace::syncs
};

// Where turns come from one counter, a place that gets free takes the next one; else an XCD takes its own in their order. From sampled work-groups: a wait that is not over when it is asked for moves all that comes after
// it in the work-group. Throws std::invalid_argument when a sample waits for something else than the work-group
// that Ordering says. `durations`: of the samples, `before`: as Ordering::before.
OrderedSchedule schedule_ordered(const Machine &machine, const RecordedLaunch &launch,
                                 const std::vector<OrderedSample> &samples,
                                 const std::vector<OrderedSample> &before, double poll_clocks);

// The same places if no work-group waited.
Schedule schedule_at_once(const Machine &machine, const RecordedLaunch &launch,
                          const std::vector<double> &durations);

// The same with each work-group simulated as it waits: `simulate` gets a work-group's turn and when what it waits
// for is there (ComputeUnitOptions::awaited), in clocks from its start. All are among the launch's samples.
using SimulateTurn = std::function<OrderedSample(
    uint64_t turn, const std::function<double(uint32_t wave, uint32_t sync)> &awaited)>;
OrderedSchedule schedule_in_turn(const Machine &machine, const RecordedLaunch &launch,
                                 const std::vector<double> &durations,
                                 const SimulateTurn &simulate);

// Clocks between two loads of a loop that polls with the load `op`, besides the load's own.
double poll_loop_clocks(const Program &program, const CostTable &costs, uint32_t op,
                        const Constants &constants);

}  // namespace flydsl::emu::timing
