// What the recorder keeps of executed work-groups.
#include "emulator/timing/record.h"

#include <gmock/gmock.h>

#include "emulator/checks/check.h"
#include "test/emulator/timing/timing_launch.h"

namespace flydsl::emu::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using timing::GroupTrace;
using timing::MemoryKind;
using timing::MemoryUse;
using timing::WaveTrace;

class Record : public TimingLaunch {
 protected:
  // Texts of a wave's instructions.
  std::vector<std::string> texts(const WaveTrace &wave) const {
    std::vector<std::string> all;
    for (const uint32_t step : wave.steps)
      all.push_back(kernel_.program->text_of(step & ~timing::kNoLanes));
    return all;
  }
  std::vector<uint64_t> lines(const WaveTrace &wave, size_t memory) const {
    const MemoryUse &use = wave.memory[memory];
    const auto first = wave.lines.begin() + use.first_line;
    return {first, first + use.line_count};
  }
  uint64_t line_of(size_t word) const {
    return reinterpret_cast<uint64_t>(out_.data() + word) / timing::kLineBytes;
  }
};

const std::string kPointer =
    "s_load_dwordx2 s[8:9], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\n"
    "v_and_b32 v0, 63, v0\nv_lshlrev_b32 v1, 4, v0\n";

TEST_F(Record, TheExecutedPath) {
  const auto groups = record(
      "s_mov_b32 s10, 3\nl:\ns_sub_u32 s10, s10, 1\ns_cmp_lg_u32 s10, 0\n"
      "s_cbranch_scc1 l\ns_mov_b64 exec, 0\nv_mov_b32 v0, v1");
  ASSERT_EQ(groups.size(), 1u);
  ASSERT_EQ(groups[0].waves.size(), 1u);
  const WaveTrace &wave = groups[0].waves[0];
  std::vector<uint32_t> ops, lanes;
  for (const uint32_t step : wave.steps) {
    ops.push_back(step & ~timing::kNoLanes);
    lanes.push_back(!(step & timing::kNoLanes));
  }
  EXPECT_THAT(ops, ElementsAre(0, 1, 2, 3, 1, 2, 3, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(lanes, ElementsAre(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0));
  EXPECT_EQ(groups[0].wave_instructions, 13u);
  EXPECT_FALSE(groups[0].truncated);
}

TEST_F(Record, LinesOfGlobalAccesses) {
  const auto groups = record(kPointer +
                             "global_load_dwordx4 v[4:7], v1, s[8:9]\n"
                             "global_load_dword v8, v1, s[8:9] offset:64\n"
                             "v_mov_b32 v2, 0\nglobal_store_dword v2, v8, s[8:9]\n"
                             "s_mov_b64 exec, 0\nglobal_load_dword v8, v1, s[8:9]\n");
  const WaveTrace &wave = groups[0].waves[0];
  ASSERT_EQ(wave.memory.size(), 5u);
  EXPECT_EQ(wave.memory[0].kind, MemoryKind::kScalarLoad);
  EXPECT_EQ(wave.memory[0].line_count, 1);
  EXPECT_EQ(wave.memory[1].kind, MemoryKind::kGlobalLoad);
  EXPECT_EQ(wave.memory[1].lanes, 64);
  EXPECT_EQ(wave.memory[1].bytes_per_lane, 16);
  // 64 lanes of 16 bytes: 1024 bytes in a row.
  std::vector<uint64_t> wanted;
  for (uint64_t line = line_of(0); line <= line_of(255); ++line) wanted.push_back(line);
  EXPECT_EQ(lines(wave, 1), wanted);
  EXPECT_EQ(lines(wave, 2).size(), line_of(16 + 252) - line_of(16) + 1);
  EXPECT_EQ(wave.memory[3].kind, MemoryKind::kGlobalStore);
  EXPECT_THAT(lines(wave, 3), ElementsAre(line_of(0)));
  EXPECT_EQ(wave.memory[4].line_count, 0) << "no lanes";
  EXPECT_EQ(texts(wave)[wave.memory[3].step], "global_store_dword v2, v8, s[8:9]");
  EXPECT_EQ(wave.memory[3].op, wave.steps[wave.memory[3].step]);
}

TEST_F(Record, PassesOfLdsAccesses) {
  const auto groups = record(
      "v_lshlrev_b32 v1, 4, v0\nv_lshlrev_b32 v2, 8, v0\n"
      "ds_read_b128 v[4:7], v1\nds_read_b128 v[4:7], v2\n"
      "ds_write_b64 v1, v[4:5]\nds_read2_b32 v[8:9], v2 offset1:1\n"
      "ds_bpermute_b32 v8, v1, v2\nds_add_u32 v1, v2\n"
      "ds_read_b64_tr_b16 v[8:9], v1\ns_waitcnt lgkmcnt(0)\n");
  const auto &m = groups[0].waves[0].memory;
  ASSERT_EQ(m.size(), 7u);
  EXPECT_EQ(m[0].kind, MemoryKind::kLdsRead);
  EXPECT_EQ(m[0].phases, 4);
  EXPECT_EQ(m[1].phases, 64) << "256 bytes apart: all lanes in the same banks";
  EXPECT_EQ(m[1].ideal_phases, 4);
  EXPECT_EQ(m[2].kind, MemoryKind::kLdsWrite);
  EXPECT_EQ(m[2].phases, 8) << "16 bytes apart: half the banks";
  EXPECT_EQ(m[3].phases, 128) << "two addresses of 64 lanes in one bank";
  EXPECT_EQ(m[3].lanes, 128);
  EXPECT_EQ(m[4].kind, MemoryKind::kLdsOther);
  EXPECT_EQ(m[4].phases, 1);
  EXPECT_EQ(m[5].kind, MemoryKind::kLdsAtomic);
  EXPECT_EQ(m[6].phases, 4) << "8 of 16 bytes: half the banks";
}

TEST_F(Record, CopiesToLdsTouchBoth) {
  const auto groups = record(kPointer +
                             "s_mov_b32 m0, 0\ns_nop 0\n"
                             "global_load_lds_dwordx4 v1, s[8:9]\ns_waitcnt vmcnt(0)\n");
  const MemoryUse &use = groups[0].waves[0].memory.back();
  EXPECT_EQ(use.kind, MemoryKind::kCopyToLds);
  EXPECT_EQ(use.lanes, 64);
  EXPECT_GE(use.line_count, 8);
  EXPECT_EQ(use.phases, 8);
  EXPECT_EQ(use.phase_bytes, 128);
}

TEST_F(Record, MatrixFlops) {
  const auto groups = record("v_mfma_f32_32x32x16_bf16 v[0:15], v[64:67], v[68:71], v[0:15]\n", 2);
  EXPECT_EQ(groups[0].mfma_flops, 2u * 2 * 32 * 32 * 16);
}

TEST_F(Record, OnlyTheChosenWorkGroupsRun) {
  // Each work-group stores its number + 1.
  build(
      "s_load_dwordx2 s[8:9], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\nv_mov_b32 v2, s2\n"
      "v_lshlrev_b32 v1, 2, v2\nv_add_u32 v2, 1, v2\nglobal_store_dword v1, v2, s[8:9]\n");
  dispatch_.grid[0] = 8;
  timing::Recorder some({5, 2, 5});
  some.attach(options_, true);
  ASSERT_TRUE(run().ok);
  auto groups = some.take();
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].linear_id, 2u);
  EXPECT_EQ(groups[1].id[0], 5u);
  EXPECT_THAT(std::vector<uint32_t>(out_.begin(), out_.begin() + 8),
              ElementsAre(0, 0, 3, 0, 0, 6, 0, 0));
  // Or all of them, and only these are kept.
  options_ = {};
  timing::Recorder all({7});
  all.attach(options_, false);
  ASSERT_TRUE(run().ok);
  EXPECT_EQ(all.take().size(), 1u);
  EXPECT_THAT(std::vector<uint32_t>(out_.begin(), out_.begin() + 8),
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  // One outside the grid is refused.
  timing::Recorder outside({8});
  outside.attach(options_, true);
  const DispatchResult refused = run();
  EXPECT_FALSE(refused.ok);
  EXPECT_THAT(refused.fault, HasSubstr("work-group 8 of 8"));
}

TEST_F(Record, ABudgetEndsWavesQuietly) {
  build(
      "s_mov_b32 s10, 1000\nl:\ns_barrier\ns_sub_u32 s10, s10, 1\ns_cmp_lg_u32 s10, 0\n"
      "s_cbranch_scc1 l\n");
  dispatch_.block[0] = 256;
  timing::Recorder recorder({0}, 400);
  recorder.attach(options_, true);
  const DispatchResult result = run();
  EXPECT_TRUE(result.ok) << result.fault;
  const auto groups = recorder.take();
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_TRUE(groups[0].truncated);
  EXPECT_EQ(groups[0].wave_instructions, 400u);
  for (const WaveTrace &wave : groups[0].waves) EXPECT_EQ(wave.steps.size(), 100u);
  EXPECT_GT(simulate(groups).clocks, 100) << "a prefix can be simulated";
}

TEST_F(Record, NoWavePassesABarrierThatAStoppedOneDidNotReach) {
  // Wave 0 is stopped in its loop; what comes after the barrier would fault.
  build(
      "v_readfirstlane_b32 s12, v0\ns_cmp_lt_u32 s12, 64\ns_cbranch_scc0 w\ns_mov_b32 s10, 1000\n"
      "l:\ns_sub_u32 s10, s10, 1\ns_cmp_lg_u32 s10, 0\ns_cbranch_scc1 l\n"
      "w:\ns_barrier\nv_mov_b32 v0, -1\nds_write_b32 v0, v0\n");
  dispatch_.block[0] = 128;
  timing::Recorder recorder({0}, 400);
  recorder.attach(options_, true);
  const DispatchResult result = run();
  EXPECT_TRUE(result.ok) << result.fault;
  const auto groups = recorder.take();
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_TRUE(groups[0].truncated);
  EXPECT_EQ(groups[0].waves[0].steps.size(), 200u);
  EXPECT_EQ(groups[0].waves[1].steps.size(), 4u);
}

TEST_F(Record, AFaultLeavesNothing) {
  build("v_mov_b32 v0, -1\nds_write_b32 v0, v0\n");
  timing::Recorder recorder({0});
  recorder.attach(options_, true);
  EXPECT_FALSE(run().ok);
  EXPECT_TRUE(recorder.take().empty());
}

}  // namespace
}  // namespace flydsl::emu::test
