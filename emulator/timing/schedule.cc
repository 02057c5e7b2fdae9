#include "emulator/timing/schedule.h"

#include <algorithm>
#include <queue>
#include <vector>

namespace flydsl::emu::timing {
namespace {

// Above it a launch is so many times the machine that its tail does not matter.
constexpr uint64_t kMostFollowed = uint64_t(1) << 21;

using Places = std::priority_queue<double, std::vector<double>, std::greater<double>>;

}  // namespace

Schedule schedule_groups(const Machine &machine, uint64_t groups,
                         const std::function<double(uint64_t)> &duration) {
  const uint64_t places_per_xcd =
      uint64_t(machine.compute_units_per_xcd) * machine.groups_per_compute_unit;
  const double all_places = double(places_per_xcd * machine.xcds);
  Schedule result;
  double work = 0;
  if (groups > kMostFollowed) {
    // Evenly spread ones stand for all.
    for (uint64_t n = 0; n < kMostFollowed; ++n)
      work += machine.start_clocks +
              duration(uint64_t(static_cast<unsigned __int128>(n) * groups / kMostFollowed));
    result.clocks = work / double(kMostFollowed) * double(groups) / all_places;
    result.averaged = true;
    return result;
  }
  for (uint32_t xcd = 0; xcd < machine.xcds; ++xcd) {
    Places free_at(std::greater<double>(), std::vector<double>(places_per_xcd, 0.0));
    for (uint64_t group = xcd; group < groups; group += machine.xcds) {
      const double clocks = machine.start_clocks + duration(group);
      const double end = free_at.top() + clocks;
      free_at.pop();
      free_at.push(end);
      work += clocks;
      result.clocks = std::max(result.clocks, end);
    }
  }
  // The sum is rounded.
  if (result.clocks > 0) result.idle = std::max(1 - work / (result.clocks * all_places), 0.0);
  return result;
}

}  // namespace flydsl::emu::timing
