#include "emulator/timing/schedule.h"

#include <algorithm>
#include <queue>
#include <set>

namespace flydsl::emu::timing {
namespace {

// Above it a launch is so many times the machine that its tail does not matter.
constexpr uint64_t kMostFollowed = uint64_t(1) << 18;

class Xcd {
 public:
  explicit Xcd(const Machine &machine) : machine_(machine), units_(machine.compute_units_per_xcd) {
    for (uint32_t unit = 0; unit < units_.size(); ++unit) free_.insert({0, unit});
  }

  bool has_place() const { return !free_.empty(); }
  void start(double work) {
    const uint32_t index = free_.begin()->second;
    free_.erase(free_.begin());
    Unit &unit = units_[index];
    advance(unit, now_);
    unit.left.push_back(work);
    if (unit.left.size() < machine_.groups_per_compute_unit)
      free_.insert({unit.left.size(), index});
    expect(index);
  }
  // To the next end of a work-group, with all others at that moment. False: nothing runs.
  bool next() {
    while (!ends_.empty() && ends_.top().version != units_[ends_.top().unit].version) ends_.pop();
    if (ends_.empty()) return false;
    now_ = ends_.top().clock;
    while (!ends_.empty() && ends_.top().clock <= now_) {
      const End end = ends_.top();
      ends_.pop();
      if (end.version == units_[end.unit].version) remove_ended(end.unit);
    }
    return true;
  }
  double now() const { return now_; }
  double occupied() const { return occupied_; }  // places, over time

 private:
  struct Unit {
    std::vector<double> left;  // work of each work-group, in clocks of a full compute unit
    double now = 0;
    uint64_t version = 0;
  };
  struct End {
    double clock;
    uint32_t unit;
    uint64_t version;
    bool operator>(const End &o) const {
      return clock != o.clock ? clock > o.clock : unit > o.unit;
    }
  };

  double speed(size_t groups) const {
    return groups <= machine_.speed.size() ? machine_.speed[groups - 1] : 1;
  }
  void advance(Unit &unit, double clock) {
    if (!unit.left.empty()) {
      const double done = (clock - unit.now) * speed(unit.left.size());
      for (double &left : unit.left) left -= done;
      occupied_ += (clock - unit.now) * double(unit.left.size());
    }
    unit.now = clock;
  }
  void expect(uint32_t index) {
    Unit &unit = units_[index];
    ++unit.version;
    if (unit.left.empty()) return;
    const double least = std::max(*std::min_element(unit.left.begin(), unit.left.end()), 0.0);
    ends_.push({unit.now + least / speed(unit.left.size()), index, unit.version});
  }
  void remove_ended(uint32_t index) {
    Unit &unit = units_[index];
    free_.erase({unit.left.size(), index});
    advance(unit, now_);
    // Differences of large clocks are rounded.
    std::erase_if(unit.left, [&](double left) { return left <= 1e-9 * (now_ + 1); });
    free_.insert({unit.left.size(), index});
    expect(index);
  }

  const Machine &machine_;
  std::vector<Unit> units_;
  std::set<std::pair<size_t, uint32_t>> free_;  // units with a free place, by their work-groups
  std::priority_queue<End, std::vector<End>, std::greater<End>> ends_;
  double now_ = 0, occupied_ = 0;
};

}  // namespace

Schedule schedule_groups(const Machine &machine, uint64_t groups,
                         const std::function<double(uint64_t)> &duration) {
  const double all_places =
      double(machine.xcds) * machine.compute_units_per_xcd * machine.groups_per_compute_unit;
  Schedule result;
  if (groups > kMostFollowed) {
    // Evenly spread ones stand for all.
    double work = 0;
    for (uint64_t n = 0; n < kMostFollowed; ++n)
      work += machine.start_clocks +
              duration(uint64_t(static_cast<unsigned __int128>(n) * groups / kMostFollowed));
    result.clocks = work / double(kMostFollowed) * double(groups) / all_places;
    result.averaged = true;
    return result;
  }
  double occupied = 0;
  for (uint32_t n = 0; n < machine.xcds; ++n) {
    Xcd xcd(machine);
    uint64_t group = n;
    do {
      for (; group < groups && xcd.has_place(); group += machine.xcds)
        xcd.start(machine.start_clocks + duration(group));
    } while (xcd.next());
    result.clocks = std::max(result.clocks, xcd.now());
    occupied += xcd.occupied();
  }
  // The sum is rounded.
  if (result.clocks > 0) result.idle = std::max(1 - occupied / (result.clocks * all_places), 0.0);
  return result;
}

}  // namespace flydsl::emu::timing
