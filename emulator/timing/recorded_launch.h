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

  uint64_t groups() const { return uint64_t(facts.grid[0]) * facts.grid[1] * facts.grid[2]; }
};

struct RecordLimits {
  SampleLimits samples;
  // Wave-instructions of one work-group before it counts as one that waits for others.
  uint64_t group_instructions = 30'000'000;
  // Of all streams together.
  uint64_t stream_instructions = 5'000'000;
};

// Runs the work-groups it needs, and with `all` every other one, too; nothing runs twice, so with
// `all` memory is as after the launch itself. False with a sentence in *error when a work-group
// faults or does not end. `result` gets what run_dispatch() says about the work-groups that ran.
bool record_launch(const Kernel &kernel, const Dispatch &dispatch, const RegionSnapshot &memory,
                   const LaunchFacts &facts, bool all, const RecordLimits &limits,
                   RecordedLaunch *launch, DispatchResult *result, std::string *error);

}  // namespace flydsl::emu::timing
