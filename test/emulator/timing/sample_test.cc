// Which work-groups are simulated, against grids whose work is known everywhere.
#include "emulator/timing/sample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "emulator/engine/options.h"

namespace flydsl::emu::test {
namespace {

using timing::SampleLimits;
using timing::SampleRule;

// Work of work-group (x, y, z).
using Work = std::function<double(uint32_t, uint32_t, uint32_t)>;

struct Grid {
  uint32_t size[3];
  uint64_t groups() const { return uint64_t(size[0]) * size[1] * size[2]; }
  double at(const Work &work, uint64_t linear) const {
    return work(uint32_t(linear % size[0]), uint32_t(linear / size[0] % size[1]),
                uint32_t(linear / (uint64_t(size[0]) * size[1])));
  }
};

struct Chosen {
  SampleRule rule;
  uint64_t measured = 0;  // work-groups whose work was asked for
  double sum_error = 0;   // of the work of all work-groups, relative
  double worst = 0;       // of one, relative to the most work of one
};

Chosen choose(const Grid &grid, const Work &work, const SampleLimits &limits = {}) {
  Chosen result;
  result.rule = timing::choose_samples(
      grid.size,
      [&](const std::vector<uint64_t> &groups) {
        std::vector<double> values;
        for (const uint64_t group : groups) values.push_back(grid.at(work, group));
        result.measured += groups.size();
        return values;
      },
      limits);
  std::vector<double> values;
  for (const uint64_t sample : result.rule.samples) values.push_back(grid.at(work, sample));
  double truth = 0, sum = 0, most = 0;
  for (uint64_t group = 0; group < grid.groups(); ++group) {
    const double exact = grid.at(work, group), value = result.rule.value(values, group);
    truth += exact;
    sum += value;
    most = std::max(most, exact);
    result.worst = std::max(result.worst, std::abs(exact - value));
  }
  result.sum_error = std::abs(sum - truth) / truth;
  result.worst /= most;

  // The weights are those sums, sample by sample.
  const std::vector<double> weights = result.rule.weights();
  EXPECT_EQ(weights.size(), result.rule.samples.size());
  EXPECT_NEAR(std::accumulate(weights.begin(), weights.end(), 0.0), double(grid.groups()),
              1e-9 * double(grid.groups()));
  if (!result.rule.scattered) {
    double weighted = 0;
    for (size_t n = 0; n < weights.size(); ++n) weighted += weights[n] * values[n];
    EXPECT_NEAR(weighted, sum, 1e-9 * sum);
  }
  return result;
}

TEST(Sample, EqualWorkNeedsOneWorkGroup) {
  const Chosen c = choose({{64, 16, 16}}, [](uint32_t, uint32_t, uint32_t) { return 1000.0; });
  EXPECT_EQ(c.rule.samples, std::vector<uint64_t>{0});
  EXPECT_EQ(c.worst, 0);
  EXPECT_LE(c.measured, 1u + 2 * 3 + 5);
}

TEST(Sample, LinearWorkIsExact) {
  const Chosen c =
      choose({{64, 16, 4}}, [](uint32_t x, uint32_t, uint32_t) { return 500 + 40.0 * x; });
  EXPECT_LE(c.rule.samples.size(), 3u);
  EXPECT_LT(c.worst, 1e-12);
  EXPECT_NE(c.rule.text().find("along x linear between 0, 32, 63; equal along y, z"),
            std::string::npos)
      << c.rule.text();
}

// As with a causal mask whose last tiles see no further keys.
TEST(Sample, AKinkIsFound) {
  const Chosen c = choose(
      {{100, 8, 1}}, [](uint32_t x, uint32_t, uint32_t) { return 300 + 50.0 * std::min(x, 37u); });
  EXPECT_FALSE(c.rule.scattered);
  EXPECT_LE(c.rule.samples.size(), 12u);
  EXPECT_LT(c.sum_error, 0.005);
  EXPECT_LT(c.worst, 0.03);
}

TEST(Sample, AxesThatDependOnEachOther) {
  const Chosen c = choose(
      {{40, 3, 20}}, [](uint32_t x, uint32_t, uint32_t z) { return 100 + (1.0 + x) * (5.0 + z); });
  EXPECT_FALSE(c.rule.scattered);
  EXPECT_LT(c.worst, 1e-12);
}

// Sequences of different lengths: nothing is smooth along y.
TEST(Sample, WorkWithoutARuleIsScattered) {
  const auto work = [](uint32_t x, uint32_t y, uint32_t) {
    Random random(x * 131 + y);
    return 1000 + double(random.below(9000));
  };
  const Chosen c = choose({{50, 60, 1}}, work);
  EXPECT_TRUE(c.rule.scattered);
  EXPECT_GT(c.rule.held_out_error, 0.06);
  EXPECT_LE(c.rule.samples.size(), SampleLimits().scattered);
  // 40 samples of a uniform distribution: a standard deviation of its mean is 7 %.
  EXPECT_LT(c.sum_error, 0.2);
}

// Tiles of causal attention with the heads flattened into the same axis.
TEST(Sample, ThePeriodOfAFlattenedAxisIsFound) {
  for (const uint32_t tiles : {7u, 16u, 32u, 64u, 100u}) {
    const Chosen c = choose({{tiles * 48, 1, 1}}, [&](uint32_t x, uint32_t, uint32_t) {
      return 200 + 100.0 * (x % tiles);
    });
    EXPECT_FALSE(c.rule.scattered) << tiles;
    EXPECT_LT(c.worst, 1e-12) << tiles;
    EXPECT_LT(c.measured, 60u) << tiles;
    EXPECT_NE(c.rule.text().find("along x modulo " + std::to_string(tiles) + " linear between 0"),
              std::string::npos)
        << c.rule.text();
  }
}

// Neighbours do equal work: 8 XCDs, on each of which 4 heads take turns, and then the next 4.
TEST(Sample, ThePeriodOfGroupsOfHeadsIsFound) {
  for (const uint32_t tiles : {16u, 64u}) {
    const Chosen c = choose({{tiles * 256, 1, 1}}, [&](uint32_t x, uint32_t, uint32_t) {
      return 200 + 100.0 * (tiles - x / 32 % tiles);
    });
    EXPECT_FALSE(c.rule.scattered) << tiles;
    EXPECT_LT(c.worst, 1e-12) << tiles;
    EXPECT_LT(c.measured, 60u) << tiles;
    EXPECT_NE(c.rule.text().find("along x / 32 modulo " + std::to_string(tiles) + " linear"),
              std::string::npos)
        << c.rule.text();
  }
}

// The same with one group of heads: few steps, each too high for a line between them.
TEST(Sample, StepsOfEqualNeighboursAreExact) {
  for (const uint32_t tiles : {4u, 8u, 13u, 16u}) {
    for (const uint32_t run : {3u, 8u, 24u, 32u}) {
      const Grid grid = {{tiles * run, 5, 1}};
      const Chosen c = choose(
          grid, [&](uint32_t x, uint32_t, uint32_t) { return 20 + 100.0 * (tiles - x / run); });
      EXPECT_FALSE(c.rule.scattered) << tiles << " " << run;
      EXPECT_LT(c.worst, 1e-12) << tiles << " " << run << " " << c.rule.text();
      EXPECT_EQ(c.rule.groups(), grid.groups());
    }
  }
}

// The same with sequences of different lengths behind the heads.
TEST(Sample, APeriodBesideAnotherAxis) {
  const Chosen c = choose({{16 * 12, 20, 1}}, [](uint32_t x, uint32_t y, uint32_t) {
    return 100 + 50.0 * (x % 16) * (1 + y);
  });
  EXPECT_FALSE(c.rule.scattered);
  EXPECT_LT(c.worst, 1e-12);
}

TEST(Sample, SmallGridsAreSimulatedInFull) {
  const auto work = [](uint32_t x, uint32_t y, uint32_t) { return 10.0 + (x * 7 + y * 3) % 5; };
  const Chosen c = choose({{4, 4, 1}}, work);
  EXPECT_EQ(c.rule.samples.size(), 16u);
  EXPECT_EQ(c.worst, 0);
  EXPECT_EQ(c.rule.text(), "16 of 16 work-groups simulated");
}

TEST(Sample, TheBudgetEndsTheSearch) {
  SampleLimits limits;
  limits.work = 5000;
  const Chosen c = choose(
      {{1000, 1, 1}}, [](uint32_t x, uint32_t, uint32_t) { return 1000 + 500 * std::sin(x); },
      limits);
  EXPECT_LE(c.measured, 8u);
}

TEST(Sample, WhatCannotBeMeasuredEndsTheSearch) {
  uint32_t asked = 0;
  const uint32_t grid[3] = {100, 100, 1};
  const SampleRule rule = timing::choose_samples(grid, [&](const std::vector<uint64_t> &groups) {
    ++asked;
    return std::vector<double>(groups.size(), -1);
  });
  EXPECT_LT(asked, 64u);
  EXPECT_TRUE(rule.samples.empty());
}

TEST(Sample, EqualInputGivesTheSameRule) {
  const auto work = [](uint32_t x, uint32_t, uint32_t z) { return 100.0 + x * x + z; };
  const Grid grid = {{77, 5, 9}};
  EXPECT_EQ(choose(grid, work).rule.samples, choose(grid, work).rule.samples);
}

}  // namespace
}  // namespace flydsl::emu::test
