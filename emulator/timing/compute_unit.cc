#include "emulator/timing/compute_unit.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <queue>
#include <utility>

#include "emulator/timing/costs.h"
#include "emulator/timing/units.h"
#include "emulator/timing/wave.h"

namespace flydsl::emu::timing {
namespace {

using checks::HazardInfo;
using checks::Units;

// A copy whose data comes back: it still has to be written to LDS.
struct Landing {
  double clock;
  uint64_t order;
  WaveState *wave;
  uint32_t sequence;  // of the wave's vector memory instructions
  double duration;
  bool operator>(const Landing &other) const {
    return clock != other.clock ? clock > other.clock : order > other.order;
  }
};

struct Simd {
  std::vector<WaveState *> waves;  // not ended; by priority, then age
  Slot next = 0;                   // nothing to do before
  Slot vector_free = 0, matrix_free = 0;
};

struct GroupState {
  const GroupTrace *trace;
  uint32_t first_wave = 0;  // index in Simulation::waves_
  uint32_t alive = 0, at_barrier = 0;
};

class Simulation {
 public:
  Simulation(const Program &program, const CostTable &costs,
             const std::vector<const GroupTrace *> &residents, const Constants &constants,
             MemoryPort &memory, const ComputeUnitOptions &options)
      : program_(program),
        costs_(costs),
        c_(constants),
        memory_(memory),
        options_(options),
        lds_(constants.lds_queue_instructions),
        addresses_(constants.vmem_queue_instructions),
        icache_(program.offsets.back(), constants) {
    result_.group_end.assign(residents.size() + options.successors.size(), 0);
    if (options.profile) result_.profile.resize(program.ops.size());
    if (options.warm_code) {
      for (const auto *groups : {&residents, &options.successors})
        for (const GroupTrace *group : *groups) touch_code(*group);
      icache_.warm_up();
    }
    uint32_t placed = 0;
    for (const GroupTrace *group : residents) {
      std::vector<uint32_t> simds;
      for (size_t n = 0; n < group->waves.size(); ++n) simds.push_back(placed++ % kSimds);
      start(*group, simds, 0);
    }
  }

  ComputeUnitResult run() {
    for (Slot slot = 0; alive_;) {
      Slot next = kNever;
      for (const Simd &simd : simds_) next = std::min(next, simd.next);
      if (!landings_.empty()) next = std::min(next, Slot(landings_.top().clock / c_.slot_clocks));
      if (next == kNever)
        throw std::runtime_error("the recorded waves wait for each other at a barrier");
      slot = std::max(slot, next);
      for (uint32_t n = 0; n < kSimds; ++n) {
        land_until(clock_of(slot, n));
        if (simds_[n].next <= slot) run_simd(n, slot);
        for (; !ended_groups_.empty(); ended_groups_.pop_back())
          start_successor(ended_groups_.back(), slot + 1);
      }
      // Clocks of memory are no whole numbers: all that lands before the next slot.
      land_until(std::nextafter(clock_of(slot + 1, 0), 0.0));
    }
    result_.lds_busy = lds_.busy();
    result_.vector_memory_busy = addresses_.busy();
    result_.clocks = *std::max_element(result_.group_end.begin(), result_.group_end.end());
    return std::move(result_);
  }

 private:
  double clock_of(Slot slot, uint32_t simd) const { return double(slot) * c_.slot_clocks + simd; }
  // The first slot of the SIMD that begins at `clock` or later.
  Slot slot_at(double clock, uint32_t simd) const {
    return Slot(std::ceil((clock - simd) / c_.slot_clocks));
  }
  Slot slots_of(double clocks) const { return Slot(std::ceil(clocks / c_.slot_clocks)); }

  void charge(WaveState &wave, Stall reason, Slot until) {
    if (until <= wave.since) return;
    const double clocks = double(until - wave.since) * c_.slot_clocks;
    result_.stall_clocks[unsigned(reason)] += clocks;
    if (options_.profile) result_.profile[wave.op()].stall_clocks[unsigned(reason)] += clocks;
    wave.since = until;
  }

  // The wave cannot issue before `ready`.
  void block(WaveState &wave, Slot now, Stall reason, Slot ready) {
    charge(wave, wave.reason, now);
    wave.reason = reason;
    wave.ready = ready;
  }

  void set_ready(WaveState &wave, Slot ready, Stall reason) {
    wave.ready = ready;
    wave.reason = reason;
    simds_[wave.simd].next = std::min(simds_[wave.simd].next, ready);
  }

  // A work-group whose waves are on `simds` begins at `slot`.
  void start(const GroupTrace &trace, const std::vector<uint32_t> &simds, Slot slot) {
    const uint32_t group = uint32_t(groups_.size());
    if (options_.syncs) result_.syncs.emplace_back(trace.waves.size());
    groups_.push_back({&trace, uint32_t(waves_.size()), uint32_t(trace.waves.size()), 0});
    for (uint32_t n = 0; n < trace.waves.size(); ++n) {
      WaveState &wave =
          waves_.emplace_back(trace.waves[n], group, n, uint32_t(waves_.size()), simds[n], slot);
      ++alive_;
      simds_[wave.simd].waves.push_back(&wave);
      sort_waves(simds_[wave.simd]);
      prepare(wave, slot);
    }
  }

  void start_successor(uint32_t ended, Slot slot) {
    if (next_successor_ == options_.successors.size()) return;
    const GroupTrace &trace = *options_.successors[next_successor_++];
    const GroupState before = groups_[ended];
    const uint32_t count = uint32_t(before.trace->waves.size());
    std::vector<uint32_t> simds;
    for (uint32_t n = 0; n < trace.waves.size(); ++n)
      simds.push_back(waves_[before.first_wave + n % count].simd);
    start(trace, simds, slot);
  }

  void touch_code(const GroupTrace &group) {
    for (const WaveTrace &wave : group.waves)
      for (const uint32_t step : wave.steps)
        icache_.touch(program_.offsets[step & ~kNoLanes] / kLineBytes);
  }

  // By priority, then age, which no two waves share.
  static void sort_waves(Simd &simd) {
    std::sort(simd.waves.begin(), simd.waves.end(), [](const WaveState *x, const WaveState *y) {
      return x->priority != y->priority ? x->priority > y->priority : x->age < y->age;
    });
  }

  // The wave goes on to its next instruction, at `slot` or later: when it can issue as far as that is
  // known from the wave alone.
  void prepare(WaveState &wave, Slot slot) {
    if (wave.at_end()) return set_ready(wave, slot, Stall::kArbitration);
    const uint32_t op = wave.op();
    Slot ready = slot;
    Stall reason = Stall::kArbitration;
    const uint64_t line = program_.offsets[op] / kLineBytes;
    if (line != wave.line) {
      wave.line = line;
      const Slot fetched =
          slot_at(icache_.read(clock_of(slot, wave.simd), line, memory_), wave.simd);
      if (fetched > ready) ready = fetched, reason = Stall::kFetch;
    }
    wave.drop_results(slot);
    if (wave.result_count) wait_for_results(wave, op, ready, reason);
    const Cost &cost = costs_.cost(op);
    if (cost.unit == Unit::kWait) {
      wave.counters_from = ready;
      wait_for_counters(wave, cost, ready, reason);
    }
    set_ready(wave, ready, reason);
  }

  void wait_for_results(const WaveState &wave, uint32_t op, Slot &ready, Stall &reason) const {
    const HazardInfo &info = costs_.registers(op);
    const Unit unit = costs_.cost(op).unit;
    const auto after = [&](Slot slot, Stall why) {
      if (slot > ready) ready = slot, reason = why;
    };
    for (uint32_t n = 0; n < wave.result_count; ++n) {
      const PendingResult &r = wave.results[n];
      if (r.usable <= ready) continue;
      if (r.later == Later::kScalar) {
        for (int u = 0; u < info.uses; ++u)
          if (info.use[u].overlaps(r.registers)) after(r.usable, Stall::kDependency);
      } else if (r.later == Later::kTranscendental) {
        // A transcendental instruction reads the result of another at once.
        if (unit != Unit::kVector && unit != Unit::kMatrix) continue;
        for (int u = 0; u < info.uses; ++u)
          if (info.use[u].overlaps(r.registers)) after(r.usable, Stall::kDependency);
      } else {
        wait_for_matrix(r, info, unit, after);
      }
    }
  }

  template <class After>
  static void wait_for_matrix(const PendingResult &r, const HazardInfo &info, Unit unit,
                              const After &after) {
    const MatrixResult &m = *r.matrix;
    const bool memory = unit == Unit::kLds || unit == Unit::kVectorMemory;
    for (int u = 0; u < info.uses; ++u) {
      const Units use = info.use[u];
      if (!use.overlaps(r.registers)) continue;
      // C is forwarded along a chain of one instruction only (llvm#218363).
      const bool chain = use == r.registers && info.mnemonic == r.mnemonic;
      const int states = unit != Unit::kMatrix ? (memory ? m.memory : m.vector)
                         : u != info.source_c  ? m.source
                         : chain               ? m.same_c
                                               : m.overlap_c;
      after(r.issued + 1 + states, Stall::kMatrixResult);
    }
    if (unit == Unit::kMatrix) return;
    for (int d = 0; d < info.defs; ++d)
      if (info.def[d].overlaps(r.registers)) after(r.issued + 1 + m.vector, Stall::kMatrixResult);
  }

  void wait_for_counters(WaveState &wave, const Cost &cost, Slot &ready, Stall &reason) {
    wave.waits_for_landing = false;
    if (cost.vm_wait != 255) {
      const double done = wave.vm_done(cost.vm_wait);
      if (done == kUnknownClock) {
        // Until a copy has landed: land_until() comes back to this.
        wave.waits_for_landing = true;
        ready = kNever;
        reason = Stall::kVectorMemory;
        return;
      }
      const Slot slot = slot_at(done, wave.simd);
      if (slot > ready) ready = slot, reason = Stall::kVectorMemory;
    }
    if (cost.lgkm_wait != 255) {
      bool scalar = false;
      const Slot slot = slot_at(wave.lgkm_done(cost.lgkm_wait, scalar), wave.simd);
      if (slot > ready) ready = slot, reason = scalar ? Stall::kScalarMemory : Stall::kLds;
    }
  }

  void land_until(double clock) {
    while (!landings_.empty() && landings_.top().clock <= clock) {
      const Landing landing = landings_.top();
      landings_.pop();
      WaveState &wave = *landing.wave;
      wave.vm_complete(landing.sequence, lds_.serve_unqueued(landing.clock, landing.duration));
      if (wave.waits_for_landing) {
        Slot ready = wave.counters_from;
        Stall reason = Stall::kVectorMemory;
        wait_for_counters(wave, costs_.cost(wave.op()), ready, reason);
        set_ready(wave, ready, reason);
      }
    }
  }

  void run_simd(uint32_t index, Slot slot) {
    Simd &simd = simds_[index];
    uint32_t used = 0;  // categories that have issued
    reorder_ = false;
    for (WaveState *wave : simd.waves)
      if (wave->ready <= slot) attempt(*wave, simd, slot, used);
    if (reorder_) {
      std::erase_if(simd.waves, [](const WaveState *wave) { return wave->ended; });
      sort_waves(simd);
    }
    simd.next = kNever;
    for (const WaveState *wave : simd.waves) simd.next = std::min(simd.next, wave->ready);
  }

  // The wave's own conditions hold: issues when category and unit are free.
  void attempt(WaveState &wave, Simd &simd, Slot slot, uint32_t &used) {
    if (wave.at_end()) return end(wave, slot);
    const uint32_t op = wave.op();
    const Cost &cost = costs_.cost(op);
    if (cost.category != Category::kInternal) {
      const uint32_t bit = 1u << unsigned(cost.category);
      if (used & bit) return block(wave, slot, Stall::kArbitration, slot + 1);
      if (!unit_free(wave, cost, simd, slot)) return;
      used |= bit;
    } else if (cost.unit == Unit::kBarrier && !wave.barrier_open) {
      return arrive(wave, slot);
    }
    issue(wave, cost, simd, slot);
  }

  bool unit_free(WaveState &wave, const Cost &cost, const Simd &simd, Slot slot) {
    const double clock = clock_of(slot, wave.simd);
    const auto until = [&](Slot ready, Stall reason) {
      if (ready <= slot) return true;
      block(wave, slot, reason, ready);
      return false;
    };
    const auto until_clock = [&](double ready, Stall reason) {
      return ready <= clock || until(std::max(slot_at(ready, wave.simd), slot + 1), reason);
    };
    switch (cost.unit) {
      case Unit::kVector:
      case Unit::kTranscendental:
        if (cost.waits_for_matrix && !until(simd.matrix_free, Stall::kVectorBusy)) return false;
        return until(simd.vector_free, Stall::kVectorBusy);
      case Unit::kMatrix:
        return until(simd.matrix_free, Stall::kMatrixBusy) &&
               until(simd.vector_free, Stall::kVectorBusy);
      case Unit::kLds:
        return until_clock(wave.lgkm_room(clock, c_.lgkm_limit), Stall::kLdsQueue) &&
               until_clock(lds_.accepts_at(wave.simd), Stall::kLdsQueue);
      case Unit::kScalarMemory:
        return until_clock(wave.lgkm_room(clock, c_.lgkm_limit), Stall::kMemoryQueue);
      case Unit::kVectorMemory: {
        const double room = wave.vm_room(c_.vm_limit);
        if (room == kUnknownClock) return until(slot + 1, Stall::kMemoryQueue);
        return until_clock(room, Stall::kMemoryQueue) &&
               until_clock(addresses_.accepts_at(wave.simd), Stall::kMemoryQueue);
      }
      default:
        return true;
    }
  }

  void issue(WaveState &wave, const Cost &cost, Simd &simd, Slot slot) {
    charge(wave, wave.reason, slot);
    const uint32_t op = wave.op();
    const double clock = clock_of(slot, wave.simd);
    ++result_.wave_instructions;
    if (options_.profile) ++result_.profile[op].issued;
    double unit_end = clock + c_.slot_clocks;
    Slot next = slot + 1;
    wave.since = next;
    switch (cost.unit) {
      case Unit::kVector:
      case Unit::kTranscendental:
      case Unit::kMatrix:
        unit_end = issue_vector(wave, op, cost, simd, slot);
        break;
      case Unit::kScalar:
        result_.scalar_busy += c_.slot_clocks;
        break;
      case Unit::kScalarMemory:
      case Unit::kVectorMemory:
      case Unit::kLds:
        unit_end = issue_memory(wave, cost.unit, clock);
        if (held_until_ > 0) {
          next = std::max(next, slot_at(std::exchange(held_until_, 0.0), wave.simd));
          charge(wave, Stall::kVectorMemory, next);
        }
        break;
      case Unit::kBranch:
        next = slot +
               slots_of(wave.next_is(op + 1) ? c_.branch_not_taken_clocks : c_.branch_taken_clocks);
        charge(wave, Stall::kFetch, next);
        wave.line = kNoLine;
        break;
      case Unit::kNop:
      case Unit::kSleep:
        next = slot + cost.slots;
        charge(wave, Stall::kNop, next);
        break;
      case Unit::kPriority:
        wave.priority = cost.priority;
        reorder_ = true;
        break;
      case Unit::kBarrier:
        wave.barrier_open = false;
        break;
      case Unit::kEnd:
        note(wave, op, cost, clock, unit_end);
        wave.to_end();
        return end(wave, slot);
      default:
        break;
    }
    note(wave, op, cost, clock, unit_end);
    ++wave.step;
    prepare(wave, next);
  }

  double issue_vector(WaveState &wave, uint32_t op, const Cost &cost, Simd &simd, Slot slot) {
    simd.vector_free = slot + cost.port_slots;
    const double held = cost.port_slots * c_.slot_clocks;
    double busy = held;
    if (cost.unit == Unit::kMatrix) {
      simd.matrix_free = slot + cost.passes;
      busy = cost.passes * c_.slot_clocks;
      result_.matrix_busy += busy;
    } else {
      result_.vector_busy += held;
      if (cost.unit == Unit::kTranscendental) result_.transcendental_busy += held;
    }
    if (cost.later != Later::kNo) {
      const HazardInfo &info = costs_.registers(op);
      for (int d = 0; d < info.defs; ++d) {
        if (cost.later == Later::kScalar && info.def[d].vector()) continue;
        PendingResult r{info.def[d], cost.later, slot, slot + cost.slots, nullptr, info.mnemonic};
        if (cost.later == Later::kMatrix) {
          r.matrix = &costs_.matrix_result(op);
          r.usable = slot + 1 + std::max(r.matrix->vector, r.matrix->memory);
        }
        wave.add_result(r);
      }
    }
    return clock_of(slot, wave.simd) + busy;
  }

  // When the instruction is complete; for a copy to LDS, when its data is there.
  double issue_memory(WaveState &wave, Unit unit, double clock) {
    // A damaged file of a recorded launch, whose parts are sound each.
    if (wave.memory_index >= wave.trace.memory.size() ||
        wave.trace.memory[wave.memory_index].op != wave.op())
      throw std::runtime_error("the recorded memory accesses are not those of the instructions");
    const MemoryUse &use = wave.trace.memory[wave.memory_index];
    const uint64_t *lines = wave.trace.lines.data() + use.first_line;
    const RequestOrigin origin{wave.resident, wave.index, wave.memory_index++};
    if (unit == Unit::kLds) {
      const double done = lds_.serve(clock, wave.simd, lds_clocks(use, c_)) + c_.lds_latency;
      wave.lgkm_add(done, false);
      return done;
    }
    if (unit == Unit::kScalarMemory) {
      const double done = memory_.scalar(clock, origin, use, lines);
      wave.lgkm_add(done, true);
      result_.scalar_busy += c_.slot_clocks;
      return done;
    }
    const bool stores =
        use.kind == MemoryKind::kGlobalStore || use.kind == MemoryKind::kGlobalAtomic;
    const double data = stores ? use.lanes * use.bytes_per_lane / c_.l1_bytes_per_clock : 0;
    const double sent = addresses_.serve(
        clock, wave.simd, std::max({1.0, use.lanes / c_.vmem_lanes_per_clock, data}));
    const double done = synchronise(wave, clock, memory_.vector(sent, origin, use, lines));
    const uint32_t sequence = wave.vm_add();
    if (use.kind == MemoryKind::kCopyToLds && use.phases) {
      landings_.push({done, landing_order_++, &wave, sequence, lds_clocks(use, c_)});
    } else {
      wave.vm_complete(sequence, done);
      // A flat instruction counts for both, and may have lanes in LDS.
      if (use.phases) wave.lgkm_add(lds_.serve_unqueued(done, lds_clocks(use, c_)), false);
    }
    return done;
  }

  // A memory instruction that was issued at `clock` and is complete at `done`, or later if it waits for another
  // work-group.
  double synchronise(WaveState &wave, double clock, double done) {
    const auto &syncs = wave.trace.syncs;
    if (wave.sync_index >= syncs.size() || syncs[wave.sync_index].memory + 1 != wave.memory_index)
      return done;
    const uint32_t sync = wave.sync_index++;
    const double latency = done - clock;
    if (options_.awaited && wave.resident == 0 && syncs[sync].load) {
      const double there = options_.awaited(wave.index, sync);
      // Where a wave looks well before it needs the value, it would ask again later; it is held here, since it comes
      // to be as late as makes the look find the value.
      if (there > clock) held_until_ = done = noticed(there, clock, latency, options_.poll_clocks);
    }
    if (options_.syncs) result_.syncs[wave.resident][wave.index].push_back({done, latency});
    return done;
  }

  void arrive(WaveState &wave, Slot slot) {
    block(wave, slot, Stall::kBarrier, kNever);
    GroupState &group = groups_[wave.resident];
    ++group.at_barrier;
    open_barrier(wave.resident, clock_of(slot, wave.simd));
  }

  void open_barrier(uint32_t resident, double clock) {
    GroupState &group = groups_[resident];
    if (!group.at_barrier || group.at_barrier < group.alive) return;
    group.at_barrier = 0;
    for (WaveState &wave : waves_) {
      if (wave.resident != resident || wave.ended || wave.ready != kNever ||
          wave.reason != Stall::kBarrier)
        continue;
      wave.barrier_open = true;
      set_ready(wave, slot_at(clock + c_.barrier_clocks, wave.simd), Stall::kBarrier);
    }
  }

  void end(WaveState &wave, Slot slot) {
    const double clock = clock_of(slot + 1, wave.simd);
    wave.ended = true;
    wave.ready = kNever;
    reorder_ = true;
    --alive_;
    result_.wave_clocks += double(slot + 1 - wave.begin) * c_.slot_clocks;
    double &group_end = result_.group_end[wave.resident];
    group_end = std::max(group_end, clock);
    if (--groups_[wave.resident].alive == 0) ended_groups_.push_back(wave.resident);
    open_barrier(wave.resident, clock);
  }

  void note(const WaveState &wave, uint32_t op, const Cost &cost, double begin, double end) {
    if (!options_.timeline || result_.timeline.size() >= options_.timeline_limit) return;
    result_.timeline.push_back(
        {begin, end, op, uint16_t(wave.simd), uint16_t(wave.age), uint8_t(cost.category)});
  }

  const Program &program_;
  const CostTable &costs_;
  const Constants &c_;
  MemoryPort &memory_;
  const ComputeUnitOptions options_;
  std::deque<WaveState> waves_;  // by age
  std::vector<GroupState> groups_;
  std::vector<uint32_t> ended_groups_;  // whose places are free from the next slot on
  size_t next_successor_ = 0;
  Simd simds_[kSimds];
  Pipe lds_, addresses_;
  InstructionCache icache_;
  std::priority_queue<Landing, std::vector<Landing>, std::greater<>> landings_;
  uint64_t landing_order_ = 0;
  uint32_t alive_ = 0;
  double held_until_ = 0;  // the wave that issues, by another work-group
  bool reorder_ = false;   // of the SIMD that runs: a priority changed or a wave ended
  ComputeUnitResult result_;
};

}  // namespace

double noticed(double there, double asked, double latency, double poll_clocks) {
  if (there <= asked) return asked + latency;
  return std::max(asked, there) + latency + (latency + poll_clocks) / 2;
}

const char *stall_name(Stall stall) {
  static const char *const kNames[] = {
      "none", "arbitration",   "dependency", "matrix_result", "matrix_busy", "vector_busy", "vmcnt",
      "lds",  "scalar_memory", "lds_queue",  "memory_queue",  "barrier",     "fetch",       "nop"};
  static_assert(sizeof kNames / sizeof *kNames == unsigned(Stall::kCount));
  return kNames[unsigned(stall)];
}

ComputeUnitResult simulate_compute_unit(const Program &program, const CostTable &costs,
                                        const std::vector<const GroupTrace *> &residents,
                                        const Constants &constants, MemoryPort &memory,
                                        const ComputeUnitOptions &options) {
  if (residents.empty()) return {};
  return Simulation(program, costs, residents, constants, memory, options).run();
}

ComputeUnitResult simulate_compute_unit(const Program &program,
                                        const std::vector<const GroupTrace *> &residents,
                                        const Constants &constants, MemoryPort &memory,
                                        const ComputeUnitOptions &options) {
  const CostTable costs(program, constants);
  return simulate_compute_unit(program, costs, residents, constants, memory, options);
}

}  // namespace flydsl::emu::timing
