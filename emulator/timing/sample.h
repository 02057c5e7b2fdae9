// Which work-groups of a launch are simulated, and how the figures of the others follow.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace flydsl::emu::timing {

// The rule: figures are linear along each axis of the grid between the coordinates `at`; `samples`
// has all their combinations, x fastest. Where no such rule fits (`scattered`), each work-group
// stands like one of the samples, picked by a hash of its index.
struct SampleRule {
  uint32_t grid[3] = {1, 1, 1};
  std::vector<uint32_t> at[3];
  bool scattered = false;
  std::vector<uint64_t> samples;  // linear indices, x fastest
  double held_out_error = 0;      // largest relative error of the rule on the work-groups below
  uint32_t held_out = 0;          // simulated only to check the rule

  // What one sample contributes to the work-group `linear`; at most 8 with a share.
  struct Share {
    uint32_t sample = 0;
    double share = 0;
  };
  uint32_t shares(uint64_t linear, Share out[8]) const;
  // Of work-group `linear`, from the samples' values.
  double value(const std::vector<double> &of_samples, uint64_t linear) const;
  // Work-groups that each sample stands for; their sum is the number of work-groups.
  std::vector<double> weights() const;
  std::string text() const;
};

struct SampleLimits {
  uint64_t all_groups = 16;  // so many work-groups are all simulated
  uint32_t samples = 48;     // at most, besides held-out ones
  double work = 2e7;         // wave-instructions after which no further sample is asked for
  double constant_tolerance = 0.004, linear_tolerance = 0.02, held_out_tolerance = 0.06;
  uint32_t held_out = 3;
  uint32_t scattered = 24;
};

// The work (executed wave-instructions) of work-groups; a negative number where it cannot be had.
using MeasureWork = std::function<std::vector<double>(const std::vector<uint64_t> &groups)>;

// Looks at the ends and the middle of each axis, then between them as long as the work is not
// linear there, and checks the rule on work-groups that it has not seen.
SampleRule choose_samples(const uint32_t grid[3], const MeasureWork &measure,
                          const SampleLimits &limits = {});

}  // namespace flydsl::emu::timing
