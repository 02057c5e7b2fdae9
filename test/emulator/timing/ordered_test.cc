// Launches whose work-groups wait for one another: sample against full simulation, what is found out about the order,
// and what is refused.
#include "emulator/timing/ordered_schedule.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "emulator/timing/record.h"
#include "emulator/timing/trace_store.h"
#include "test/emulator/timing/modelled_launch.h"

namespace flydsl::emu::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint32_t kBlocks = 8, kSteps = 24;

// Chains of 8 work-groups, blocks, that add to the same tiles in their order: each waits at a tile's counter for the block
// before it, and counts on.
struct Form {
  std::string take =
      "0";  // byte offset of the counter that the number comes from: an instruction to s16
  std::string turn = "";  // from the number in s10
  std::string steps = "s_movk_i32 s14, 24\n";
  std::string early;  // in a step, well before its wait
  std::string wait = R"(
.Lpoll:
global_load_dword v3, v20, s[8:9] sc1
s_waitcnt vmcnt(0)
v_readfirstlane_b32 s15, v3
s_cmp_ge_u32 s15, s11
s_cbranch_scc1 .Lgo
s_sleep 1
s_branch .Lpoll
.Lgo:
)";
  std::string at_most = "s_cmp_eq_u32 s11, 0\n";  // blocks for which this holds do not wait
};

std::string kernel(const Form &form) {
  std::string work;
  for (int n = 0; n < 12; ++n)
    work += "v_mfma_f32_32x32x16_bf16 a[0:15], v[4:7], v[4:7], a[0:15]\n";
  return R"(
s_load_dwordx2 s[8:9], s[0:1], 0x0
v_and_b32 v1, 63, v0
v_lshlrev_b32 v1, 4, v1
s_waitcnt lgkmcnt(0)
s_movk_i32 s16, )" +
         form.take + R"(
v_mov_b32 v2, s16
v_mov_b32 v3, 1
s_mov_b64 exec, 1
global_atomic_add v3, v2, v3, s[8:9] sc0
s_waitcnt vmcnt(0)
v_readfirstlane_b32 s10, v3
s_mov_b64 exec, -1
)" + form.turn +
         R"(
s_and_b32 s11, s10, 7
s_lshr_b32 s12, s10, 3
s_mulk_i32 s12, 96
s_addk_i32 s12, 1024
v_mov_b32 v20, s12
v_add_u32 v21, 0x4000, v1
v_mov_b32 v22, s11
v_add_u32 v22, 1, v22
)" + form.steps +
         ".Lstep:\n" + form.early + work + form.at_most + "s_cbranch_scc1 .Lfirst\n" + form.wait +
         R"(
global_load_dwordx4 v[8:11], v21, s[8:9] sc1
s_waitcnt vmcnt(0)
.Lfirst:
global_store_dwordx4 v21, v[8:11], s[8:9] sc1
s_waitcnt vmcnt(0)
global_store_dword v20, v22, s[8:9] sc1
v_add_u32 v20, 4, v20
v_add_u32 v21, 1024, v21
s_sub_u32 s14, s14, 1
s_cmp_lg_u32 s14, 0
s_cbranch_scc1 .Lstep
)";
}

class Ordered : public ModelledLaunch {
 protected:
  std::string text_;  // in place of kernel()

  // A work-group takes all LDS of a compute unit.
  void build_ordered(const Form &form, uint32_t groups) {
    build_for(text_.empty() ? kernel(form) : text_, groups);
    facts_.group.lds_bytes = facts_.unit.lds_bytes;
  }
  DispatchResult run_array() {
    std::vector<Region> regions = {region(&kernarg_, 8, false, "kernel arguments"),
                                   region(array_, (1 << 15) * 4, true, "hipMalloc")};
    std::sort(regions.begin(), regions.end(),
              [](const Region &x, const Region &y) { return x.begin < y.begin; });
    return run_dispatch(kernel_, dispatch_, RegionSnapshot(regions), options_);
  }
  // What the counters of the chains say in the end.
  std::vector<uint32_t> counters(uint32_t chains) const {
    return {array_ + 256, array_ + 256 + chains * kSteps};
  }
  // Sample and full simulation of `groups`; the time that is lost by waiting is compared in clocks.
  void compare(const Form &form, uint32_t groups, double tolerance) {
    constants_.launch_overhead_seconds = 0;
    build_ordered(form, groups);
    const RecordedLaunch in_full = record(false, true);
    ASSERT_TRUE(recorded_) << error_;
    ASSERT_EQ(in_full.samples.size(), groups);
    const LaunchModel full = timing::model_launch(in_full, constants_);
    EXPECT_THAT(full.ordering, HasSubstr("each simulated as it waits"));
    build_ordered(form, groups);
    const RecordedLaunch in_sample = record();
    ASSERT_TRUE(recorded_) << error_;
    EXPECT_LT(in_sample.samples.size(), 60u);
    const LaunchModel sampled = timing::model_launch(in_sample, constants_);
    EXPECT_THAT(sampled.ordering, HasSubstr("assumed"));
    EXPECT_GT(sampled.waiting_clocks, 0);
    EXPECT_GE(sampled.seconds, sampled.seconds_without_waiting);
    EXPECT_NEAR(sampled.seconds, full.seconds, tolerance * full.seconds)
        << groups << " work-groups";
  }
};

TEST_F(Ordered, FullRunsThemInTheirOrder) {
  build_ordered({}, 40);
  const RecordedLaunch launch = record(false, true);
  ASSERT_TRUE(recorded_) << error_;
  EXPECT_THAT(counters(5), Each(kBlocks));
  EXPECT_TRUE(launch.ordering.one_counter);
  EXPECT_THAT(std::vector<uint32_t>(launch.ordering.distance.begin(),
                                    launch.ordering.distance.begin() + 10),
              ElementsAre(0, 1, 1, 1, 1, 1, 1, 1, 0, 1));
}

TEST_F(Ordered, SampleFindsOutWhoWaitsForWhom) {
  build_ordered({}, 800);
  const RecordedLaunch launch = record();
  ASSERT_TRUE(recorded_) << error_;
  EXPECT_TRUE(launch.ordering.tickets);
  EXPECT_TRUE(launch.ordering.one_counter);
  EXPECT_TRUE(launch.ordering.periodic);
  EXPECT_THAT(launch.ordering.distance, ElementsAre(0, 1, 1, 1, 1, 1, 1, 1));
  // One load at each step, whatever was tried.
  for (const timing::GroupTrace &sample : launch.samples) {
    const uint64_t waits = launch.ordering.distance_of(sample.linear_id) ? kSteps : 0;
    EXPECT_EQ(sample.waves[0].syncs.size(), 1 + kSteps + waits) << sample.linear_id;
  }
  const auto json = nlohmann::json::parse(this->json(launch, constants_));
  EXPECT_THAT(json["ordering"]["rule"].get<std::string>(),
              HasSubstr("repeats itself every 8 turns"));
  EXPECT_GT(json["ordering"]["waiting_clocks"], 0);
  EXPECT_GT(json["ordering"]["waiting_share"], 0);
  EXPECT_LE(json["ordering"]["seconds_without_waiting"], json["seconds"]);
}

// A sampled launch before this one that was to set them to 0 has set a few: all waits are over at once, and are waits.
TEST_F(Ordered, CountersThatNobodyHasCleared) {
  build_ordered({}, 800);
  const RecordedLaunch cleared = record();
  build_ordered({}, 800);
  std::fill(array_ + 256, array_ + 4096, 0xabababab);
  const RecordedLaunch launch = record();
  ASSERT_TRUE(recorded_) << error_;
  EXPECT_EQ(launch.ordering.distance, cleared.ordering.distance);
  EXPECT_TRUE(json(launch, constants_) == json(cleared, constants_));
}

TEST_F(Ordered, SampleAgainstFull) {
  compare({}, 64, 0.03);
  compare({}, 256, 0.03);
  compare({}, 1000, 0.03);
}

// Later blocks have fewer tiles; all begin at the same one.
TEST_F(Ordered, ShorterAndShorter) {
  Form form;
  form.steps = "s_mul_i32 s14, s11, 2\ns_sub_u32 s14, 24, s14\n";
  compare(form, 64, 0.03);
  compare(form, 1000, 0.03);
}

// Two runs over the tiles, as heads that share their keys: in each the later blocks have fewer.
TEST_F(Ordered, TwoRuns) {
  Form form;
  form.steps = R"(
s_lshr_b32 s18, s11, 0
s_sub_u32 s18, 12, s18
s_mov_b32 s17, 2
s_mov_b32 s14, s18
v_mov_b32 v23, v20
)";
  std::string text = kernel(form);
  const std::string end = "s_cbranch_scc1 .Lstep\n";
  text += R"(
v_add_u32 v20, 48, v23
s_mov_b32 s14, s18
s_sub_u32 s17, s17, 1
s_cmp_lg_u32 s17, 0
s_cbranch_scc1 .Lstep
)";
  text_ = text;
  compare(form, 64, 0.03);
  compare(form, 1000, 0.03);
}

// The value is asked for early in a step; only where it is not there yet the loop runs.
TEST_F(Ordered, AnEarlyLook) {
  Form form;
  form.early =
      "global_load_dword v24, v20, s[8:9] sc1\ns_nop 0\nglobal_load_dwordx4 v[8:11], v1, s[8:9] "
      "offset:16\n";
  form.wait = R"(
s_waitcnt vmcnt(0)
v_readfirstlane_b32 s15, v24
s_cmp_ge_u32 s15, s11
s_cbranch_scc1 .Lgo
.Lpoll:
s_sleep 1
global_load_dword v3, v20, s[8:9] sc1
s_waitcnt vmcnt(0)
v_readfirstlane_b32 s15, v3
s_cmp_lt_u32 s15, s11
s_cbranch_scc1 .Lpoll
.Lgo:
)";
  compare(form, 64, 0.06);
  compare(form, 1000, 0.06);
  // Alone: block 5 of chain 1 finds nothing, so that it polls at its first wait, and looks from then on.
  build_ordered(form, 800);
  timing::Turns turns(800, false);
  timing::Recorder first({0, 1, 2, 3}, 0, &turns);
  options_ = {};
  options_.one_at_a_time = true;
  first.attach(options_, true);
  turns.learn(true);
  ASSERT_TRUE(run_array().ok);
  turns.learn(false);
  EXPECT_TRUE(turns.tickets());
  timing::Recorder recorder({13}, 0, &turns);
  options_ = {};
  recorder.attach(options_, true);
  const DispatchResult result = run_array();
  ASSERT_TRUE(result.ok) << result.fault;
  EXPECT_EQ(turns.error(), "");
  EXPECT_EQ(turns.wait_ops().size(), 2u);
  const std::vector<timing::GroupTrace> traces = recorder.take();
  ASSERT_EQ(traces.size(), 1u);
  uint32_t loads = 0, signals = 0;
  for (const timing::SyncUse &sync : traces[0].waves[0].syncs) ++(sync.load ? loads : signals);
  EXPECT_EQ(loads, kSteps + 1);
  EXPECT_EQ(signals, kSteps + 1) << "and the ticket";
}

// Chains of two, which work alike, so that one sample stands for all: it has to be one that waits.
TEST_F(Ordered, HalfOfThemWait) {
  Form form;
  form.at_most = "s_cmp_lg_u32 s11, s11\n";
  std::string text = kernel(form);
  for (const auto &[what, by] : {std::pair{"s_and_b32 s11, s10, 7", "s_and_b32 s11, s10, 1"},
                                 std::pair{"s_lshr_b32 s12, s10, 3", "s_lshr_b32 s12, s10, 1"}})
    text.replace(text.find(what), std::strlen(what), by);
  text_ = text;
  compare(form, 64, 0.03);
}

// Work-groups of an XCD take their numbers from a counter of their own: number k of counter x is turn 8 k + x.
TEST_F(Ordered, ACounterAnXcd) {
  Form form;
  form.take = "0\ns_and_b32 s16, s2, 7\ns_lshl_b32 s16, s16, 2";
  // Chains of blocks 8 turns apart.
  form.turn = R"(
s_lshr_b32 s12, s10, 3
s_lshl_b32 s12, s12, 3
s_and_b32 s13, s2, 7
s_add_u32 s12, s12, s13
s_lshl_b32 s12, s12, 3
s_and_b32 s10, s10, 7
s_or_b32 s10, s10, s12
)";
  build_ordered(form, 800);
  const RecordedLaunch launch = record();
  ASSERT_TRUE(recorded_) << error_;
  EXPECT_TRUE(launch.ordering.tickets);
  EXPECT_FALSE(launch.ordering.one_counter);
  std::vector<uint32_t> expected(8, 0);
  expected.resize(64, 8);
  EXPECT_EQ(launch.ordering.distance, expected);
  compare(form, 64, 0.03);
  compare(form, 1024, 0.03);
}

TEST_F(Ordered, AStoredLaunchIsModelledAlike) {
  build_ordered({}, 800);
  const RecordedLaunch launch = record();
  ASSERT_TRUE(recorded_) << error_;
  const std::string path = testing::TempDir() + "ordered." + std::to_string(getpid());
  ASSERT_TRUE(timing::save_launch(launch, path, &error_)) << error_;
  RecordedLaunch loaded;
  ASSERT_TRUE(timing::load_launch(path, &loaded, &error_)) << error_;
  std::remove(path.c_str());
  EXPECT_TRUE(json(loaded, constants_) == json(launch, constants_));
}

TEST_F(Ordered, ChangedBytesOfAStoredLaunchAreRefusedOrModelled) {
  build_ordered({}, 40);
  const std::string path = testing::TempDir() + "ordered_changed." + std::to_string(getpid());
  ASSERT_TRUE(timing::save_launch(record(), path, &error_)) << error_;
  std::ifstream in(path, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  size_t refused = 0;
  for (size_t at = 100; at < whole.size(); at += 211) {
    std::string changed = whole;
    changed[at] = char(changed[at] ^ "\x01\x20\x7f"[at % 3]);
    std::ofstream(path, std::ios::binary).write(changed.data(), std::streamsize(changed.size()));
    RecordedLaunch loaded;
    if (!timing::load_launch(path, &loaded, &error_)) {
      ++refused;
      continue;
    }
    try {
      (void)timing::model_launch(loaded, constants_);
    } catch (const std::exception &) {  // says what does not fit together
    }
  }
  std::remove(path.c_str());
  EXPECT_GT(refused, 0u);
}

TEST_F(Ordered, AValueOutOfReachIsNamed) {
  Form form;
  form.wait = R"(
.Lpoll:
global_load_dword v3, v20, s[8:9] sc1
s_waitcnt vmcnt(0)
v_readfirstlane_b32 s15, v3
s_cmp_eq_u32 s15, 0x12345678
s_cbranch_scc0 .Lpoll
)";
  build_ordered(form, 800);
  (void)record();
  EXPECT_FALSE(recorded_);
  EXPECT_THAT(
      error_,
      HasSubstr("waits for another work-group to write a value that is none of 0 to 16383"));
  EXPECT_THAT(error_, HasSubstr("`global_load_dword v3, v20, s[8:9] sc1`"));
}

// Block 4 of a chain waits for what nobody writes.
TEST_F(Ordered, AWaitForNobodyIsNamed) {
  Form form;
  form.wait = "v_add_u32 v20, 0x800, v20\n" + Form().wait + "v_subrev_u32 v20, 0x800, v20\n";
  build_ordered(form, 40);
  const RecordedLaunch launch = record();
  ASSERT_TRUE(recorded_) << error_;
  EXPECT_THROW((void)timing::model_launch(launch, constants_), std::invalid_argument);
}

// How long a value that comes in time, or late, keeps a wave.
TEST(Noticed, ByHand) {
  EXPECT_EQ(timing::noticed(90, 100, 50, 30), 150) << "it was there";
  EXPECT_EQ(timing::noticed(200, 100, 50, 30), 200 + 50 + 40) << "half a round, then a load";
}

}  // namespace
}  // namespace flydsl::emu::test
