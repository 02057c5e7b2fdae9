#include "emulator/timing/recorded_launch.h"

#include <algorithm>
#include <map>

#include "emulator/engine/program_impl.h"
#include "emulator/timing/record.h"

namespace flydsl::emu::timing {
namespace {

std::string place(const GroupTrace &group) {
  return "work-group (" + std::to_string(group.id[0]) + "," + std::to_string(group.id[1]) + "," +
         std::to_string(group.id[2]) + ")";
}

// Where a work-group that did not end was stopped.
std::string endless(const Kernel &kernel, const GroupTrace &group, uint64_t limit) {
  std::string s =
      kernel.name + ": " + place(group) + " did not end within " + std::to_string(limit) +
      " wave-instructions; the timing model runs work-groups one by one, so that one that waits "
      "for another never ends (FLYDSL_EMU_INSTRUCTION_LIMIT raises the limit)";
  const Program &program = *kernel.program;
  for (size_t wave = 0; wave < group.waves.size(); ++wave) {
    const auto &steps = group.waves[wave].steps;
    if (steps.empty() || steps.size() < limit / group.waves.size()) continue;
    const uint32_t op = steps.back() & ~kNoLanes;
    s += "; wave " + std::to_string(wave) + " at " + offset_and_line(program, op) + " `" +
         program.text_of(op) + "`";
    break;
  }
  return s;
}

// Instructions of the work-group that read memory and change it at once, and hand back what they read.
bool asks_a_counter(const Program &program, const GroupTrace &group) {
  for (const WaveTrace &wave : group.waves)
    for (const MemoryUse &use : wave.memory)
      if (use.kind == MemoryKind::kGlobalAtomic &&
          program.text_of(use.op).find(" sc0") != std::string::npos)
        return true;
  return false;
}

class Recording {
 public:
  Recording(const Kernel &kernel, const Dispatch &dispatch, const RegionSnapshot &memory,
            DispatchResult &result)
      : kernel_(kernel), dispatch_(dispatch), memory_(memory), result_(result) {}

  const std::string &error() const { return error_; }
  const std::map<uint64_t, GroupTrace> &traces() const { return traces_; }

  // Runs and records those of `groups` that have not run; `budget`: wave-instructions of each.
  bool run(const std::vector<uint64_t> &groups, uint64_t budget, bool may_truncate) {
    std::vector<uint64_t> wanted;
    for (const uint64_t group : groups)
      if (!traces_.count(group)) wanted.push_back(group);
    if (wanted.empty()) return true;
    Recorder recorder(wanted, budget);
    DispatchOptions options;
    recorder.attach(options, true);
    if (!add(run_dispatch(kernel_, dispatch_, memory_, options))) return false;
    for (GroupTrace &trace : recorder.take()) {
      if (trace.truncated && !may_truncate) {
        error_ = endless(kernel_, trace, budget);
        return false;
      }
      traces_[trace.linear_id] = std::move(trace);
    }
    return true;
  }

  // Runs all that have not run.
  bool run_others(uint64_t groups) {
    std::vector<uint64_t> others;
    for (uint64_t group = 0; group < groups; ++group)
      if (!traces_.count(group)) others.push_back(group);
    if (others.empty()) return true;
    DispatchOptions options;
    options.groups = &others;
    return add(run_dispatch(kernel_, dispatch_, memory_, options));
  }

  // Work-groups that take tiles from a counter until none is left: run one by one, the first does the work of
  // all. It finds none when it runs again. Outputs must not matter any more.
  bool takes_turns(uint64_t budget) {
    const GroupTrace *busiest = nullptr;
    for (const auto &[group, trace] : traces_)
      if (!busiest || trace.wave_instructions > busiest->wave_instructions) busiest = &trace;
    if (!busiest || !asks_a_counter(*kernel_.program, *busiest)) return false;
    Recorder recorder({busiest->linear_id}, budget);
    DispatchOptions options;
    recorder.attach(options, true);
    if (!run_dispatch(kernel_, dispatch_, memory_, options).ok) return false;
    const std::vector<GroupTrace> again = recorder.take();
    if (again.empty() || again[0].wave_instructions > busiest->wave_instructions / 2) return false;
    error_ =
        kernel_.name + ": " + place(*busiest) + " executed " +
        std::to_string(busiest->wave_instructions) + " wave-instructions, and " +
        std::to_string(again[0].wave_instructions) +
        " when it ran again: work-groups share their work out while they run, which the timing "
        "model cannot follow, as it runs a few of them, one by one";
    return true;
  }

 private:
  bool add(const DispatchResult &part) {
    result_.wave_instructions += part.wave_instructions;
    result_.mfma_flops += part.mfma_flops;
    result_.host_seconds += part.host_seconds;
    result_.warnings.insert(result_.warnings.end(), part.warnings.begin(), part.warnings.end());
    if (part.ok) return true;
    result_.ok = false;
    error_ = result_.fault = part.fault;
    return false;
  }

  const Kernel &kernel_;
  const Dispatch &dispatch_;
  const RegionSnapshot &memory_;
  DispatchResult &result_;
  std::map<uint64_t, GroupTrace> traces_;
  std::string error_;
};

// Addresses that are equal from run to run: each allocation gets a place of its own in the order in
// which the traces touch them, aligned as a device would align it. Where the host put them would
// decide which lines meet in a cache.
class Placement {
 public:
  explicit Placement(const RegionSnapshot &memory) : memory_(memory) {}

  void place(GroupTrace &group) {
    for (WaveTrace &wave : group.waves)
      for (uint64_t &line : wave.lines) line = placed(line);
  }
  double bytes() const { return bytes_; }  // of all allocations placed

 private:
  struct Range {
    uint64_t first = 0, last = 0;  // lines as recorded
    uint64_t to = 0;               // the first one's new place
  };

  uint64_t placed(uint64_t line) {
    if (line >= range_.first && line <= range_.last && range_.to)
      return range_.to + line - range_.first;
    const Region *region = memory_.find(line * kLineBytes);
    if (!region) region = memory_.find(line * kLineBytes + kLineBytes - 1);
    // Not memory of the device: scratch has numbers of its own, the dispatch packet is a line.
    if (!region && line >= kScratchLines) return line;
    const uint64_t begin = region ? region->begin : line * kLineBytes,
                   end = region ? region->end : begin + kLineBytes;
    Range &range = ranges_[begin];
    if (!range.to) {
      constexpr uint64_t kLarge = 2 << 20, kSmall = 4096;
      const uint64_t align = (end - begin >= kLarge ? kLarge : kSmall) / kLineBytes;
      range = {begin / kLineBytes, (end - 1) / kLineBytes, (next_ + align - 1) / align * align};
      next_ = range.to + range.last - range.first + 1;
      if (region) bytes_ += double(end - begin);
    }
    range_ = range;
    return range.to + line - range.first;
  }

  const RegionSnapshot &memory_;
  std::map<uint64_t, Range> ranges_;  // by first byte
  Range range_;                       // of the last line
  uint64_t next_ = 1 << 20;
  double bytes_ = 0;
};

}  // namespace

bool record_launch(const Kernel &kernel, const Dispatch &dispatch, const RegionSnapshot &memory,
                   const LaunchFacts &facts, bool all, const RecordLimits &limits,
                   RecordedLaunch *launch, DispatchResult *result, std::string *error) {
  *result = DispatchResult();
  Recording recording(kernel, dispatch, memory, *result);
  const auto stop = [&] {
    *error = recording.error();
    return false;
  };
  launch->facts = facts;
  launch->program = kernel.program;

  const MeasureWork measure = [&](const std::vector<uint64_t> &groups) {
    std::vector<double> work(groups.size(), -1.0);
    if (!recording.error().empty() || !recording.run(groups, limits.group_instructions, false))
      return work;
    for (size_t n = 0; n < groups.size(); ++n)
      work[n] = double(recording.traces().at(groups[n]).wave_instructions);
    return work;
  };
  launch->rule = choose_samples(facts.grid, measure, limits.samples);
  if (!recording.error().empty()) return stop();
  if (!all && recording.takes_turns(limits.group_instructions)) return stop();

  // Work-groups go to the XCDs in turn.
  const Occupancy occupancy =
      occupancy_of_launch(facts.unit, facts.group, launch->groups(), facts.compute_units);
  const uint64_t xcds = facts.xcds,
                 at_once = uint64_t(occupancy.groups_per_compute_unit) * facts.compute_units;
  std::vector<uint64_t> first, others;
  for (uint64_t group = 0; group < std::min(at_once, launch->groups()); group += xcds)
    first.push_back(group);
  for (uint64_t group = 1; group < std::min(xcds, launch->groups()); ++group)
    others.push_back(group);
  const uint64_t budget =
      all ? limits.group_instructions
          : std::max<uint64_t>(limits.stream_instructions / (first.size() + others.size() + 1),
                               2000);
  if (!recording.run(first, budget, !all) || !recording.run(others, budget, !all)) return stop();

  const auto &traces = recording.traces();
  for (const uint64_t group : launch->rule.samples) launch->samples.push_back(traces.at(group));
  for (const uint64_t group : first) launch->streams.push_back(traces.at(group));
  for (const uint64_t group : others) launch->other_xcds.push_back(traces.at(group));
  Placement placement(memory);
  for (auto *groups : {&launch->samples, &launch->streams, &launch->other_xcds})
    for (GroupTrace &group : *groups) placement.place(group);
  launch->footprint_bytes = placement.bytes();
  if (all && !recording.run_others(launch->groups())) return stop();
  return true;
}

}  // namespace flydsl::emu::timing
