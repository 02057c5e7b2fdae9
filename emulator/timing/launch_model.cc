#include "emulator/timing/launch_model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <stdexcept>

#include "emulator/timing/costs.h"
#include "emulator/timing/matrix_peak.h"
#include "emulator/timing/memory_path.h"
#include "emulator/timing/memory_system.h"
#include "emulator/timing/ordered_schedule.h"
#include "emulator/timing/schedule.h"
#include "emulator/timing/units.h"

namespace flydsl::emu::timing {
namespace {

// What the compute unit and its memory say about one sample.
struct Simulated {
  ComputeUnitResult unit;
  double clocks = 0;  // of its place, until what it stored has left
  double hbm_bytes = 0, l2_bytes = 0;
};

// Equal for work-groups that take equal time: the addresses of their lines do not count.
uint64_t work_hash(const GroupTrace &group) {
  uint64_t hash = 0xcbf29ce484222325ull;
  const auto add = [&](uint64_t x) {
    hash = (hash ^ x) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 29;
  };
  for (const WaveTrace &wave : group.waves) {
    add(wave.steps.size());
    for (const uint32_t step : wave.steps) add(step);
    for (const MemoryUse &use : wave.memory)
      add(uint64_t(use.line_count) << 48 | uint64_t(use.phases) << 32 | uint64_t(use.lanes) << 16 |
          use.bytes_per_lane);
  }
  return hash;
}

std::string processor_of(const std::string &target) {
  return target.substr(0, target.find(':'));
}

class Modeller {
 public:
  Modeller(const RecordedLaunch &launch, const Constants &constants, const ModelOptions &options)
      : launch_(launch),
        constants_(constants),
        options_(options),
        occupancy_(occupancy_of_launch(launch.facts.unit, launch.facts.group, launch.groups(),
                                       launch.facts.compute_units)),
        active_units_(uint32_t(std::min<uint64_t>(launch.groups(), launch.facts.compute_units))) {
    if (occupancy_.groups_per_compute_unit == 0)
      throw std::invalid_argument("a work-group does not fit a compute unit: " +
                                  std::string(occupancy_.limit));
    // Refuses other architectures before anything looks at their code.
    use_costs_of(constants_);
    memory_ = options.memory ? *options.memory : memory_profile(launch, constants);
  }

  LaunchModel model() {
    const std::vector<double> weights = launch_.rule.weights();
    size_t representative = 0;
    double most = -1;
    for (size_t n = 0; n < weights.size(); ++n) {
      const double work = weights[n] * double(launch_.samples[n].wave_instructions);
      if (work > most) most = work, representative = n;
    }
    const GroupTrace &typical = launch_.samples[representative];

    // The clock follows from the utilisation, which depends a little on the clock through the memory
    // beyond the L2: a first estimate from the representative work-group.
    const Simulated first = simulate(typical, constants_, constants_.clock_max_hz);
    const double clock_hz =
        effective_clock_hz(constants_, first.unit.matrix_busy / (kSimds * first.clocks));

    std::map<uint64_t, Simulated> by_work;
    std::vector<const Simulated *> samples;
    for (const GroupTrace &sample : launch_.samples) {
      const uint64_t hash = work_hash(sample);
      auto found = by_work.find(hash);
      if (found == by_work.end())
        found = by_work.emplace(hash, simulate(sample, constants_, clock_hz)).first;
      samples.push_back(&found->second);
    }

    LaunchModel result;
    describe(result, typical);
    sum_up(result, samples, weights);
    std::vector<double> durations;
    for (const Simulated *sample : samples) durations.push_back(sample->clocks);
    const Machine places = machine(speeds(typical, samples[representative]->clocks, clock_hz));
    const auto duration = [&](uint64_t group) { return launch_.rule.value(durations, group); };
    Schedule schedule;
    if (launch_.ordering.ordered()) {
      const OrderedSchedule ordered = order(places, durations, clock_hz);
      schedule = ordered.schedule;
      describe_order(result, ordered, duration,
                     schedule_at_once(places, launch_, durations).clocks);
    } else {
      schedule = schedule_groups(places, launch_.groups(), duration);
    }
    result.idle = schedule.idle;

    const double unit_clocks = schedule.clocks * launch_.facts.compute_units;
    const double matrix = matrix_busy_ / (kSimds * unit_clocks);
    result.clock_hz = effective_clock_hz(constants_, matrix);
    const double hbm_seconds = result.hbm_bytes / constants_.hbm_bytes_per_second;
    const double busy_seconds = schedule.clocks / result.clock_hz;
    result.bound_by_hbm = hbm_seconds > busy_seconds;
    result.seconds = constants_.launch_overhead_seconds + std::max(hbm_seconds, busy_seconds);
    result.clocks = result.seconds * result.clock_hz;
    result.share_of_peak = ideal_matrix_clocks_ /
                           (launch_.facts.compute_units * constants_.clock_max_hz * result.seconds);
    const double device_clocks_per_s = launch_.facts.compute_units * constants_.clock_max_hz;
    result.peak_flops =
        device_clocks_per_s * (ideal_matrix_clocks_ > 0 ? result.matrix_flops / ideal_matrix_clocks_
                                                        : constants_.matrix_peak_16_bit);
    result.peak_hbm_bytes_per_second = constants_.hbm_peak_bytes_per_second;
    result.extrapolation = extrapolation(schedule.averaged);
    if (!result.ordering.empty()) result.extrapolation += "; " + result.ordering;

    const double typical_clocks = samples[representative]->clocks;
    for (int n = 0; n < 2; ++n)
      result.lds_hypotheses[n] =
          hypothesis(n ? 256 : 128, typical, typical_clocks, schedule.clocks, matrix, hbm_seconds);
    result.detail = simulate(typical, constants_, clock_hz, &options_).unit;
    result.timeline_truncated =
        options_.timeline && result.detail.timeline.size() >= options_.timeline_limit;
    return result;
  }

 private:
  // `clocks`: of the launch if no work-group waited.
  template <class Duration>
  void describe_order(LaunchModel &result, const OrderedSchedule &ordered, const Duration &duration,
                      double clocks) const {
    double all = 0;
    for (uint64_t group = 0; group < launch_.groups(); ++group) all += duration(group);
    const double mean = all / double(launch_.groups()) + start_clocks();
    result.waiting_clocks = ordered.waiting_clocks;
    result.waiting_share = ordered.waiting_clocks / (ordered.waiting_clocks + mean);
    const double matrix = matrix_busy_ / (kSimds * clocks * launch_.facts.compute_units);
    result.seconds_without_waiting =
        constants_.launch_overhead_seconds + clocks / effective_clock_hz(constants_, matrix);
    char waiting[64];
    std::snprintf(waiting, sizeof waiting, "%.0f clocks", ordered.waiting_clocks);
    const Ordering &ordering = launch_.ordering;
    result.ordering = std::string("turns come from ") +
                      (ordering.one_counter ? "a counter, in the order in which work-groups start"
                       : ordering.tickets   ? "counters, one for the work-groups of an XCD or so"
                                            : "the order of the grid") +
                      "; waiting for other work-groups: " + waiting + " of each on average, ";
    if (simulated_in_turn())
      result.ordering += "each simulated as it waits";
    else
      result.ordering +=
          "assumed from work-groups simulated as if they found what they wait for, each delayed by "
          "the one before it" +
          std::string(ordering.periodic ? "; which ones wait repeats itself every " +
                                              std::to_string(ordering.distance.size()) + " turns"
                                        : "");
    if (ordering.moved)
      result.ordering += "; " + std::to_string(ordering.moved) +
                         " samples that wait for nobody stand where the next one does that waits";
  }

  bool simulated_in_turn() const {
    return occupancy_.groups_per_compute_unit == 1 && launch_.samples.size() == launch_.groups();
  }

  // A work-group on a compute unit by itself, or among copies; `awaited` as ComputeUnitOptions::awaited.
  OrderedSample simulate_waiting(const GroupTrace &group, double clock_hz, double poll_clocks,
                                 const std::function<double(uint32_t, uint32_t)> &awaited) {
    use_costs_of(constants_);
    MemoryPath path(constants_, memory_, clock_hz, active_units_);
    ComputeUnitOptions options;
    options.syncs = true;
    options.awaited = awaited;
    options.poll_clocks = poll_clocks;
    options.warm_code = rounds_of_launch() >= 2;
    const std::vector<const GroupTrace *> copies(occupancy_.groups_per_compute_unit, &group);
    ComputeUnitResult done =
        simulate_compute_unit(*launch_.program, *costs_, copies, constants_, path, options);
    // A damaged file of a recorded launch, again.
    for (size_t wave = 0; wave < group.waves.size(); ++wave)
      if (done.syncs[0][wave].size() != group.waves[wave].syncs.size())
        throw std::runtime_error("the recorded waits are not those of the instructions");
    return {std::max({done.group_end[0], path.drained(), 1.0}), std::move(done.syncs[0])};
  }

  OrderedSchedule order(const Machine &places, const std::vector<double> &durations,
                        double clock_hz) {
    use_costs_of(constants_);
    double poll_clocks = 0;
    for (const uint32_t op : launch_.ordering.wait_ops)
      poll_clocks =
          std::max(poll_clocks, poll_loop_clocks(*launch_.program, *costs_, op, constants_));
    if (simulated_in_turn())
      return schedule_in_turn(places, launch_, durations, [&](uint64_t turn, const auto &awaited) {
        return simulate_waiting(launch_.samples[turn], clock_hz, poll_clocks, awaited);
      });
    std::map<uint64_t, OrderedSample> by_work;
    const auto simulated = [&](const GroupTrace &group, double clocks) {
      const uint64_t hash = work_hash(group);
      auto found = by_work.find(hash);
      if (found == by_work.end())
        found = by_work.emplace(hash, simulate_waiting(group, clock_hz, poll_clocks, {})).first;
      OrderedSample sample = found->second;
      // In steady state, among others at other places of their work.
      if (clocks > 0)
        for (auto &wave : sample.syncs)
          for (SyncClock &sync : wave) sync.clock *= clocks / sample.clocks;
      if (clocks > 0) sample.clocks = clocks;
      return sample;
    };
    std::vector<OrderedSample> samples, before;
    for (size_t n = 0; n < launch_.samples.size(); ++n)
      samples.push_back(simulated(launch_.samples[n], durations[n]));
    for (const GroupTrace &group : launch_.ordering.before) before.push_back(simulated(group, 0));
    return schedule_ordered(places, launch_, samples, before, poll_clocks);
  }

  // Of the representative work-group when it shares its compute unit with fewer others, against a full
  // one. Looked at for 1, 2, 4, ... of them, in launches whose tail matters.
  std::vector<double> speeds(const GroupTrace &typical, double full_clocks, double clock_hz) {
    constexpr double kRoundsOfALongLaunch = 50;
    const uint32_t full = occupancy_.groups_per_compute_unit;
    std::vector<double> result(full, 1.0);
    if (rounds_of_launch() > kRoundsOfALongLaunch) return result;
    uint32_t from = 1;
    for (uint32_t n = 1; n < full; from = n, n *= 2) {
      const Simulated fewer =
          simulate_rounds(typical, constants_, clock_hz, n,
                          rounds_of_launch() >= 2 && n > 1 ? 3 : 1, rounds_of_launch() >= 2);
      result[n - 1] = std::max(full_clocks / fewer.clocks, 1.0);
      between(result, from, n);
    }
    between(result, from, full);
    return result;
  }
  static void between(std::vector<double> &values, uint32_t from, uint32_t to) {
    for (uint32_t n = from + 1; n < to; ++n)
      values[n - 1] =
          values[from - 1] + (values[to - 1] - values[from - 1]) * (n - from) / (to - from);
  }

  // Before each work-group. Fitted on kernels whose work-groups take a compute unit each; what is
  // handed over to a smaller one is its part of the compute unit.
  double start_clocks() const {
    return constants_.group_start_clocks /
           occupancy_of(launch_.facts.unit, launch_.facts.group).groups_per_compute_unit;
  }

  // Work-groups that each place runs one after the other.
  double rounds_of_launch() const {
    return double(launch_.groups()) /
           (double(occupancy_.groups_per_compute_unit) * launch_.facts.compute_units);
  }

  void use_costs_of(const Constants &constants) {
    if (costs_ && costs_of_ == &constants) return;
    costs_ = std::make_unique<CostTable>(*launch_.program, constants);
    costs_of_ = &constants;
  }

  Machine machine(std::vector<double> speed) const {
    Machine machine;
    machine.speed = std::move(speed);
    machine.xcds = launch_.facts.xcds;
    machine.compute_units_per_xcd = launch_.facts.compute_units / launch_.facts.xcds;
    machine.groups_per_compute_unit = occupancy_.groups_per_compute_unit;
    machine.start_clocks = start_clocks();
    return machine;
  }

  // The time that a place takes for a work-group, on average over those that it runs one after the
  // other: only the first finds the instruction cache empty and starts together with its neighbours.
  Simulated simulate(const GroupTrace &group, const Constants &constants, double clock_hz,
                     const ModelOptions *detail = nullptr) {
    const uint32_t residents = occupancy_.groups_per_compute_unit;
    const double rounds = rounds_of_launch();
    if (detail || rounds < 2)
      return simulate_rounds(group, constants, clock_hz, residents, 1, rounds >= 2, detail);
    // Copies that share a compute unit end at different times. In steady state others follow at once:
    // what counts is the time between the ends, one round after another.
    Simulated steady = residents == 1
                           ? simulate_rounds(group, constants, clock_hz, residents, 1, true)
                           : simulate_rounds(group, constants, clock_hz, residents, 3, true);
    constexpr double kManyRounds = 8;
    if (rounds < kManyRounds) {
      const Simulated first = simulate_rounds(group, constants, clock_hz, residents, 1, false);
      steady.clocks += (first.clocks - steady.clocks) / rounds;
    }
    return steady;
  }

  // `count` copies at a time; `rounds` 3: the first and the last only keep the neighbours busy.
  Simulated simulate_rounds(const GroupTrace &group, const Constants &constants, double clock_hz,
                            uint32_t count, uint32_t rounds, bool warm_code,
                            const ModelOptions *detail = nullptr) {
    use_costs_of(constants);
    MemoryPath path(constants, memory_, clock_hz, active_units_);
    ComputeUnitOptions options;
    if (detail) {
      options.profile = detail->profile;
      options.timeline = detail->timeline;
      options.timeline_limit = detail->timeline_limit;
    }
    const std::vector<const GroupTrace *> copies(count, &group);
    options.successors.assign(size_t(rounds - 1) * count, &group);
    options.warm_code = warm_code;
    Simulated result;
    result.unit =
        simulate_compute_unit(*launch_.program, *costs_, copies, constants, path, options);
    double clocks = result.unit.clocks;
    if (rounds > 1) {
      std::vector<double> ends = result.unit.group_end;
      std::sort(ends.begin(), ends.end());
      clocks = ends[2 * count - 1] - ends[count - 1];
      for (double *busy :
           {&result.unit.matrix_busy, &result.unit.vector_busy, &result.unit.transcendental_busy,
            &result.unit.scalar_busy, &result.unit.lds_busy, &result.unit.vector_memory_busy})
        *busy /= rounds;
    }
    result.unit.clocks = clocks;
    result.clocks = std::max({clocks, path.drained() / rounds, 1.0});
    result.hbm_bytes = path.hbm_bytes() / (rounds * count);
    result.l2_bytes = path.l2_bytes() / (rounds * count);
    return result;
  }

  void describe(LaunchModel &result, const GroupTrace &typical) const {
    const LaunchFacts &facts = launch_.facts;
    result.kernel = facts.kernel;
    result.arch = processor_of(facts.target);
    std::copy(facts.grid, facts.grid + 3, result.grid);
    std::copy(facts.block, facts.block + 3, result.block);
    result.compute_units = facts.compute_units;
    result.occupancy = occupancy_;
    result.groups = launch_.groups();
    result.groups_sampled = launch_.samples.size();
    result.l2_hit_rate = memory_.hit_rate;
    result.representative = typical.linear_id;
    result.constants_hash = constants_hash(constants_);
  }

  // Sums over all work-groups; shares of the time of the places that they take.
  void sum_up(LaunchModel &result, const std::vector<const Simulated *> &samples,
              const std::vector<double> &weights) {
    const double residents = occupancy_.groups_per_compute_unit;
    double clocks = 0;
    for (size_t n = 0; n < samples.size(); ++n) {
      const Simulated &s = *samples[n];
      const double units = weights[n] / residents;  // compute units full of this sample
      clocks += units * (s.clocks + start_clocks());
      matrix_busy_ += units * s.unit.matrix_busy;
      ideal_matrix_clocks_ +=
          weights[n] * ideal_matrix_clocks(*launch_.program, launch_.samples[n], constants_);
      result.matrix_flops += weights[n] * double(launch_.samples[n].mfma_flops);
      result.hbm_bytes += weights[n] * s.hbm_bytes;
      result.l2_bytes += weights[n] * s.l2_bytes;
      result.matrix += units * s.unit.matrix_busy / kSimds;
      result.vector += units * s.unit.vector_busy / kSimds;
      result.transcendental += units * s.unit.transcendental_busy / kSimds;
      result.scalar += units * s.unit.scalar_busy / kSimds;
      result.lds += units * s.unit.lds_busy;
      result.vector_memory += units * s.unit.vector_memory_busy;
    }
    for (double *share : {&result.matrix, &result.vector, &result.transcendental, &result.scalar,
                          &result.lds, &result.vector_memory})
      *share /= clocks;
  }

  LdsHypothesis hypothesis(double bytes, const GroupTrace &typical, double typical_clocks,
                           double clocks, double matrix, double hbm_seconds) {
    LdsHypothesis result;
    result.bytes_per_clock = bytes;
    Constants changed = constants_;
    changed.lds_bytes_per_clock = bytes;
    double ratio = 1;
    if (bytes != constants_.lds_bytes_per_clock) {
      const double clock_hz = effective_clock_hz(changed, matrix);
      ratio = simulate(typical, changed, clock_hz).clocks / typical_clocks;
      costs_.reset();  // those of `changed`
    }
    result.clock_hz = effective_clock_hz(changed, matrix / ratio);
    result.seconds = constants_.launch_overhead_seconds +
                     std::max(hbm_seconds, clocks * ratio / result.clock_hz);
    return result;
  }

  std::string extrapolation(bool averaged) const {
    std::string s = launch_.rule.text();
    if (occupancy_.groups_per_compute_unit > 1)
      s += "; " + std::to_string(occupancy_.groups_per_compute_unit) +
           " copies of each share a compute unit";
    s += "; L2 from " + std::to_string(memory_.streams) + " work-groups that start together";
    if (memory_.steps != UINT64_MAX)
      s += ", " + std::to_string(memory_.steps) + " instructions of each wave";
    if (averaged) s += "; no tail, the launch is long";
    s += "; the other LDS hypothesis from the representative work-group";
    return s;
  }

  const RecordedLaunch &launch_;
  const Constants &constants_;
  const ModelOptions &options_;
  const Occupancy occupancy_;
  const uint32_t active_units_;
  MemoryProfile memory_;
  std::unique_ptr<CostTable> costs_;
  const Constants *costs_of_ = nullptr;
  double matrix_busy_ = 0, ideal_matrix_clocks_ = 0;  // of the launch
};

}  // namespace

double effective_clock_hz(const Constants &constants, double matrix) {
  const bool wide = constants.lds_bytes_per_clock >= 192;
  const double level = wide ? constants.clock_level_256_hz : constants.clock_level_128_hz;
  const double exponent = wide ? constants.clock_exponent_256 : constants.clock_exponent_128;
  if (!(matrix > 0)) return constants.clock_max_hz;
  return std::min(constants.clock_max_hz, level * std::pow(matrix, -exponent));
}

MemoryProfile memory_profile(const RecordedLaunch &launch, const Constants &constants) {
  MemoryStreams streams;
  streams.compute_units.resize(std::clamp<size_t>(launch.facts.compute_units / launch.facts.xcds, 1,
                                                  launch.streams.size() + 1));
  for (size_t n = 0; n < launch.streams.size(); ++n)
    streams.compute_units[n % streams.compute_units.size()].push_back(&launch.streams[n]);
  for (const GroupTrace &group : launch.other_xcds) streams.other_xcds.push_back(&group);
  streams.xcds = launch.facts.xcds;
  streams.footprint_bytes = launch.footprint_bytes;
  return profile_memory(streams, launch.program->ops.size(), constants);
}

LaunchModel model_launch(const RecordedLaunch &launch, const Constants &constants,
                         const ModelOptions &options) {
  return Modeller(launch, constants, options).model();
}

}  // namespace flydsl::emu::timing
