// Launches under the model: extrapolation against full simulation, what must hold for any launch,
// and the file of recorded launches.
#include "emulator/timing/launch_model.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "emulator/timing/costs.h"
#include "emulator/timing/report.h"
#include "emulator/timing/trace_store.h"
#include "test/emulator/timing/modelled_launch.h"

namespace flydsl::emu::test {
namespace {

using testing::HasSubstr;

// s10 times: 1 KB of the array, 8 KB apart from work-group to work-group, and a matrix instruction.
std::string loop(const std::string &count) {
  return R"(
s_load_dwordx2 s[8:9], s[0:1], 0x0
v_and_b32 v1, 63, v0
v_lshlrev_b32 v1, 4, v1
s_and_b32 s11, s2, 7
s_lshl_b32 s11, s11, 13
v_add_u32 v1, s11, v1
)" + count +
         R"(
s_waitcnt lgkmcnt(0)
.Lloop:
global_load_dwordx4 v[4:7], v1, s[8:9]
s_waitcnt vmcnt(0)
v_mfma_f32_32x32x16_bf16 a[0:15], v[4:7], v[4:7], a[0:15]
s_sub_u32 s10, s10, 1
s_cmp_lg_u32 s10, 0
s_cbranch_scc1 .Lloop
)";
}
const std::string kEqual = loop("s_movk_i32 s10, 40");
const std::string kLinear = loop("s_lshl_b32 s10, s2, 1\ns_add_u32 s10, s10, 8");
// Longer up to x = 20, then equal.
const std::string kKink =
    loop("s_min_u32 s10, s2, 20\ns_lshl_b32 s10, s10, 2\ns_add_u32 s10, s10, 8");
// Not smooth at all.
const std::string kRough =
    loop("s_mul_i32 s10, s2, 37\ns_and_b32 s10, s10, 127\ns_add_u32 s10, s10, 8");
// Heads flattened into x.
const std::string kFlat =
    loop("s_and_b32 s10, s2, 15\ns_lshl_b32 s10, s10, 3\ns_add_u32 s10, s10, 8");

struct Extrapolation {
  const char *name;
  const std::string *assembly;
  uint32_t x, y, most_samples;
  double tolerance;
};

// The fixed overhead is left out: it would hide an error of the rest.
TEST_F(ModelledLaunch, ExtrapolationAgainstFullSimulation) {
  constants_.launch_overhead_seconds = 0;
  const Extrapolation cases[] = {
      {"equal", &kEqual, 60, 20, 1, 1e-9},   {"linear", &kLinear, 60, 20, 3, 0.02},
      {"kink", &kKink, 60, 20, 12, 0.02},    {"flat", &kFlat, 800, 1, 3, 0.02},
      {"rough", &kRough, 128, 20, 40, 0.15},
  };
  for (const Extrapolation &c : cases) {
    build_for(*c.assembly, c.x, c.y);
    const LaunchModel sampled = model(), full = model(true);
    EXPECT_LE(sampled.groups_sampled, c.most_samples) << c.name;
    EXPECT_EQ(full.groups_sampled, full.groups) << c.name;
    EXPECT_NEAR(sampled.seconds, full.seconds, c.tolerance * full.seconds) << c.name;
    EXPECT_NEAR(sampled.matrix_flops, full.matrix_flops, c.tolerance * full.matrix_flops) << c.name;
    EXPECT_NEAR(sampled.matrix, full.matrix, c.tolerance) << c.name;
  }
}

TEST_F(ModelledLaunch, FlopsAndShareOfPeakByHand) {
  constants_.launch_overhead_seconds = 0;
  build_for(kEqual, 512, 1, 4);
  const LaunchModel m = model();
  EXPECT_EQ(m.matrix_flops, 512.0 * 4 * 40 * 2 * 32 * 32 * 16);
  EXPECT_NEAR(m.peak_flops, 4096 * 256 * 2.4e9, 1);
  EXPECT_NEAR(m.share_of_peak, m.matrix_flops / m.seconds / m.peak_flops, 1e-9);
  // Two work-groups of 4 waves with 256 registers fill a compute unit, and the grid is that large.
  EXPECT_EQ(m.occupancy.groups_per_compute_unit, 2u);
  EXPECT_EQ(m.occupancy.waves_per_simd, 2u);
  EXPECT_EQ(m.idle, 0);
  // The peaks are constants like others, and part of no time.
  constants_.matrix_peak_16_bit *= 2;
  constants_.hbm_peak_bytes_per_second *= 2;
  const LaunchModel faster = model();
  EXPECT_EQ(faster.seconds, m.seconds);
  EXPECT_DOUBLE_EQ(faster.peak_flops, 2 * m.peak_flops);
  EXPECT_DOUBLE_EQ(faster.share_of_peak, m.share_of_peak / 2);
  EXPECT_EQ(faster.peak_hbm_bytes_per_second, 2 * m.peak_hbm_bytes_per_second);
}

TEST_F(ModelledLaunch, MoreWorkNeverTakesLess) {
  double last = 0;
  for (const int count : {10, 11, 20, 40, 80}) {
    build_for(loop("s_movk_i32 s10, " + std::to_string(count)), 600);
    const double seconds = model().seconds;
    EXPECT_GE(seconds, last) << count;
    last = seconds;
  }
  last = 0;
  for (const uint32_t groups : {1u, 8u, 256u, 257u, 512u, 1024u, 5000u}) {
    build_for(kEqual, groups);
    const double seconds = model().seconds;
    EXPECT_GE(seconds, last * (1 - 1e-9)) << groups;
    last = seconds;
  }
}

TEST_F(ModelledLaunch, FasterMemoryNeverTakesLonger) {
  build_for(kEqual, 2000);
  const RecordedLaunch launch = record();
  double last = 1e9;
  for (const double factor : {0.25, 0.5, 1.0, 2.0, 4.0}) {
    timing::Constants changed = constants_;
    changed.hbm_bytes_per_second *= factor;
    changed.mall_bytes_per_second *= factor;
    changed.l2_bytes_per_clock *= factor;
    const double seconds = timing::model_launch(launch, changed).seconds;
    // Waves that get their data earlier may meet others at a unit: 0.33 % more were seen.
    EXPECT_LE(seconds, last * 1.01) << factor;
    last = seconds;
  }
}

TEST_F(ModelledLaunch, EqualInputGivesEqualText) {
  build_for(kKink, 60, 20);
  EXPECT_TRUE(json(record(), constants_) == json(record(), constants_));
}

// Where the host puts memory decides nothing.
TEST_F(ModelledLaunch, OtherAddressesGiveEqualText) {
  build_for(kKink, 60, 20);
  const std::string first = json(record(), constants_);
  std::vector<std::vector<uint32_t>> in_between;
  for (size_t n = 1; n < 5; ++n) {
    decltype(out_)().swap(out_);
    in_between.emplace_back(10007 * n);
    build_for(kKink, 60, 20);
    EXPECT_TRUE(json(record(), constants_) == first) << "the texts are too long to show";
  }
}

// Nothing runs twice, and with `all` nothing is left out.
TEST_F(ModelledLaunch, EveryWorkGroupRunsOnce) {
  build_for(kKink + R"(
s_mov_b64 exec, 1
v_mov_b32 v2, 0
v_mov_b32 v3, 1
global_atomic_add v2, v3, s[8:9] offset:2048
)",
            60, 20);
  const RecordedLaunch launch = record(false, true);
  ASSERT_TRUE(recorded_) << error_;
  EXPECT_EQ(array_[512], 1200u);
  array_[512] = 0;
  (void)record();
  EXPECT_LT(array_[512], 200u);
  EXPECT_GE(array_[512], launch.samples.size());
}

TEST_F(ModelledLaunch, AWorkGroupThatWaitsForAnotherIsNamed) {
  limits_.group_instructions = 5000;
  build_for(kEqual + ".Lspin:\ns_sleep 1\ns_branch .Lspin\n", 600);
  (void)record();
  EXPECT_FALSE(recorded_);
  EXPECT_THAT(error_, HasSubstr("work-group (0,0,0) did not end within 5000 wave-instructions"));
  EXPECT_THAT(error_, HasSubstr("FLYDSL_EMU_INSTRUCTION_LIMIT"));
  EXPECT_THAT(error_, testing::ContainsRegex("wave 0 at 0x[0-9a-f]+ `s_(sleep 1|branch)"));
}

// Tiles from a counter in memory, 1500 for all work-groups together; `lanes` of a work-group ask for one.
std::string tiles_from_a_counter(const std::string &lanes, const std::string &end) {
  return R"(
s_load_dwordx2 s[8:9], s[0:1], 0x0
v_mov_b32 v1, 0
v_mov_b32 v2, 1
s_waitcnt lgkmcnt(0)
.Ltile:
s_mov_b64 exec, )" +
         lanes + R"(
global_atomic_add v3, v1, v2, s[8:9] sc0
s_waitcnt vmcnt(0)
v_readfirstlane_b32 s10, v3
s_mov_b64 exec, -1
)" + end;
}
const std::string kUntilNoneIsLeft = "s_cmp_lt_u32 s10, 1500\ns_cbranch_scc1 .Ltile\n";

TEST_F(ModelledLaunch, WorkGroupsTakeTheirTurnsAtACounter) {
  build_for(tiles_from_a_counter("1", kUntilNoneIsLeft), 600);
  array_[0] = 100;
  const RecordedLaunch launch = record();
  ASSERT_TRUE(recorded_) << error_;
  EXPECT_TRUE(launch.ordering.tickets);
  EXPECT_FALSE(launch.ordering.ordered());
  // Numbers 100 + L, 700 + L and 1300 + L: the first 200 have a third tile, and one more number says that none is left.
  for (const timing::GroupTrace &sample : launch.samples) {
    const auto &memory = sample.waves[0].memory;
    EXPECT_EQ(memory.size(), 1 + (sample.linear_id < 200 ? 4u : 3u)) << sample.linear_id;
  }
  // A ticket that decides nothing.
  build_for(tiles_from_a_counter("1", ""), 600);
  (void)record();
  EXPECT_TRUE(recorded_) << error_;
}

TEST_F(ModelledLaunch, WorkGroupsThatShareTheirWorkOutOtherwiseAreNamed) {
  build_for(tiles_from_a_counter("3", kUntilNoneIsLeft), 600);
  (void)record();
  EXPECT_FALSE(recorded_);
  EXPECT_THAT(error_, HasSubstr("work-groups share their work out while they run"));
  EXPECT_THAT(error_, HasSubstr("work-group ("));
}

TEST_F(ModelledLaunch, AFaultEndsTheRecording) {
  build_for(kEqual + "v_mov_b32 v1, -1\nglobal_load_dword v2, v1, s[8:9]\n", 600);
  (void)record();
  EXPECT_FALSE(recorded_);
  EXPECT_THAT(error_, HasSubstr("reads 4 bytes at"));
}

TEST_F(ModelledLaunch, OtherArchitecturesAreRefused) {
  build_for(kEqual, 4);
  RecordedLaunch launch = record();
  const std::vector<uint8_t> code = assemble("v_add_u32 v1, v1, v1\ns_endpgm", "gfx942");
  launch.program = decode_program("gfx942", code.data(), code.size());
  try {
    (void)timing::model_launch(launch, constants_);
    FAIL() << "modelled";
  } catch (const timing::UnknownCost &error) {
    EXPECT_THAT(error.what(), HasSubstr("gfx942"));
  }
}

TEST_F(ModelledLaunch, AWorkGroupThatDoesNotFit) {
  build_for(kEqual, 4);
  RecordedLaunch launch = record();
  launch.facts.group.lds_bytes = 1 << 20;
  EXPECT_THROW((void)timing::model_launch(launch, constants_), std::invalid_argument);
}

class StoredLaunch : public ModelledLaunch {
 protected:
  void SetUp() override {
    ModelledLaunch::SetUp();
    path_ = testing::TempDir() + "stored_launch." + std::to_string(getpid());
  }
  void TearDown() override { std::remove(path_.c_str()); }
  std::string bytes() const {
    std::ifstream file(path_, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  void write(const std::string &bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }
  std::string path_;
};

TEST_F(StoredLaunch, IsModelledAlike) {
  build_for(kKink, 60, 20);
  const RecordedLaunch launch = record();
  ASSERT_TRUE(timing::save_launch(launch, path_, &error_)) << error_;
  RecordedLaunch loaded;
  ASSERT_TRUE(timing::load_launch(path_, &loaded, &error_)) << error_;
  EXPECT_TRUE(json(loaded, constants_) == json(launch, constants_));
  constants_.lds_latency = 500;
  EXPECT_TRUE(json(loaded, constants_) == json(launch, constants_));

  // With runs of equal neighbours.
  build_for(kEqual, 60);
  RecordedLaunch runs = record();
  ASSERT_EQ(runs.rule.size[0], 60u);
  runs.rule.run = 4;
  runs.rule.size[0] = 15;
  ASSERT_TRUE(timing::save_launch(runs, path_, &error_)) << error_;
  ASSERT_TRUE(timing::load_launch(path_, &loaded, &error_)) << error_;
  EXPECT_EQ(loaded.rule.run, 4u);
  EXPECT_EQ(loaded.groups(), 60u);
  EXPECT_TRUE(json(loaded, constants_) == json(runs, constants_));
}

// LLVM ends the process for an unknown processor; lists that do not belong together were read past their ends.
TEST_F(StoredLaunch, ChangedBytesAreRefusedOrModelled) {
  build_for(kEqual, 20);
  ASSERT_TRUE(timing::save_launch(record(), path_, &error_)) << error_;
  const std::string whole = bytes();
  size_t changes = 0, refused = 0;
  for (size_t at = 0; at < whole.size(); at += at < 100 ? 1 : 41) {
    std::string changed = whole;
    changed[at] = char(changed[at] ^ "\x01\x20\x7f"[at % 3]);
    write(changed);
    ++changes;
    RecordedLaunch loaded;
    if (!timing::load_launch(path_, &loaded, &error_)) {
      ++refused;
      continue;
    }
    try {
      (void)json(loaded, constants_);
    } catch (const std::exception &) {  // says what does not fit together
    }
  }
  EXPECT_GT(refused, changes / 8);
  RecordedLaunch launch = record();
  launch.samples[0].waves[0].memory.pop_back();
  EXPECT_THROW((void)json(launch, constants_), std::runtime_error);
}

TEST_F(StoredLaunch, DamagedFilesAreRefused) {
  RecordedLaunch loaded;
  EXPECT_FALSE(timing::load_launch(path_ + ".none", &loaded, &error_));
  EXPECT_THAT(error_, HasSubstr("No such file"));
  write("something else");
  EXPECT_FALSE(timing::load_launch(path_, &loaded, &error_));
  EXPECT_THAT(error_, HasSubstr("no recorded launch of this version"));

  build_for(kEqual, 600);
  ASSERT_TRUE(timing::save_launch(record(), path_, &error_)) << error_;
  const std::string whole = bytes();
  for (size_t part_of_40 = 1; part_of_40 <= 40; ++part_of_40) {
    const size_t cut = std::max<size_t>(whole.size() * part_of_40 / 40 - 1, 30);
    write(whole.substr(0, cut));
    RecordedLaunch part;
    EXPECT_FALSE(timing::load_launch(path_, &part, &error_)) << cut;
    EXPECT_THAT(error_, HasSubstr("damaged"));
  }
  write(whole + "x");
  EXPECT_FALSE(timing::load_launch(path_, &loaded, &error_));
}

}  // namespace
}  // namespace flydsl::emu::test
