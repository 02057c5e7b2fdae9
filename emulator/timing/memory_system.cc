#include "emulator/timing/memory_system.h"

#include <algorithm>
#include <unordered_set>

#include "emulator/timing/cache_tags.h"
#include "emulator/timing/units.h"

namespace flydsl::emu::timing {
namespace {

struct Event {
  uint32_t step, compute_unit, group, wave, index;
  bool operator<(const Event &o) const {
    if (step != o.step) return step < o.step;
    if (compute_unit != o.compute_unit) return compute_unit < o.compute_unit;
    if (group != o.group) return group < o.group;
    return wave < o.wave;
  }
};

bool leaves_compute_unit(const MemoryUse &use) {
  switch (use.kind) {
    case MemoryKind::kGlobalLoad:
    case MemoryKind::kGlobalStore:
    case MemoryKind::kGlobalAtomic:
    case MemoryKind::kCopyToLds:
    case MemoryKind::kScalarLoad:
      return use.line_count != 0;
    default:
      return false;
  }
}
bool stores(const MemoryUse &use) {
  return use.kind == MemoryKind::kGlobalStore || use.kind == MemoryKind::kGlobalAtomic;
}

// Steps that every wave's stream covers.
uint64_t common_steps(const MemoryStreams &streams) {
  uint64_t steps = UINT64_MAX;
  for (const auto &unit : streams.compute_units)
    for (const GroupTrace *group : unit)
      if (group->truncated)
        for (const WaveTrace &wave : group->waves)
          steps = std::min<uint64_t>(steps, wave.steps.size());
  return steps;
}

struct Counts {
  std::array<double, unsigned(Source::kCount)> lines = {};
  double write_backs = 0, l1_hits = 0;
  uint64_t stored = 0;
  // Lines of the first stream that came from beyond the L2, and how many other XCDs touch them, too.
  uint64_t missed = 0, sharers = 0;

  double total() const {
    double sum = 0;
    for (const double n : lines) sum += n;
    return sum;
  }
};

OpService service_of(const Counts &counts) {
  OpService service;
  const double total = counts.total();
  service.lines = uint64_t(total + 0.5);
  for (size_t n = 0; n < counts.lines.size(); ++n)
    service.share[n] = total > 0 ? counts.lines[n] / total : 0;
  if (counts.l1_hits > 0) service.l1_share = counts.l1_hits / (counts.l1_hits + total);
  if (counts.stored) service.write_back = counts.write_backs / double(counts.stored);
  return service;
}

class Levels {
 public:
  Levels(const MemoryStreams &streams, const Constants &constants, size_t op_count)
      : l2_(constants.l2_bytes, constants.l2_ways, kLineBytes),
        mall_(constants.mall_bytes / streams.xcds, constants.l2_ways, kLineBytes),
        counts_(op_count) {
    for (size_t n = 0; n < streams.compute_units.size(); ++n) {
      l1_.emplace_back(constants.l1_bytes, constants.l1_ways, kLineBytes);
      scalar_.emplace_back(constants.scalar_cache_bytes, 4, kLineBytes);
    }
    for (const GroupTrace *group : streams.other_xcds) {
      others_.emplace_back();
      for (const WaveTrace &wave : group->waves)
        others_.back().insert(wave.lines.begin(), wave.lines.end());
    }
    const double footprint = streams.footprint_bytes / constants.mall_bytes;
    warm_ = std::clamp(2 - footprint, 0.0, 1.0);
    // Waves of a SIMD share its slots: a step of each takes at least their number of slots.
    double waves = 0;
    if (!streams.compute_units.empty())
      for (const GroupTrace *group : streams.compute_units[0]) waves += double(group->waves.size());
    late_steps_ = constants.hbm_latency / (std::max(waves / kSimds, 1.0) * constants.slot_clocks);
  }

  void request(const Event &event, const GroupTrace &group, bool first_stream) {
    const WaveTrace &wave = group.waves[event.wave];
    const MemoryUse &use = wave.memory[event.index];
    Counts &counts = counts_[use.op];
    const bool store = stores(use);
    for (uint32_t n = 0; n < use.line_count; ++n) {
      const uint64_t line = wave.lines[use.first_line + n];
      CacheTags &nearest = use.kind == MemoryKind::kScalarLoad ? scalar_[event.compute_unit]
                                                               : l1_[event.compute_unit];
      // Neighbours on a compute unit drift apart: what one of them brought in, the other finds in the
      // L2. (MemoryPath gives copies addresses of their own for the same reason.)
      const uint64_t own = line ^ uint64_t(event.group) << 57;
      if (use.device_scope) {
        pass_l2(counts, line, event.step, first_stream, store);
        continue;
      }
      if (!store && nearest.access(own, event.step).hit) {
        counts.l1_hits += 1;
        continue;
      }
      const CacheTags::Found found = l2_.access(line, event.step, store);
      if (store) {
        ++counts.stored;
        counts.write_backs += found.dirtied;
      }
      // A store needs no data from beyond the L2: byte masks keep what was written.
      if (use.kind == MemoryKind::kGlobalStore) {
        counts.lines[unsigned(Source::kL2)] += 1;
      } else if (found.hit) {
        const bool late = double(event.step - found.filled) < late_steps_;
        counts.lines[unsigned(late ? Source::kL2Late : Source::kL2)] += 1;
      } else {
        miss(counts, line, event.step, first_stream);
      }
    }
  }

  MemoryProfile profile() const {
    MemoryProfile result;
    Counts all;
    for (const Counts &counts : counts_) {
      result.ops.push_back(service_of(counts));
      for (size_t n = 0; n < all.lines.size(); ++n) all.lines[n] += counts.lines[n];
      all.write_backs += counts.write_backs;
      all.stored += counts.stored;
      all.l1_hits += counts.l1_hits;
    }
    result.of_others = service_of(all);
    if (all.total() == 0) result.of_others.share[unsigned(Source::kHbm)] = 1;
    if (all.stored == 0) result.of_others.write_back = 1;
    result.hit_rate = result.of_others.share[unsigned(Source::kL2)] +
                      result.of_others.share[unsigned(Source::kL2Late)];
    return result;
  }
  bool seen(uint32_t op) const { return counts_[op].total() > 0; }

 private:
  // Loads and stores at device scope: the L2 of another XCD may have the line, so that of this one neither answers
  // nor keeps it.
  void pass_l2(Counts &counts, uint64_t line, uint64_t step, bool first_stream, bool store) {
    if (!store) return miss(counts, line, step, first_stream);
    ++counts.stored;
    counts.write_backs += mall_.access(line, step, true).dirtied;
    counts.lines[unsigned(Source::kL2)] += 1;
  }
  void miss(Counts &counts, uint64_t line, uint64_t step, bool first_stream) {
    double hbm = 0;
    if (!mall_.access(line, step).hit) {
      if (first_stream && !others_.empty()) {
        for (const auto &other : others_) counts.sharers += other.count(line);
        ++counts.missed;
      }
      const double sharers = counts.missed ? double(counts.sharers) / double(counts.missed) : 0;
      hbm = (1 - warm_) / (1 + sharers);
    }
    counts.lines[unsigned(Source::kHbm)] += hbm;
    counts.lines[unsigned(Source::kMall)] += 1 - hbm;
  }

  CacheTags l2_, mall_;
  std::vector<CacheTags> l1_, scalar_;
  std::vector<std::unordered_set<uint64_t>> others_;
  std::vector<Counts> counts_;
  double warm_ = 0, late_steps_ = 0;
};

}  // namespace

std::vector<double> memory_profile_key(const Constants &c) {
  return {c.l1_bytes, c.l1_ways,    c.scalar_cache_bytes, c.l2_bytes,
          c.l2_ways,  c.mall_bytes, c.hbm_latency,        c.slot_clocks};
}

MemoryProfile profile_memory(const MemoryStreams &streams, size_t op_count,
                             const Constants &constants) {
  std::vector<Event> events;
  MemoryProfile counts;
  for (uint32_t unit = 0; unit < streams.compute_units.size(); ++unit)
    for (uint32_t group = 0; group < streams.compute_units[unit].size(); ++group) {
      const GroupTrace &trace = *streams.compute_units[unit][group];
      ++counts.streams;
      for (uint32_t wave = 0; wave < trace.waves.size(); ++wave)
        for (uint32_t index = 0; index < trace.waves[wave].memory.size(); ++index) {
          const MemoryUse &use = trace.waves[wave].memory[index];
          if (leaves_compute_unit(use)) events.push_back({use.step, unit, group, wave, index});
        }
    }
  std::sort(events.begin(), events.end());

  const uint64_t common = common_steps(streams);
  Levels levels(streams, constants, op_count);
  std::vector<bool> seen;
  for (const Event &event : events) {
    const GroupTrace &trace = *streams.compute_units[event.compute_unit][event.group];
    if (event.step >= common) {
      if (seen.empty())
        for (uint32_t op = 0; op < op_count; ++op) seen.push_back(levels.seen(op));
      if (seen[trace.waves[event.wave].memory[event.index].op]) continue;
    }
    levels.request(event, trace, event.compute_unit == 0 && event.group == 0);
  }
  MemoryProfile result = levels.profile();
  result.streams = counts.streams + uint32_t(streams.other_xcds.size());
  result.steps = common;
  return result;
}

}  // namespace flydsl::emu::timing
