#include "emulator/timing/recorded_launch.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "emulator/checks/instruction.h"
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

bool asks_counters(const Program &program) {
  const auto instructions = checks::instructions_of(program);
  for (uint32_t op = 0; op < program.ops.size(); ++op) {
    const checks::Instruction &i = (*instructions)[op];
    if (i.is_vector_memory() && i.has(checks::kAtomic) && i.has(checks::kReturns)) return true;
  }
  return false;
}

// Instructions of the work-group that read memory and change it at once, and hand back what they read.
bool is_ticket(const Program &program, const MemoryUse &use) {
  return use.kind == MemoryKind::kGlobalAtomic &&
         program.text_of(use.op).find(" sc0") != std::string::npos;
}
bool asks_a_counter(const Program &program, const GroupTrace &group) {
  for (const WaveTrace &wave : group.waves)
    for (const MemoryUse &use : wave.memory)
      if (is_ticket(program, use)) return true;
  return false;
}

bool polls(const checks::Instruction &i, const std::string &text) {
  return i.is_vector_memory() && i.has(checks::kLoads) && i.bytes == 4 &&
         text.find(" sc1") != std::string::npos;
}

// Whether the code has a loop that does nothing in memory but load a dword at device scope. What sampled launches before this one
// left out may look like values that nobody has to wait for.
bool has_poll_loop(const Program &program) {
  constexpr uint32_t kLongest = 32;
  const auto instructions = checks::instructions_of(program);
  for (uint32_t end = 0; end < program.ops.size(); ++end) {
    const int32_t begin = program.ops[end].target;
    if (begin < 0 || uint32_t(begin) > end || end - uint32_t(begin) > kLongest) continue;
    uint32_t loads = 0, others = 0;
    for (uint32_t n = uint32_t(begin); n < end; ++n) {
      const checks::Instruction &i = (*instructions)[n];
      if (polls(i, program.text_of(n)))
        ++loads;
      else
        others += i.is_vector_memory() || i.family == checks::Family::kLds ||
                  i.family == checks::Family::kScalarMemory || i.family == checks::Family::kMatrix;
    }
    if (loads == 1 && others == 0) return true;
  }
  return false;
}

// All loads at device scope of one address for all lanes, that were executed.
std::set<uint32_t> synchronising_loads(const std::map<uint64_t, GroupTrace> &traces) {
  std::set<uint32_t> ops;
  for (const auto &[group, trace] : traces)
    for (const WaveTrace &wave : trace.waves)
      for (const SyncUse &sync : wave.syncs)
        if (sync.load) ops.insert(wave.memory[sync.memory].op);
  return ops;
}

// The first memory instruction of a wave that is one of `ops`; null: none.
const MemoryUse *first_of(const WaveTrace &wave, const std::set<uint32_t> &ops) {
  for (const SyncUse &sync : wave.syncs)
    if (sync.load && ops.count(wave.memory[sync.memory].op)) return &wave.memory[sync.memory];
  return nullptr;
}
bool waits(const GroupTrace &group, const std::set<uint32_t> &ops) {
  return std::any_of(group.waves.begin(), group.waves.end(),
                     [&](const WaveTrace &wave) { return first_of(wave, ops) != nullptr; });
}

class Recording {
 public:
  Recording(const Kernel &kernel, const Dispatch &dispatch, const RegionSnapshot &memory,
            Turns &turns, DispatchResult &result)
      : kernel_(kernel), dispatch_(dispatch), memory_(memory), turns_(turns), result_(result) {}

  const std::string &error() const { return error_; }
  const std::map<uint64_t, GroupTrace> &traces() const { return traces_; }

  // Runs and records those of `groups` that have not run; `budget`: wave-instructions of each.
  bool run(const std::vector<uint64_t> &groups, uint64_t budget, bool may_truncate) {
    std::vector<uint64_t> wanted;
    for (const uint64_t group : groups)
      if (!traces_.count(group)) wanted.push_back(group);
    return wanted.empty() || record(wanted, budget, may_truncate, false);
  }

  // Drops what was cut, so that it is run again.
  void forget(const std::vector<uint64_t> &groups) {
    for (const uint64_t group : groups) {
      const auto found = traces_.find(group);
      if (found != traces_.end() && found->second.truncated) traces_.erase(found);
    }
  }

  // The first work-groups, up to the numbers that they take from counters.
  bool show_counters(uint64_t groups) {
    constexpr uint64_t kBudget = 20000;
    std::vector<uint64_t> some;
    for (uint64_t group = 0; group < std::min(groups, Turns::kGroupsThatShow); ++group)
      some.push_back(group);
    Recorder recorder(some, kBudget, &turns_);
    DispatchOptions options;
    options.one_at_a_time = true;
    recorder.attach(options, true);
    turns_.learn(true);
    const bool ran = add(run_dispatch(kernel_, dispatch_, memory_, options));
    turns_.learn(false);
    return ran;
  }

  // All that have not run, in the order of their turns: none finds that it has to wait.
  bool run_in_turn(uint64_t groups, uint64_t budget) {
    std::vector<uint64_t> others;
    for (uint64_t group = 0; group < groups; ++group)
      if (!traces_.count(group)) others.push_back(group);
    if (others.empty()) return true;
    return record(others, budget, false, true);
  }

  // Prefixes of `groups` that stop within a budget of wave-instructions.
  bool run_prefixes(const std::vector<uint64_t> &groups, uint64_t budget,
                    std::vector<GroupTrace> *prefixes) {
    Recorder recorder(groups, budget, &turns_);
    DispatchOptions options;
    recorder.attach(options, true);
    const DispatchResult part = run_dispatch(kernel_, dispatch_, memory_, options);
    if (!may_go_on() || !add(part)) return false;
    for (GroupTrace &trace : recorder.take()) prefixes->push_back(std::move(trace));
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
    Recorder recorder({busiest->linear_id}, budget, &turns_);
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
  bool record(const std::vector<uint64_t> &groups, uint64_t budget, bool may_truncate,
              bool one_at_a_time) {
    Recorder recorder(groups, budget, &turns_);
    DispatchOptions options;
    options.one_at_a_time = one_at_a_time;
    recorder.attach(options, true);
    const DispatchResult part = run_dispatch(kernel_, dispatch_, memory_, options);
    if (!may_go_on() || !add(part)) return false;
    for (GroupTrace &trace : recorder.take()) {
      if (trace.truncated && !may_truncate) {
        error_ = endless(kernel_, trace, budget);
        return false;
      }
      traces_[trace.linear_id] = std::move(trace);
    }
    return true;
  }
  bool may_go_on() {
    const std::string error = turns_.error();
    if (!error.empty()) error_ = kernel_.name + ": " + error;
    return error.empty();
  }
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
  Turns &turns_;
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

// The address that the work-group synchronises at first, by a load of `ops` or what such a load is for; 0: none. All that
// wait for one another begin there.
uint64_t first_address(const GroupTrace &group, const std::set<uint32_t> &ops) {
  for (const WaveTrace &wave : group.waves)
    for (const SyncUse &sync : wave.syncs)
      if (ops.count(wave.memory[sync.memory].op)) return sync.address;
  return 0;
}

// Which turn each one waits for, found at the beginning of the launch: a few times what repeats itself there, or all.
bool find_order(Recording &recording, uint64_t groups, uint32_t waves,
                const std::set<uint32_t> &wait_ops, Ordering &ordering) {
  // Where signals are written that samples wait for.
  std::set<uint64_t> awaited;
  for (const auto &[group, trace] : recording.traces())
    for (const WaveTrace &wave : trace.waves)
      for (const SyncUse &sync : wave.syncs)
        if (wait_ops.count(wave.memory[sync.memory].op)) awaited.insert(sync.address);
  std::set<uint32_t> ops = wait_ops;
  for (const auto &[group, trace] : recording.traces())
    for (const WaveTrace &wave : trace.waves)
      for (const SyncUse &sync : wave.syncs)
        if (!sync.load && awaited.count(sync.address)) ops.insert(wave.memory[sync.memory].op);
  // Up to the first of them in a wave, and somewhat on: that of another work-group may come later.
  uint64_t steps = 0;
  for (const auto &[group, trace] : recording.traces())
    for (const WaveTrace &wave : trace.waves)
      for (const SyncUse &sync : wave.syncs)
        if (ops.count(wave.memory[sync.memory].op)) {
          steps = std::max<uint64_t>(steps, wave.memory[sync.memory].step);
          break;
        }
  const uint64_t budget = (steps + steps / 2 + 100) * waves;
  constexpr uint64_t kFirstLook = 256, kMostLooked = 1 << 14;
  std::map<uint64_t, uint64_t> last;  // turn that began at an address
  std::vector<uint32_t> distance;
  for (uint64_t looked = std::min(groups, kFirstLook);; looked = std::min(groups, looked * 4)) {
    while (distance.size() < looked) {
      // A few at a time: they are kept as long as they are looked at.
      std::vector<uint64_t> some;
      for (uint64_t turn = distance.size(); turn < looked && some.size() < kFirstLook; ++turn)
        some.push_back(turn);
      std::vector<GroupTrace> prefixes;
      if (!recording.run_prefixes(some, budget, &prefixes)) return false;
      for (const GroupTrace &prefix : prefixes) {
        const uint64_t address = first_address(prefix, ops), turn = prefix.linear_id;
        const auto [at, fresh] = last.emplace(address, turn);
        distance.push_back(
            fresh || !address || !waits(prefix, wait_ops) ? 0 : uint32_t(turn - at->second));
        at->second = turn;
      }
    }
    if (looked == groups) break;
    for (uint64_t period = 1; period <= looked / 2 && !ordering.periodic; ++period) {
      // The first ones of a launch may have nobody before them.
      ordering.periodic = true;
      for (uint64_t turn = period; turn < looked && ordering.periodic; ++turn)
        ordering.periodic = distance[turn] == distance[turn - period];
      if (ordering.periodic) distance.resize(period);
    }
    if (ordering.periodic || looked >= kMostLooked) break;
  }
  ordering.distance = std::move(distance);
  return true;
}

// Numbers addresses in the order in which they are met: where the host put them must not matter.
void number_addresses(const std::vector<std::vector<GroupTrace> *> &lists) {
  std::map<uint64_t, uint64_t> numbers;
  for (auto *groups : lists)
    for (GroupTrace &group : *groups)
      for (WaveTrace &wave : group.waves)
        for (SyncUse &sync : wave.syncs)
          sync.address = numbers.emplace(sync.address, numbers.size()).first->second;
}

void forget_syncs(std::vector<GroupTrace> &groups) {
  for (GroupTrace &group : groups)
    for (WaveTrace &wave : group.waves) wave.syncs = {};
}

// Loads of addresses that another work-group of these has stored to or updated.
std::set<uint32_t> loads_of_others(const std::map<uint64_t, GroupTrace> &traces) {
  std::map<uint64_t, uint64_t> writer;  // of an address: a work-group
  for (const auto &[turn, trace] : traces)
    for (const WaveTrace &wave : trace.waves)
      for (const SyncUse &sync : wave.syncs)
        if (!sync.load) writer.emplace(sync.address, turn);
  std::set<uint32_t> ops;
  for (const auto &[turn, trace] : traces)
    for (const WaveTrace &wave : trace.waves)
      for (const SyncUse &sync : wave.syncs) {
        const auto found = sync.load ? writer.find(sync.address) : writer.end();
        if (found != writer.end() && found->second != turn) ops.insert(wave.memory[sync.memory].op);
      }
  return ops;
}

// All turns of a launch: each waits for the last one before it that wrote where it waits.
std::vector<uint32_t> distances(const std::map<uint64_t, GroupTrace> &traces,
                                const std::set<uint32_t> &wait_ops) {
  std::map<uint64_t, uint64_t> writer;
  std::vector<uint32_t> result;
  for (const auto &[turn, trace] : traces) {
    uint32_t distance = 0;
    for (const WaveTrace &wave : trace.waves)
      for (const SyncUse &sync : wave.syncs) {
        const auto found =
            wait_ops.count(wave.memory[sync.memory].op) ? writer.find(sync.address) : writer.end();
        if (found != writer.end() && !distance) distance = uint32_t(turn - found->second);
      }
    for (const WaveTrace &wave : trace.waves)
      for (const SyncUse &sync : wave.syncs)
        if (!sync.load) writer[sync.address] = turn;
    result.push_back(distance);
  }
  return result;
}

// Whether the first numbers that the work-groups take all come from one address.
bool one_counter(const Program &program, const std::map<uint64_t, GroupTrace> &traces) {
  std::set<uint64_t> addresses;
  for (const auto &[turn, trace] : traces)
    for (const WaveTrace &wave : trace.waves)
      for (const SyncUse &sync : wave.syncs)
        if (is_ticket(program, wave.memory[sync.memory])) {
          addresses.insert(sync.address);
          break;
        }
  return addresses.size() == 1;
}

// Of the samples that wait, some from the first to the last: what they wait for is looked at.
std::vector<uint32_t> some_that_wait(const RecordedLaunch &launch) {
  std::vector<uint32_t> all;
  for (uint32_t n = 0; n < launch.samples.size(); ++n)
    if (launch.ordering.distance_of(launch.samples[n].linear_id)) all.push_back(n);
  constexpr size_t kSome = 4;
  if (all.size() <= kSome) return all;
  std::vector<uint32_t> some;
  for (size_t n = 0; n < kSome; ++n) some.push_back(all[n * (all.size() - 1) / (kSome - 1)]);
  return some;
}

// Where few turns wait for nobody, and a sample is one of them by chance (the first of a chain lies where axes have their ends
// and middles): the next turn that waits takes its place, if its work is much the same.
bool take_those_that_wait(Recording &recording, uint64_t budget, RecordedLaunch &launch) {
  Ordering &order = launch.ordering;
  constexpr double kFew = 0.25, kMuchTheSame = 0.05;
  const auto nobody = std::count(order.distance.begin(), order.distance.end(), 0u);
  if (double(nobody) > kFew * double(order.distance.size())) return true;
  for (size_t n = 0; n < launch.samples.size(); ++n) {
    uint64_t turn = launch.samples[n].linear_id;
    if (order.distance_of(turn)) continue;
    while (turn < launch.groups() && !order.distance_of(turn)) ++turn;
    if (turn == launch.groups()) continue;
    recording.forget({turn});
    if (!recording.run({turn}, budget, false)) return false;
    const GroupTrace &next = recording.traces().at(turn);
    const double before = double(launch.samples[n].wave_instructions),
                 work = double(next.wave_instructions);
    if (std::abs(work - before) > kMuchTheSame * before) continue;
    launch.samples[n] = next;
    launch.rule.samples[n] = turn;
    ++order.moved;
  }
  return true;
}

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
