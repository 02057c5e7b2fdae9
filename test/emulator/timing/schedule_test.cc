// Work-groups on XCDs and compute units: occupancy, and when the last one ends.
#include "emulator/timing/schedule.h"

#include <gtest/gtest.h>

#include "emulator/timing/occupancy.h"

namespace flydsl::emu::test {
namespace {

using timing::ComputeUnitResources;
using timing::GroupResources;
using timing::Machine;
using timing::Occupancy;
using timing::Schedule;

ComputeUnitResources unit() {
  ComputeUnitResources unit;
  unit.lds_bytes = 160 * 1024;
  unit.lds_granule_bytes = 1280;
  return unit;
}

struct Step {
  GroupResources group;
  uint32_t groups, waves_per_simd;
  const char *limit;
};

// 512 registers a lane and SIMD in granules of 8, 8 waves a SIMD, 160 KB of LDS, 16 work-groups of
// more than one wave.
TEST(Occupancy, StepsByRegistersLdsAndWaves) {
  const Step steps[] = {
      {{256, 64, 0}, 8, 8, "waves"},      {{256, 65, 0}, 7, 7, "registers"},
      {{256, 128, 0}, 4, 4, "registers"}, {{256, 129, 0}, 3, 3, "registers"},
      {{512, 256, 0}, 1, 2, "registers"}, {{256, 512, 0}, 1, 1, "registers"},
      {{512, 257, 0}, 0, 0, "registers"}, {{64, 32, 0}, 32, 8, "waves"},
      {{128, 32, 0}, 16, 8, "waves"},     {{1024, 128, 0}, 1, 4, "registers"},
      {{256, 64, 40960}, 4, 4, "lds"},    {{256, 64, 40961}, 3, 3, "lds"},
      {{256, 64, 163840}, 1, 1, "lds"},   {{256, 64, 163841}, 0, 0, "lds"},
      {{1024, 16, 0}, 2, 8, "waves"},     {{320, 64, 0}, 6, 8, "waves"},
  };
  for (const Step &step : steps) {
    const Occupancy o = timing::occupancy_of(unit(), step.group);
    EXPECT_EQ(o.groups_per_compute_unit, step.groups)
        << step.group.work_items << " " << step.group.vgprs << " " << step.group.lds_bytes;
    EXPECT_EQ(o.waves_per_simd, step.waves_per_simd);
    EXPECT_STREQ(o.limit, step.limit) << step.group.work_items << " " << step.group.vgprs;
  }
}

TEST(Occupancy, WorkGroupsOfTwoWavesAreLimitedToSixteen) {
  ComputeUnitResources more_waves = unit();
  more_waves.waves_per_simd = 16;
  const Occupancy o = timing::occupancy_of(more_waves, {128, 16, 0});
  EXPECT_EQ(o.groups_per_compute_unit, 16u);
  EXPECT_STREQ(o.limit, "work-groups");
}

TEST(Occupancy, ASmallGridIsTheLimit) {
  const GroupResources group = {256, 64, 0};
  EXPECT_STREQ(timing::occupancy_of_launch(unit(), group, 256 * 8, 256).limit, "waves");
  const Occupancy o = timing::occupancy_of_launch(unit(), group, 256 * 2 + 1, 256);
  EXPECT_EQ(o.groups_per_compute_unit, 3u);
  EXPECT_STREQ(o.limit, "grid");
}

double equal(uint64_t) {
  return 1000;
}

TEST(Schedule, GenerationsOfEqualWorkGroups) {
  const Machine machine;  // 8 x 32, one each
  EXPECT_EQ(timing::schedule_groups(machine, 1, equal).clocks, 1000);
  EXPECT_EQ(timing::schedule_groups(machine, 256, equal).clocks, 1000);
  EXPECT_EQ(timing::schedule_groups(machine, 256, equal).idle, 0);
  const Schedule one_more = timing::schedule_groups(machine, 257, equal);
  EXPECT_EQ(one_more.clocks, 2000);
  EXPECT_NEAR(one_more.idle, 255.0 / 512, 1e-12);
  EXPECT_EQ(timing::schedule_groups(machine, 256 * 7, equal).clocks, 7000);
}

TEST(Schedule, StartUpCountsForEach) {
  Machine machine;
  machine.start_clocks = 50;
  EXPECT_EQ(timing::schedule_groups(machine, 512, equal).clocks, 2 * 1050);
  machine.groups_per_compute_unit = 2;
  EXPECT_EQ(timing::schedule_groups(machine, 512, equal).clocks, 1050);
}

// Work-groups are dealt to the XCDs whatever they hold: all long ones may end up on one.
TEST(Schedule, XcdsInTurn) {
  const Machine machine;
  const auto long_on_first = [](uint64_t group) { return group % 8 == 0 ? 4000.0 : 1000.0; };
  EXPECT_EQ(timing::schedule_groups(machine, 512, long_on_first).clocks, 8000);
}

// On an XCD the first free place is next.
TEST(Schedule, TheFirstFreePlaceIsNext) {
  Machine machine;
  machine.xcds = 1;
  machine.compute_units_per_xcd = 2;
  const double durations[] = {10, 3, 3, 3, 2};
  const auto duration = [&](uint64_t group) { return durations[group]; };
  const Schedule s = timing::schedule_groups(machine, 5, duration);
  EXPECT_EQ(s.clocks, 11);  // 3 + 3 + 3 + 2 beside the long one
  EXPECT_NEAR(s.idle, 1.0 / 22, 1e-12);
}

// Two places whose work-groups slow each other down to 1 / 1.5: alone they go on faster.
TEST(Schedule, WorkGroupsShareTheirComputeUnit) {
  Machine machine;
  machine.groups_per_compute_unit = 2;
  machine.speed = {1.5, 1};
  EXPECT_NEAR(timing::schedule_groups(machine, 512, equal).clocks, 1000, 1e-9);
  EXPECT_NEAR(timing::schedule_groups(machine, 256, equal).clocks, 1000 / 1.5, 1e-9)
      << "one each, not two on every second";
  // A second generation that leaves one place of each free.
  EXPECT_NEAR(timing::schedule_groups(machine, 768, equal).clocks, 1000 + 1000 / 1.5, 1e-9);
  EXPECT_NEAR(timing::schedule_groups(machine, 1024, equal).clocks, 2000, 1e-9);
  // One long work-group: 1000 clocks beside another, then the rest alone.
  machine.xcds = 1;
  machine.compute_units_per_xcd = 1;
  const auto duration = [](uint64_t group) { return group ? 1000.0 : 4000.0; };
  const Schedule s = timing::schedule_groups(machine, 2, duration);
  EXPECT_NEAR(s.clocks, 1000 + 3000 / 1.5, 1e-9);
  EXPECT_NEAR(s.idle, 1 - (1000 * 2 + 2000) / (3000.0 * 2), 1e-9);
}

TEST(Schedule, LongLaunchesAreAveraged) {
  const Machine machine;
  const auto duration = [](uint64_t group) { return 100 + double(group % 3); };
  const Schedule s = timing::schedule_groups(machine, 3'000'000, duration);
  EXPECT_TRUE(s.averaged);
  EXPECT_NEAR(s.clocks, 101.0 * 3'000'000 / 256, 0.001 * 101 * 3e6 / 256);
}

}  // namespace
}  // namespace flydsl::emu::test
