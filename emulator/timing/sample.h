// Which work-groups of a launch are simulated, and how the figures of the others follow.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace flydsl::emu::timing {

// Axes of a rule: y and z of the grid, and x as two, since kernels flatten their problem into it: its
// remainder by a period and its quotient. Without a period the first is all of x.
constexpr int kAxes = 4;

// The rule: figures are linear along each axis between the coordinates `at`; `samples` has all their
// combinations, the first axis fastest. Where no such rule fits (`scattered`), each work-group stands
// like one of the samples, picked by a hash of its index.
struct SampleRule {
  // Neighbours along x that do equal work, as heads dealt to the XCDs in turn: x counts so many work-groups at a time.
  uint32_t run = 1;
  uint32_t size[kAxes] = {1, 1, 1, 1};  // period, x / period, y, z
  std::vector<uint32_t> at[kAxes];
  bool scattered = false;
  std::vector<uint64_t> samples;  // linear indices, x fastest
  double held_out_error = 0;      // largest relative error of the rule on the work-groups below
  uint32_t held_out = 0;          // simulated only to check the rule

  uint64_t groups() const { return uint64_t(run) * size[0] * size[1] * size[2] * size[3]; }
  uint64_t x_groups() const { return uint64_t(run) * size[0] * size[1]; }
  // What one sample contributes to the work-group `linear`; at most 16 with a share.
  struct Share {
    uint32_t sample = 0;
    double share = 0;
  };
  uint32_t shares(uint64_t linear, Share out[1 << kAxes]) const;
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
  uint32_t held_out = 5;
  uint32_t scattered = 40;
};

// The work (executed wave-instructions) of work-groups; a negative number where it cannot be had.
using MeasureWork = std::function<std::vector<double>(const std::vector<uint64_t> &groups)>;

// Looks at the ends and the middle of each axis, then between them as long as the work is not
// linear there, and checks the rule on work-groups that it has not seen; looks for neighbours that do equal work where x is
// not smooth, and for a period of x when the rule does not hold.
SampleRule choose_samples(const uint32_t grid[3], const MeasureWork &measure,
                          const SampleLimits &limits = {});

}  // namespace flydsl::emu::timing
