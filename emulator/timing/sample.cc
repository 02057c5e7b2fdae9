#include "emulator/timing/sample.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "emulator/engine/options.h"

namespace flydsl::emu::timing {
namespace {

// An axis that needs more points is not smooth. Periods of x that are looked at, and tried.
constexpr size_t kMostPoints = 13;
constexpr uint32_t kMostLooks = 24, kMostPeriods = 3, kLongestPeriod = 1 << 16;

class Chooser {
 public:
  Chooser(const uint32_t grid[3], const MeasureWork &measure, const SampleLimits &limits)
      : measure_(measure), limits_(limits) {
    set_period(grid[0], grid[0]);
    rule_.size[2] = grid[1];
    rule_.size[3] = grid[2];
  }

  SampleRule choose() {
    if (rule_.groups() <= limits_.all_groups) {
      for (int axis = 0; axis < kAxes; ++axis)
        for (uint32_t n = 0; n < rule_.size[axis]; ++n) rule_.at[axis].push_back(n);
      if (combine()) return rule_;
    }
    const bool fitted = fits();
    if (fitted && is_smooth()) return rule_;
    const SampleRule without_runs = rule_;
    const uint32_t x = rule_.size[0];
    if (const uint32_t run = run_of(x); run > 1) {
      rule_.run = run;
      set_period(x / run, x / run);
      if (fits() || (!fitted && fits_with_period())) return rule_;
      rule_ = without_runs;
    }
    if (fitted || fits_with_period()) return rule_;
    set_period(x, x);
    scatter();
    return rule_;
  }

 private:
  // Of all axes: no steps were found.
  bool is_smooth() const {
    return rule_.held_out_error <= limits_.linear_tolerance &&
           std::all_of(std::begin(rule_.at), std::end(rule_.at),
                       [](const auto &points) { return points.size() <= 3; });
  }
  // Neighbours from 0 on that do equal work; 1 where they are no part of x.
  uint32_t run_of(uint32_t x) {
    const auto equal = [&](uint32_t n) {
      return may_measure() && know({0, n}) &&
             difference(work_[0], work_[n]) <= limits_.constant_tolerance;
    };
    uint32_t run = 1;
    while (2 * run <= x && equal(2 * run - 1)) run *= 2;
    for (uint32_t step = run / 2; step > 0; step /= 2)
      if (run + step <= x && equal(run + step - 1)) run += step;
    return run < x && x % run == 0 ? run : 1;
  }
  bool fits_with_period() {
    const uint32_t x = rule_.size[0];
    uint32_t looks = 0, tried = 0;
    const uint32_t longest = std::min(x / 2, kLongestPeriod);
    const uint64_t run = rule_.run;
    for (uint32_t period = 2; period <= longest && looks < kMostLooks && tried < kMostPeriods;
         ++period) {
      if (x % period) continue;
      if (!may_measure() || !know({0, run * period})) break;
      ++looks;
      if (difference(work_[0], work_[run * period]) > limits_.constant_tolerance) continue;
      // Nothing changes within it: neighbours that do equal work.
      if (!know({0, run * (period / 2)})) break;
      if (difference(work_[0], work_[run * (period / 2)]) <= limits_.constant_tolerance) continue;
      ++tried;
      set_period(x, period);
      if (fits()) return true;
    }
    set_period(x, x);
    return false;
  }
  void set_period(uint32_t x, uint32_t period) {
    rule_.size[0] = period;
    rule_.size[1] = x / period;
  }

  // Finds the points of a rule; does it hold?
  bool fits() {
    std::fill(base_, base_ + kAxes, 0);
    for (int axis = 0; axis < kAxes; ++axis) {
      rule_.at[axis] = points_along(axis);
      // The next axes are looked at where there is most work: a short row hides what they change.
      base_[axis] = *std::max_element(rule_.at[axis].begin(), rule_.at[axis].end(),
                                      [&](uint32_t a, uint32_t b) {
                                        return work_[on_axis(axis, a)] < work_[on_axis(axis, b)];
                                      });
    }
    if (!combine()) {
      // Not all combinations can be had: their ends and middles.
      for (auto &points : rule_.at)
        if (points.size() > 3) points = {points.front(), points[points.size() / 2], points.back()};
      if (!combine()) return false;
    }
    return holds();
  }

  // Work of these, where it is not known yet. False when some of it cannot be had.
  bool know(const std::vector<uint64_t> &groups) {
    std::vector<uint64_t> wanted;
    for (const uint64_t group : groups)
      if (!work_.count(group) && std::find(wanted.begin(), wanted.end(), group) == wanted.end())
        wanted.push_back(group);
    if (!wanted.empty()) {
      const std::vector<double> work = measure_(wanted);
      for (size_t n = 0; n < wanted.size(); ++n) {
        if (n >= work.size() || work[n] < 0) continue;
        work_[wanted[n]] = work[n];
        spent_ += work[n];
      }
    }
    return std::all_of(groups.begin(), groups.end(),
                       [&](uint64_t group) { return work_.count(group) != 0; });
  }
  bool may_measure() const { return spent_ < limits_.work; }

  uint64_t linear_of(const uint32_t at[kAxes]) const {
    const uint64_t x = (uint64_t{at[1]} * rule_.size[0] + at[0]) * rule_.run;
    return (uint64_t{at[3]} * rule_.size[2] + at[2]) * rule_.x_groups() + x;
  }
  uint64_t on_axis(int axis, uint32_t n) const {
    uint32_t at[kAxes];
    std::copy(base_, base_ + kAxes, at);
    at[axis] = n;
    return linear_of(at);
  }
  static double difference(double a, double b) {
    return std::abs(a - b) / std::max({std::abs(a), std::abs(b), 1.0});
  }

  std::vector<uint32_t> points_along(int axis) {
    const uint32_t n = rule_.size[axis];
    if (n == 1) return {0};
    std::vector<uint32_t> points = {0, n / 2, n - 1};
    points.erase(std::unique(points.begin(), points.end()), points.end());
    std::vector<uint64_t> groups;
    for (const uint32_t point : points) groups.push_back(on_axis(axis, point));
    if (!know(groups)) return {0};
    const double first = work_[groups[0]];
    if (std::all_of(groups.begin(), groups.end(), [&](uint64_t group) {
          return difference(work_[group], first) <= limits_.constant_tolerance;
        }))
      return {0};
    for (size_t k = 0; k + 1 < points.size() && points.size() < kMostPoints;) {
      const uint32_t left = points[k], right = points[k + 1], middle = left + (right - left) / 2;
      ++k;
      if (middle == left || !may_measure() || !know({on_axis(axis, middle)})) continue;
      const double t = double(middle - left) / (right - left);
      const double between = (1 - t) * work_[on_axis(axis, left)] + t * work_[on_axis(axis, right)];
      if (difference(between, work_[on_axis(axis, middle)]) <= limits_.linear_tolerance) continue;
      points.insert(points.begin() + ptrdiff_t(k), middle);
      --k;
    }
    return points;
  }

  bool combine() {
    size_t combinations = 1;
    for (const auto &points : rule_.at) combinations *= points.size();
    if (combinations > limits_.samples) return false;
    rule_.samples.clear();
    for (size_t n = 0; n < combinations; ++n) {
      uint32_t at[kAxes];
      size_t rest = n;
      for (int axis = 0; axis < kAxes; ++axis) {
        at[axis] = rule_.at[axis][rest % rule_.at[axis].size()];
        rest /= rule_.at[axis].size();
      }
      rule_.samples.push_back(linear_of(at));
    }
    return know(rule_.samples);
  }

  // Does the rule foretell work-groups that it was not made from?
  bool holds() {
    std::vector<double> work;
    for (const uint64_t sample : rule_.samples) work.push_back(work_[sample]);
    const double most = work.empty() ? 1 : *std::max_element(work.begin(), work.end());
    rule_.held_out = 0;
    rule_.held_out_error = 0;
    Random random(0x5eed);
    std::vector<uint64_t> groups;
    for (uint32_t n = 0; n < limits_.held_out; ++n) {
      const uint64_t group = random.below(rule_.groups());
      if (std::find(rule_.samples.begin(), rule_.samples.end(), group) == rule_.samples.end())
        groups.push_back(group);
    }
    if (spent_ < limits_.work) (void)know(groups);
    for (const uint64_t group : groups) {
      if (!work_.count(group)) continue;
      ++rule_.held_out;
      rule_.held_out_error =
          std::max(rule_.held_out_error,
                   std::abs(rule_.value(work, group) - work_[group]) / std::max(most, 1.0));
    }
    return rule_.held_out_error <= limits_.held_out_tolerance;
  }

  void scatter() {
    rule_.scattered = true;
    rule_.samples.clear();
    Random random(0xd15c);
    for (uint32_t n = 0; n < limits_.scattered; ++n) {
      const uint64_t group = random.below(rule_.groups());
      if (!work_.count(group) && spent_ >= limits_.work) continue;
      if (know({group})) rule_.samples.push_back(group);
    }
    std::sort(rule_.samples.begin(), rule_.samples.end());
    rule_.samples.erase(std::unique(rule_.samples.begin(), rule_.samples.end()),
                        rule_.samples.end());
    if (rule_.samples.empty())
      for (const auto &known : work_) rule_.samples.push_back(known.first);
  }

  const MeasureWork &measure_;
  const SampleLimits &limits_;
  SampleRule rule_;
  uint32_t base_[kAxes] = {};  // on the line along which an axis is looked at
  std::map<uint64_t, double> work_;
  double spent_ = 0;
};

// Position of `n` among the points of an axis: the one at or below, and the share of the next.
std::pair<uint32_t, double> locate(const std::vector<uint32_t> &points, uint32_t n) {
  if (points.size() == 1) return {0, 0};
  uint32_t k = uint32_t(std::upper_bound(points.begin(), points.end(), n) - points.begin());
  k = std::clamp<uint32_t>(k, 1, uint32_t(points.size() - 1)) - 1;
  return {k, double(n - points[k]) / (points[k + 1] - points[k])};
}

}  // namespace

uint32_t SampleRule::shares(uint64_t linear, Share out[1 << kAxes]) const {
  if (scattered) {
    out[0] = {uint32_t(Random(linear).below(samples.size())), 1};
    return 1;
  }
  linear = linear / x_groups() * (x_groups() / run) + linear % x_groups() / run;
  uint32_t count = 1, pitch = 1;
  out[0] = {0, 1};
  for (int axis = 0; axis < kAxes; ++axis) {
    const auto [below, share] = locate(at[axis], uint32_t(linear % size[axis]));
    linear /= size[axis];
    for (uint32_t n = 0, before = count; n < before; ++n) {
      Share upper = out[n];
      out[n].sample += below * pitch;
      out[n].share *= 1 - share;
      if (share == 0) continue;
      upper.sample += (below + 1) * pitch;
      upper.share *= share;
      out[count++] = upper;
    }
    pitch *= uint32_t(at[axis].size());
  }
  return count;
}

double SampleRule::value(const std::vector<double> &of_samples, uint64_t linear) const {
  Share share[1 << kAxes];
  double sum = 0;
  for (uint32_t n = shares(linear, share); n-- > 0;)
    sum += share[n].share * of_samples[share[n].sample];
  return sum;
}

std::vector<double> SampleRule::weights() const {
  std::vector<double> result(samples.size());
  if (scattered) {
    std::fill(result.begin(), result.end(), double(groups()) / double(samples.size()));
    return result;
  }
  std::vector<double> along[kAxes];
  for (int axis = 0; axis < kAxes; ++axis) {
    along[axis].resize(at[axis].size());
    if (at[axis].size() == 1) {
      along[axis][0] = size[axis];
      continue;
    }
    for (uint32_t n = 0; n < size[axis]; ++n) {
      const auto [below, share] = locate(at[axis], n);
      along[axis][below] += 1 - share;
      along[axis][below + 1] += share;
    }
  }
  for (size_t sample = 0; sample < result.size(); ++sample) {
    result[sample] = run;
    size_t rest = sample;
    for (const auto &weights_along : along) {
      result[sample] *= weights_along[rest % weights_along.size()];
      rest /= weights_along.size();
    }
  }
  return result;
}

std::string SampleRule::text() const {
  std::string s =
      std::to_string(samples.size()) + " of " + std::to_string(groups()) + " work-groups simulated";
  if (samples.size() == groups()) return s;
  if (scattered) {
    s += ", picked at random; each of the others stands like one of them, because their work is "
         "no smooth function of the grid";
    return s;
  }
  const std::string period = std::to_string(size[0]),
                    x = run == 1 ? "x" : "x / " + std::to_string(run);
  const std::string names[kAxes] = {size[1] == 1 ? x : x + " modulo " + period,
                                    "x / " + std::to_string(uint64_t{run} * size[0]), "y", "z"};
  std::string equal;
  for (int axis = 0; axis < kAxes; ++axis) {
    if (size[axis] == 1) continue;
    if (at[axis].size() == 1) {
      equal += (equal.empty() ? "" : ", ") + names[axis];
      continue;
    }
    s += "; along " + names[axis];
    if (at[axis].size() == size[axis]) {
      s += " all";
      continue;
    }
    s += " linear between";
    for (size_t n = 0; n < at[axis].size(); ++n)
      s += (n ? ", " : " ") + std::to_string(at[axis][n]);
  }
  if (!equal.empty()) s += "; equal along " + equal;
  if (held_out) {
    char error[96];
    std::snprintf(error, sizeof error, "; off by at most %.2g %% on %u others",
                  100 * held_out_error, held_out);
    s += error;
  }
  return s;
}

SampleRule choose_samples(const uint32_t grid[3], const MeasureWork &measure,
                          const SampleLimits &limits) {
  return Chooser(grid, measure, limits).choose();
}

}  // namespace flydsl::emu::timing
