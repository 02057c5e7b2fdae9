#include "emulator/timing/recording.h"

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

}  // namespace

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

bool Recording::run(const std::vector<uint64_t> &groups, uint64_t budget, bool may_truncate) {
  std::vector<uint64_t> wanted;
  for (const uint64_t group : groups)
    if (!traces_.count(group)) wanted.push_back(group);
  return wanted.empty() || record(wanted, budget, may_truncate, false);
}

void Recording::forget(const std::vector<uint64_t> &groups) {
  for (const uint64_t group : groups) {
    const auto found = traces_.find(group);
    if (found != traces_.end() && found->second.truncated) traces_.erase(found);
  }
}

bool Recording::show_counters(uint64_t groups) {
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

bool Recording::run_in_turn(uint64_t groups, uint64_t budget) {
  std::vector<uint64_t> others;
  for (uint64_t group = 0; group < groups; ++group)
    if (!traces_.count(group)) others.push_back(group);
  if (others.empty()) return true;
  return record(others, budget, false, true);
}

bool Recording::run_prefixes(const std::vector<uint64_t> &groups, uint64_t budget,
                             std::vector<GroupTrace> *prefixes) {
  Recorder recorder(groups, budget, &turns_);
  DispatchOptions options;
  recorder.attach(options, true);
  const DispatchResult part = run_dispatch(kernel_, dispatch_, memory_, options);
  if (!may_go_on() || !add(part)) return false;
  for (GroupTrace &trace : recorder.take()) prefixes->push_back(std::move(trace));
  return true;
}

bool Recording::run_others(uint64_t groups) {
  std::vector<uint64_t> others;
  for (uint64_t group = 0; group < groups; ++group)
    if (!traces_.count(group)) others.push_back(group);
  if (others.empty()) return true;
  DispatchOptions options;
  options.groups = &others;
  return add(run_dispatch(kernel_, dispatch_, memory_, options));
}

bool Recording::takes_turns(uint64_t budget) {
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
  error_ = kernel_.name + ": " + place(*busiest) + " executed " +
           std::to_string(busiest->wave_instructions) + " wave-instructions, and " +
           std::to_string(again[0].wave_instructions) +
           " when it ran again: work-groups share their work out while they run, which the timing "
           "model cannot follow, as it runs a few of them, one by one";
  return true;
}

bool Recording::record(const std::vector<uint64_t> &groups, uint64_t budget, bool may_truncate,
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
bool Recording::may_go_on() {
  const std::string error = turns_.error();
  if (!error.empty()) error_ = kernel_.name + ": " + error;
  return error.empty();
}
bool Recording::add(const DispatchResult &part) {
  result_.wave_instructions += part.wave_instructions;
  result_.mfma_flops += part.mfma_flops;
  result_.host_seconds += part.host_seconds;
  result_.warnings.insert(result_.warnings.end(), part.warnings.begin(), part.warnings.end());
  if (part.ok) return true;
  result_.ok = false;
  error_ = result_.fault = part.fault;
  return false;
}

}  // namespace flydsl::emu::timing
