#include "emulator/timing/ordered_schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <stdexcept>
#include <string>

#include "emulator/timing/costs.h"

namespace flydsl::emu::timing {
namespace {

// Places for work-groups: those of the linear index modulo the number of XCDs. `any`: a turn goes to whichever XCD has a
// place first and work-groups left.
class Places {
 public:
  Places(const Machine &machine, uint64_t groups, bool any)
      : machine_(machine), any_(any), free_(machine.xcds) {
    const uint32_t places = machine.compute_units_per_xcd * machine.groups_per_compute_unit;
    for (uint32_t x = 0; x < machine.xcds; ++x) {
      left_.push_back(groups / machine.xcds + (x < groups % machine.xcds));
      for (uint32_t n = 0; n < places; ++n) free_[x].push(0);
    }
  }
  // Takes the place that is free first; its clock.
  double take(uint64_t turn) {
    xcd_ = uint32_t(turn % machine_.xcds);
    if (any_) {
      for (uint32_t x = 0; x < machine_.xcds; ++x)
        if (left_[x] && (!left_[xcd_] || free_[x].top() < free_[xcd_].top())) xcd_ = x;
    }
    --left_[xcd_];
    taken_ = free_[xcd_].top();
    free_[xcd_].pop();
    return taken_;
  }
  // What took it ends.
  void give_back(double end) {
    occupied_ += end - taken_;
    last_ = std::max(last_, end);
    free_[xcd_].push(end);
  }
  Schedule schedule() const {
    Schedule s;
    s.clocks = last_;
    const double all = double(machine_.xcds) * machine_.compute_units_per_xcd *
                       machine_.groups_per_compute_unit * last_;
    if (all > 0) s.idle = std::max(1 - occupied_ / all, 0.0);
    return s;
  }

 private:
  using Queue = std::priority_queue<double, std::vector<double>, std::greater<double>>;
  const Machine &machine_;
  const bool any_;
  std::vector<uint64_t> left_;  // of each XCD
  std::vector<Queue> free_;
  uint32_t xcd_ = 0;
  double taken_ = 0, occupied_ = 0, last_ = 0;
};

// One wait or signal of a work-group, in clocks from its start.
struct Event {
  double clock, latency;
  uint32_t wave, index;  // among the waits, or the signals, of the wave
  bool wait;
};

// Numbers the waits of a wave: loads of one address in a row, a look and a poll, are one.
class WaitNumber {
 public:
  uint32_t of(const SyncUse &load) {
    if (load.address != address_) ++next_, address_ = load.address;
    return next_ - 1;
  }

 private:
  uint64_t address_ = ~uint64_t(0);
  uint32_t next_ = 0;
};

struct Shape {
  const OrderedSample *sample = nullptr;
  std::vector<Event> events;      // in the order of time
  std::vector<uint32_t> signals;  // number of each wave
  bool waits = false;
  double most_signals() const {
    return signals.empty() ? 0 : *std::max_element(signals.begin(), signals.end());
  }
};

// Which signal of the work-group before it a wave's waits are for: wait j, from `first` on, is for signal
// j + shift of its `wave`. Where the two work-groups have different numbers of signals, `first` and `shift` are parts
// of the waiting one's number and of the difference.
struct Segment {
  double first = 0, shift = 0;
  uint32_t wave = 0;
  bool relative = false;
};
using Segments = std::vector<std::vector<Segment>>;  // by wave

[[noreturn]] void refuse(const std::string &why) {
  throw std::invalid_argument(
      "work-groups wait for one another in a way that the model does not know: " + why);
}

class Chain {
 public:
  Chain(const RecordedLaunch &launch, const std::vector<OrderedSample> &samples,
        const std::vector<OrderedSample> &before)
      : launch_(launch), order_(launch.ordering) {
    const std::set<uint32_t> loads(order_.wait_ops.begin(), order_.wait_ops.end());
    std::set<uint64_t> awaited;
    for (const auto *groups : {&launch.samples, &order_.before})
      for (const GroupTrace &group : *groups)
        for (const WaveTrace &wave : group.waves)
          for (const SyncUse &sync : wave.syncs)
            if (sync.load && loads.count(op_of(wave, sync))) awaited.insert(sync.address);
    for (const auto *groups : {&launch.samples, &order_.before})
      for (const GroupTrace &group : *groups)
        for (const WaveTrace &wave : group.waves)
          for (const SyncUse &sync : wave.syncs) {
            if (sync.load ? loads.count(op_of(wave, sync)) : awaited.count(sync.address))
              ops_.insert(op_of(wave, sync));
          }
    for (size_t n = 0; n < samples.size(); ++n)
      shapes_.push_back(shape_of(launch.samples[n], samples[n]));
    for (size_t n = 0; n < order_.before.size(); ++n)
      learn(launch.samples[order_.after[n]], order_.before[n], before[n]);
    if (best_ < 0) refuse("none is known that another one waits for");
  }

  const Segments &segments() const { return segments_; }
  const std::vector<Shape> &shapes() const { return shapes_; }

 private:
  static uint32_t op_of(const WaveTrace &wave, const SyncUse &sync) {
    return wave.memory[sync.memory].op;
  }

  Shape shape_of(const GroupTrace &group, const OrderedSample &sample) const {
    Shape shape;
    shape.sample = &sample;
    shape.signals.assign(group.waves.size(), 0);
    for (uint32_t w = 0; w < group.waves.size(); ++w) {
      WaitNumber waits;
      for (uint32_t n = 0; n < group.waves[w].syncs.size(); ++n) {
        const SyncUse &sync = group.waves[w].syncs[n];
        if (!ops_.count(op_of(group.waves[w], sync))) continue;
        const SyncClock &at = sample.syncs[w][n];
        shape.events.push_back(
            {at.clock, at.latency, w, sync.load ? waits.of(sync) : shape.signals[w]++, sync.load});
        shape.waits |= sync.load;
      }
    }
    std::sort(shape.events.begin(), shape.events.end(), [](const Event &x, const Event &y) {
      return x.clock != y.clock
                 ? x.clock < y.clock
                 : std::tie(x.wave, x.index, x.wait) < std::tie(y.wave, y.index, y.wait);
    });
    return shape;
  }

  // The last signal at each address.
  struct Signal {
    uint32_t wave, index;
    double clock;
  };
  std::map<uint64_t, Signal> signals_of(const GroupTrace &group,
                                        const OrderedSample &sample) const {
    std::map<uint64_t, Signal> result;
    for (uint32_t w = 0; w < group.waves.size(); ++w) {
      uint32_t index = 0;
      for (uint32_t n = 0; n < group.waves[w].syncs.size(); ++n) {
        const SyncUse &sync = group.waves[w].syncs[n];
        if (sync.load || !ops_.count(op_of(group.waves[w], sync))) continue;
        const Signal signal = {w, index++, sample.syncs[w][n].clock};
        const auto [at, fresh] = result.emplace(sync.address, signal);
        if (!fresh && at->second.clock <= signal.clock) at->second = signal;
      }
    }
    return result;
  }

  // What `after` waits for in `before`. Kept of the pair that tells most: with the largest difference in length.
  void learn(const GroupTrace &after, const GroupTrace &before, const OrderedSample &sample) {
    const std::map<uint64_t, Signal> signals = signals_of(before, sample);
    const Shape mine = shape_of(after, sample_of(after)), others = shape_of(before, sample);
    const double own = mine.most_signals(), longer = others.most_signals() - own;
    Segments segments(after.waves.size());
    for (uint32_t w = 0; w < after.waves.size(); ++w) {
      WaitNumber waits;
      for (const SyncUse &sync : after.waves[w].syncs) {
        if (!sync.load || !ops_.count(op_of(after.waves[w], sync))) continue;
        const auto found = signals.find(sync.address);
        if (found == signals.end())
          refuse("work-group " + std::to_string(after.linear_id) +
                 " waits for something that work-group " + std::to_string(before.linear_id) +
                 ", which has the turn before it, does not write");
        const double j = waits.of(sync), shift = double(found->second.index) - j;
        auto &of_wave = segments[w];
        const bool fresh = of_wave.empty() || of_wave.back().wave != found->second.wave ||
                           of_wave.back().shift != shift;
        if (fresh) of_wave.push_back({j, shift, found->second.wave, false});
      }
      constexpr size_t kMostSegments = 512;
      if (segments[w].size() > kMostSegments)
        refuse("the work-group before writes in another order than they are waited for");
    }
    if (longer != 0 && own > 0)
      for (auto &of_wave : segments)
        for (Segment &segment : of_wave) {
          segment.first /= own;
          segment.shift /= longer;
          segment.relative = true;
        }
    if (std::abs(longer) > best_) best_ = std::abs(longer), segments_ = std::move(segments);
  }

  const OrderedSample &sample_of(const GroupTrace &group) const {
    for (size_t n = 0; n < launch_.samples.size(); ++n)
      if (&launch_.samples[n] == &group) return *shapes_[n].sample;
    throw std::logic_error("no sample");
  }

  const RecordedLaunch &launch_;
  const Ordering &order_;
  std::set<uint32_t> ops_;  // that wait or signal
  std::vector<Shape> shapes_;
  Segments segments_;
  double best_ = -1;
};

// The signals of the work-group that had the turn before: clocks of the launch, by wave.
struct Signals {
  std::vector<std::vector<double>> of_wave;
  double count = 0;  // that it has; of_wave may have been simulated with another number

  double at(uint32_t wave, double index) const {
    if (wave >= of_wave.size() || of_wave[wave].empty()) return -1;
    const std::vector<double> &clocks = of_wave[wave];
    if (count > 1) index *= double(clocks.size() - 1) / (count - 1);
    index = std::clamp(index, 0.0, double(clocks.size() - 1));
    const size_t below = size_t(index);
    if (below + 1 >= clocks.size()) return clocks[below];
    return clocks[below] + (index - double(below)) * (clocks[below + 1] - clocks[below]);
  }
};

}  // namespace

OrderedSchedule schedule_ordered(const Machine &machine, const RecordedLaunch &launch,
                                 const std::vector<OrderedSample> &samples,
                                 const std::vector<OrderedSample> &before, double poll_clocks) {
  const Chain chain(launch, samples, before);
  const auto &shapes = chain.shapes();
  std::vector<double> durations, counts;
  for (const Shape &shape : shapes) {
    durations.push_back(shape.sample->clocks);
    counts.push_back(shape.most_signals());
  }
  const uint64_t groups = launch.groups();
  Places places(machine, groups, launch.ordering.one_counter);
  const auto &distances = launch.ordering.distance;
  // Of the last turns, as far back as one is waited for.
  std::vector<Signals> kept(
      (distances.empty() ? 0 : *std::max_element(distances.begin(), distances.end())) + 1);
  double waiting = 0;
  for (uint64_t turn = 0; turn < groups; ++turn) {
    const uint32_t distance = launch.ordering.distance_of(turn);
    const bool waits = distance != 0;
    Signals &own = kept[turn % kept.size()];
    const Signals &last = kept[(turn - distance) % kept.size()];
    // The sample that is most like it, of those that wait or do not.
    SampleRule::Share shares[1 << kAxes];
    size_t like = shapes.size();
    double most = -1;
    bool mixed = false;  // the rule makes it of some that wait and some that do not
    for (uint32_t n = launch.rule.shares(turn, shares); n-- > 0;) {
      const bool same = shapes[shares[n].sample].waits == waits;
      mixed |= !same && shares[n].share > 0;
      if (same && shares[n].share > most) most = shares[n].share, like = shares[n].sample;
    }
    double near = std::numeric_limits<double>::max();
    const double wanted = launch.rule.value(counts, turn);
    for (size_t n = 0; n < shapes.size() && most < 0; ++n)
      if (const double d = std::abs(counts[n] - wanted) + (shapes[n].waits == waits ? 0 : 1e9);
          d < near)
        near = d, like = n;
    const Shape &shape = shapes[like];
    const double duration = mixed && counts[like] > 0 ? shape.sample->clocks * wanted / counts[like]
                                                      : launch.rule.value(durations, turn),
                 stretch = duration / shape.sample->clocks;
    own.of_wave.resize(shape.signals.size());
    for (size_t w = 0; w < own.of_wave.size(); ++w) own.of_wave[w].resize(shape.signals[w]);
    own.count = std::max(std::round(wanted), 1.0);
    const double to_own = counts[like] > 1 ? (own.count - 1) / (counts[like] - 1) : 1,
                 longer = last.count - own.count;

    const double start = places.take(turn) + machine.start_clocks;
    double shift = 0;
    std::vector<size_t> segment(shape.signals.size(), 0);
    for (const Event &event : shape.events) {
      const double clock = start + event.clock * stretch + shift;
      if (!event.wait) {
        own.of_wave[event.wave][event.index] = clock;
        continue;
      }
      if (!waits || event.wave >= chain.segments().size()) continue;
      const auto &of_wave = chain.segments()[event.wave];
      if (of_wave.empty()) continue;
      const double index = event.index * to_own;
      size_t &s = segment[event.wave];
      const auto first = [&](const Segment &x) {
        return x.relative ? x.first * own.count : x.first;
      };
      while (s + 1 < of_wave.size() && index >= std::round(first(of_wave[s + 1]))) ++s;
      const double moved = of_wave[s].relative ? of_wave[s].shift * longer : of_wave[s].shift;
      const double there = last.at(of_wave[s].wave, index + moved);
      shift += noticed(there, clock - event.latency, event.latency, poll_clocks) - clock;
    }
    waiting += shift;
    places.give_back(start + duration + shift);
  }
  return {places.schedule(), waiting / double(groups)};
}

Schedule schedule_at_once(const Machine &machine, const RecordedLaunch &launch,
                          const std::vector<double> &durations) {
  Places places(machine, launch.groups(), launch.ordering.one_counter);
  for (uint64_t turn = 0; turn < launch.groups(); ++turn)
    places.give_back(places.take(turn) + machine.start_clocks + launch.rule.value(durations, turn));
  return places.schedule();
}

OrderedSchedule schedule_in_turn(const Machine &machine, const RecordedLaunch &launch,
                                 const std::vector<double> &durations,
                                 const SimulateTurn &simulate) {
  const std::set<uint32_t> loads(launch.ordering.wait_ops.begin(), launch.ordering.wait_ops.end());
  Places places(machine, launch.groups(), launch.ordering.one_counter);
  std::map<uint64_t, double> written;  // by address: when what the last turn wrote is there
  double waiting = 0;
  for (uint64_t turn = 0; turn < launch.groups(); ++turn) {
    const GroupTrace &group = launch.samples[turn];
    const double start = places.take(turn) + machine.start_clocks;
    const OrderedSample done = simulate(turn, [&](uint32_t wave, uint32_t sync) {
      const SyncUse &use = group.waves[wave].syncs[sync];
      const auto found = loads.count(group.waves[wave].memory[use.memory].op)
                             ? written.find(use.address)
                             : written.end();
      return found == written.end() ? -1.0 : found->second - start;
    });
    std::map<uint64_t, double> own;
    for (uint32_t w = 0; w < group.waves.size(); ++w)
      for (uint32_t n = 0; n < group.waves[w].syncs.size(); ++n) {
        const SyncUse &sync = group.waves[w].syncs[n];
        if (sync.load) continue;
        double &clock = own.emplace(sync.address, 0.0).first->second;
        clock = std::max(clock, start + done.syncs[w][n].clock);
      }
    for (const auto &[address, clock] : own) written[address] = clock;
    waiting += std::max(done.clocks - durations[turn], 0.0);
    places.give_back(start + done.clocks);
  }
  return {places.schedule(), waiting / double(launch.groups())};
}

double poll_loop_clocks(const Program &program, const CostTable &costs, uint32_t op,
                        const Constants &constants) {
  constexpr uint32_t kReach = 64;
  for (uint32_t end = op; end < program.ops.size() && end < op + kReach; ++end) {
    const int32_t begin = program.ops[end].target;
    if (begin < 0 || uint32_t(begin) > op) continue;
    double clocks = constants.branch_taken_clocks;
    for (uint32_t n = uint32_t(begin); n < end; ++n) {
      const Cost &cost = costs.cost(n);
      clocks += constants.slot_clocks *
                (cost.unit == Unit::kNop || cost.unit == Unit::kSleep ? cost.slots : 1);
    }
    return clocks;
  }
  return 0;
}

}  // namespace flydsl::emu::timing
