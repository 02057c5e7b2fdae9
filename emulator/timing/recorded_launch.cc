#include "emulator/timing/recorded_launch.h"

#include <algorithm>
#include <map>
#include <set>

#include "emulator/timing/find_order.h"
#include "emulator/timing/recording.h"

namespace flydsl::emu::timing {
namespace {

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
  launch->facts = facts;
  launch->program = kernel.program;
  const uint64_t groups = launch->groups();
  Turns turns(groups, all);
  Recording recording(kernel, dispatch, memory, turns, *result);
  const auto stop = [&] {
    *error = recording.error();
    return false;
  };
  const bool asks = asks_counters(*kernel.program);
  if (asks && !all && !recording.show_counters(groups)) return stop();
  if (asks && all && !recording.run({0}, limits.group_instructions, false)) return stop();
  const bool in_turn = asks && all && asks_a_counter(*kernel.program, recording.traces().at(0)) &&
                       double(recording.traces().at(0).wave_instructions) * double(groups) <=
                           double(limits.ordered_instructions);
  if (in_turn && !recording.run_in_turn(groups, limits.group_instructions)) return stop();

  const MeasureWork measure = [&](const std::vector<uint64_t> &wanted) {
    std::vector<double> work(wanted.size(), -1.0);
    if (!recording.error().empty() || !recording.run(wanted, limits.group_instructions, false))
      return work;
    for (size_t n = 0; n < wanted.size(); ++n)
      work[n] = double(recording.traces().at(wanted[n]).wave_instructions);
    return work;
  };
  SampleLimits sample_limits = limits.samples;
  std::set<uint32_t> wait_ops;
  if (in_turn) {
    wait_ops = loads_of_others(recording.traces());
    if (!wait_ops.empty()) {
      sample_limits.all_groups = groups;
      sample_limits.samples = UINT32_MAX;
    }
  }
  launch->rule = choose_samples(facts.grid, measure, sample_limits);
  if (!recording.error().empty()) return stop();
  if (!all) {
    wait_ops = turns.wait_ops();
    if (!wait_ops.empty() || has_poll_loop(*kernel.program))
      wait_ops = synchronising_loads(recording.traces());
  }
  if (!all && recording.takes_turns(limits.group_instructions)) return stop();

  // Work-groups go to the XCDs in turn.
  const Occupancy occupancy =
      occupancy_of_launch(facts.unit, facts.group, groups, facts.compute_units);
  const uint64_t xcds = facts.xcds,
                 at_once = uint64_t(occupancy.groups_per_compute_unit) * facts.compute_units;
  std::vector<uint64_t> first, others;
  for (uint64_t group = 0; group < std::min(at_once, groups); group += xcds) first.push_back(group);
  for (uint64_t group = 1; group < std::min(xcds, groups); ++group) others.push_back(group);
  const uint64_t budget =
      all ? limits.group_instructions
          : std::max<uint64_t>(limits.stream_instructions / (first.size() + others.size() + 1),
                               2000);
  if (!recording.run(first, budget, !all) || !recording.run(others, budget, !all)) return stop();

  const auto &traces = recording.traces();
  for (const uint64_t group : launch->rule.samples) launch->samples.push_back(traces.at(group));
  for (const uint64_t group : first) launch->streams.push_back(traces.at(group));
  for (const uint64_t group : others) launch->other_xcds.push_back(traces.at(group));
  Ordering &ordering = launch->ordering;
  ordering.tickets = turns.tickets() || in_turn;
  ordering.one_counter = in_turn ? one_counter(*kernel.program, traces) : turns.one_counter();
  ordering.wait_ops.assign(wait_ops.begin(), wait_ops.end());
  if (ordering.ordered()) {
    if (launch->samples.size() == groups)
      ordering.distance = distances(traces, wait_ops);
    else if (!find_order(recording, groups, uint32_t(launch->samples[0].waves.size()), wait_ops,
                         ordering))
      return stop();
    // All look, and nobody has to wait for another one.
    const auto &distance = ordering.distance;
    if (std::all_of(distance.begin(), distance.end(), [](uint32_t d) { return d == 0; }))
      ordering.wait_ops.clear();
  }
  if (ordering.ordered()) {
    if (launch->samples.size() < groups) {
      if (!take_those_that_wait(recording, limits.group_instructions, *launch)) return stop();
    }
    std::vector<uint64_t> before;
    for (const uint32_t n : some_that_wait(*launch)) {
      const uint64_t turn = launch->samples[n].linear_id;
      ordering.after.push_back(n);
      before.push_back(turn - ordering.distance_of(turn));
    }
    // What ran as a stream only may have been cut.
    recording.forget(before);
    if (!recording.run(before, limits.group_instructions, false)) return stop();
    for (const uint64_t group : before) ordering.before.push_back(traces.at(group));
  }
  const std::vector<std::vector<GroupTrace> *> lists = {&launch->samples, &ordering.before,
                                                        &launch->streams, &launch->other_xcds};
  if (ordering.ordered())
    number_addresses(lists);
  else
    for (auto *list : lists) forget_syncs(*list);
  Placement placement(memory);
  for (auto *list : {&launch->samples, &launch->streams, &launch->other_xcds, &ordering.before})
    for (GroupTrace &group : *list) placement.place(group);
  launch->footprint_bytes = placement.bytes();
  if (all && !recording.run_others(groups)) return stop();
  return true;
}

}  // namespace flydsl::emu::timing
