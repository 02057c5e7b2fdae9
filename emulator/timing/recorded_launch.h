// What is kept of a launch, so that it can be modelled again with any constants: the code, the traces of
// some work-groups, and the rule by which the others follow.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "emulator/engine/dispatch.h"
#include "emulator/timing/occupancy.h"
#include "emulator/timing/sample.h"
#include "emulator/timing/trace.h"

namespace flydsl::emu::timing {

// What hip/ knows of the device and the kernel.
struct LaunchFacts {
  std::string kernel;
  std::string target;  // "gfx950:sramecc+:xnack-"
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  uint32_t compute_units = 0;  // as the device model says
  uint32_t xcds = 8;           // CDNA 4 white paper
  ComputeUnitResources unit;
  GroupResources group;
};

// How the work-groups of a launch wait for one another, see turns.h. The turn of a work-group is its linear index: where
// it takes its number from a counter, the one that it gets when work-groups start in that order.
struct Ordering {
  bool tickets = false;  // numbers come from counters
  bool one_counter =
      false;  // a single one, so that they are in the order in which work-groups start on any XCD
  std::vector<uint32_t> wait_ops;  // the loads that wait, by operation; empty: no work-group waits
  // Turn t waits for turn t - distance[t % distance.size()]; 0: for none.
  std::vector<uint32_t> distance;
  bool periodic = false;  // `distance` repeats itself, as far as was looked
  uint32_t moved = 0;     // samples that stand for one near them, which waits for nobody as few do
  // What some of the samples wait for: samples[after[n]] for before[n].
  std::vector<GroupTrace> before;
  std::vector<uint32_t> after;

  bool ordered() const { return !wait_ops.empty(); }
  uint32_t distance_of(uint64_t turn) const {
    const uint32_t d = distance.empty() ? 0 : distance[turn % distance.size()];
    return d <= turn ? d : 0;
  }
};

struct RecordedLaunch {
  LaunchFacts facts;
  std::shared_ptr<const Program> program;
  // Whole work-groups: `rule.samples`, in that order.
  SampleRule rule;
  std::vector<GroupTrace> samples;
  // Of the work-groups that start first: those on the compute units of XCD 0, in the order of their
  // linear index, and one on each other XCD. Maybe truncated.
  std::vector<GroupTrace> streams, other_xcds;
  double footprint_bytes = 0;  // of the allocations that these touch
  Ordering ordering;

  uint64_t groups() const { return uint64_t(facts.grid[0]) * facts.grid[1] * facts.grid[2]; }
};

struct RecordLimits {
  SampleLimits samples;
  // Wave-instructions of one work-group before it counts as one that waits for others.
  uint64_t group_instructions = 30'000'000;
  // Of all streams together.
  uint64_t stream_instructions = 5'000'000;
  // Of all work-groups, which are all recorded, where they wait for one another and all have to run.
  uint64_t ordered_instructions = 150'000'000;
};

// Runs the work-groups it needs, and with `all` every other one, too; nothing runs twice, so with
// `all` memory is as after the launch itself. False with a sentence in *error when a work-group
// faults or does not end. `result` gets what run_dispatch() says about the work-groups that ran.
bool record_launch(const Kernel &kernel, const Dispatch &dispatch, const RegionSnapshot &memory,
                   const LaunchFacts &facts, bool all, const RecordLimits &limits,
                   RecordedLaunch *launch, DispatchResult *result, std::string *error);

}  // namespace flydsl::emu::timing
