#include "emulator/timing/find_order.h"

#include <algorithm>
#include <cmath>

#include "emulator/checks/instruction.h"
#include "emulator/engine/program_impl.h"

namespace flydsl::emu::timing {
namespace {

bool polls(const checks::Instruction &i, const std::string &text) {
  return i.is_vector_memory() && i.has(checks::kLoads) && i.bytes == 4 &&
         text.find(" sc1") != std::string::npos;
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

// The address that the work-group synchronises at first, by a load of `ops` or what such a load is for; 0: none. All that
// wait for one another begin there.
uint64_t first_address(const GroupTrace &group, const std::set<uint32_t> &ops) {
  for (const WaveTrace &wave : group.waves)
    for (const SyncUse &sync : wave.syncs)
      if (ops.count(wave.memory[sync.memory].op)) return sync.address;
  return 0;
}

}  // namespace

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

std::set<uint32_t> synchronising_loads(const std::map<uint64_t, GroupTrace> &traces) {
  std::set<uint32_t> ops;
  for (const auto &[group, trace] : traces)
    for (const WaveTrace &wave : trace.waves)
      for (const SyncUse &sync : wave.syncs)
        if (sync.load) ops.insert(wave.memory[sync.memory].op);
  return ops;
}

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

bool take_those_that_wait(Recording &recording, uint64_t budget, RecordedLaunch &launch) {
  Ordering &order = launch.ordering;
  constexpr double kFew = 0.25, kMuchTheSame = 0.05;
  const auto nobody = std::count(order.distance.begin(), order.distance.end(), 0u);
  // More than a few may as well be modelled by themselves; but somebody has to show what is waited for.
  const bool shown =
      std::any_of(launch.samples.begin(), launch.samples.end(),
                  [&](const GroupTrace &group) { return order.distance_of(group.linear_id) != 0; });
  if (shown && double(nobody) > kFew * double(order.distance.size())) return true;
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

}  // namespace flydsl::emu::timing
