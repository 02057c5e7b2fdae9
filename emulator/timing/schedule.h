// When the work-groups of a launch end on all compute units.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace flydsl::emu::timing {

struct Machine {
  uint32_t xcds = 8, compute_units_per_xcd = 32;
  uint32_t groups_per_compute_unit = 1;
  double start_clocks = 0;  // of a place for a work-group, before each
  // How much faster a work-group goes on when 1, 2, ... of them are on its compute unit, against a
  // full one; what is missing is 1.
  std::vector<double> speed = {};
};

struct Schedule {
  double clocks = 0;      // until the last work-group ends
  double idle = 0;        // share of all places over that time that hold no work-group
  bool averaged = false;  // too many work-groups to follow each
};

// Work-groups go to the XCDs in turn by their linear index, and on an XCD to the compute unit that
// has a free place first; of several to the one with the fewest work-groups. `duration`: of a
// work-group on a full compute unit.
Schedule schedule_groups(const Machine &machine, uint64_t groups,
                         const std::function<double(uint64_t)> &duration);

}  // namespace flydsl::emu::timing
