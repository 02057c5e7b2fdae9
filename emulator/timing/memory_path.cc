#include "emulator/timing/memory_path.h"

#include <algorithm>

namespace flydsl::emu::timing {
namespace {

// Work-groups of a compute unit are copies of one trace: what lanes address is not the same data.
// What scalar loads address, arguments mostly, is.
uint64_t line_of(const RequestOrigin &origin, uint64_t line) {
  return line ^ uint64_t(origin.resident) << 57;
}

}  // namespace

MemoryPath::MemoryPath(const Constants &constants, const MemoryProfile &profile, double clock_hz,
                       uint32_t active_units)
    : constants_(constants),
      profile_(profile),
      l1_(constants.l1_bytes, constants.l1_ways, kLineBytes),
      scalar_(constants.scalar_cache_bytes, 4, kLineBytes),
      instructions_(constants.icache_bytes, 8, kLineBytes),
      debts_(profile.ops.size()) {
  const double share = 1 / (clock_hz * std::max(active_units, 1u));
  l1_channel_.bytes_per_clock = constants.l1_bytes_per_clock;
  l2_.bytes_per_clock = constants.l2_bytes_per_clock;
  mall_.bytes_per_clock =
      std::min(constants.mall_bytes_per_second * share, constants.l2_bytes_per_clock);
  hbm_.bytes_per_clock =
      std::min(constants.hbm_bytes_per_second * share, constants.l2_bytes_per_clock);
}

const OpService &MemoryPath::service_of(uint32_t op) const {
  return profile_.ops[op].lines ? profile_.ops[op] : profile_.of_others;
}

Source MemoryPath::next_source(uint32_t op, const OpService &service) {
  auto &debt = debts_[op].of_source;
  debts_[op].found_early -= service.l1_share;
  for (size_t n = 0; n < debt.size(); ++n) debt[n] += service.share[n];
  // Of equal ones the farthest: a first touch misses.
  size_t most = debt.size() - 1;
  for (size_t n = debt.size(); n-- > 0;)
    if (debt[n] > debt[most] + 1e-9) most = n;
  debt[most] -= 1;
  return Source(most);
}

void MemoryPath::found_in_l1(uint32_t op) {
  const OpService &service = service_of(op);
  Debt &debts = debts_[op];
  debts.found_early += 1 - service.l1_share;
  if (debts.found_early < 1 - 1e-9) return;
  debts.found_early -= 1;
  auto &debt = debts.of_source;
  for (size_t n = 0; n < debt.size(); ++n) debt[n] += service.share[n];
  // Finds come in clusters, before or after the misses that they save: the nearest place may be ahead by as many.
  constexpr double kAhead = 1024;
  size_t nearest = 0;
  while (nearest + 1 < debt.size() && (service.share[nearest] <= 0 || debt[nearest] < -kAhead)) ++nearest;
  debt[nearest] -= 1;
  // The profile gave its first touch to this instruction, here another one came first and was sent to the L2: a later one makes up for it.
  if (nearest >= unsigned(Source::kMall)) ++found_beyond_l2_[nearest];
}

double MemoryPath::load_line(double clock, uint32_t op, bool through) {
  const double arrived = l2_.take(clock, kLineBytes);
  l2_bytes_ += kLineBytes;
  const OpService &service = service_of(op);
  Source source = next_source(op, service);
  if (source == Source::kL2 || source == Source::kL2Late)
    for (const Source beyond : {Source::kHbm, Source::kMall})
      if (found_beyond_l2_[unsigned(beyond)]) {
        --found_beyond_l2_[unsigned(beyond)];
        source = beyond;
        break;
      }
  // Of an instruction that no stream has reached the others say nothing.
  if (through && source != Source::kHbm) source = Source::kMall;
  switch (source) {
    case Source::kMall:
      return std::max(arrived, mall_.take(clock, kLineBytes)) + constants_.mall_latency;
    case Source::kHbm:
      hbm_bytes_ += kLineBytes;
      return std::max(arrived, hbm_.take(clock, kLineBytes)) + constants_.hbm_latency;
    case Source::kL2Late: {
      // As long as the request that it waits for takes in most cases.
      const auto &share = profile_.of_others.share;
      const bool mall = share[unsigned(Source::kMall)] > share[unsigned(Source::kHbm)];
      return arrived + (mall ? constants_.mall_latency : constants_.hbm_latency);
    }
    default:
      return arrived + constants_.l2_latency;
  }
}

double MemoryPath::store_line(double clock, uint32_t op, bool atomic, bool through) {
  const double bytes = kLineBytes * (atomic ? constants_.atomic_factor : 1);
  double arrived = l2_.take(clock, bytes);
  l2_bytes_ += bytes;
  if (through) arrived = std::max(arrived, mall_.take(clock, kLineBytes));
  const OpService &service = service_of(op);
  double &debt = debts_[op].write_back;
  debt += service.write_back;
  if (debt >= 1 - 1e-9) {
    debt -= 1;
    hbm_.take(clock, kLineBytes);
    hbm_bytes_ += kLineBytes;
  }
  return arrived + (through ? constants_.mall_latency : constants_.l2_latency);
}

double MemoryPath::vector(double clock, const RequestOrigin &origin, const MemoryUse &use,
                          const uint64_t *lines) {
  const bool store = use.kind == MemoryKind::kGlobalStore || use.kind == MemoryKind::kGlobalAtomic;
  ++requests_;
  // The L1 moves the bytes that lanes ask for, and looks at a line a clock.
  const double bytes = double(use.lanes) * use.bytes_per_lane;
  const double begin = std::max(clock, l1_channel_.free);
  const double through =
      l1_channel_.take(clock, std::max(bytes, use.line_count * constants_.l1_bytes_per_clock));
  double done = through + (store ? 0 : constants_.l1_latency);
  for (uint32_t n = 0; n < use.line_count; ++n) {
    if (store) {
      done = std::max(
          done, store_line(begin, use.op, use.kind == MemoryKind::kGlobalAtomic, use.device_scope));
    } else if (use.device_scope || !l1_.access(line_of(origin, lines[n]), requests_).hit) {
      done = std::max(done, load_line(begin, use.op, use.device_scope));
    } else {
      found_in_l1(use.op);
    }
  }
  return done;
}

double MemoryPath::scalar(double clock, const RequestOrigin &, const MemoryUse &use,
                          const uint64_t *lines) {
  ++requests_;
  double done = clock + constants_.scalar_load_latency;
  for (uint32_t n = 0; n < use.line_count; ++n) {
    if (!scalar_.access(lines[n], requests_).hit)
      done = std::max(done, load_line(clock, use.op, false));
    else
      found_in_l1(use.op);
  }
  return done;
}

double MemoryPath::fetch(double clock, uint64_t line) {
  ++requests_;
  return instructions_.access(line, requests_).hit ? clock : clock + constants_.icache_miss_latency;
}

}  // namespace flydsl::emu::timing
