// Whole launches: initial registers, barriers, work-groups over threads, faults and refusals.
#include "emulator/engine/dispatch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "test/emulator/support/launch.h"

namespace flydsl::emu::test {
namespace {

using testing::HasSubstr;

TEST_F(Launch, IdsArePackedAndEveryWorkGroupRunsOnce) {
  // out[(group linear) * 32 + item] += packed id + 1, with atomics so that running twice would
  // show.
  build(
      "s_load_dwordx2 s[6:7], s[0:1], 0x0\n s_mul_i32 s5, s4, 3\n s_add_u32 s5, s5, s3\n s_mul_i32 "
      "s5, s5, 5\n"
      "s_add_u32 s5, s5, s2\n v_bfe_u32 v1, v0, 10, 10\n v_bfe_u32 v2, v0, 20, 10\n v_and_b32 v3, "
      "0x3ff, v0\n"
      "v_lshl_add_u32 v4, v2, 1, v1\n v_lshl_add_u32 v4, v4, 3, v3\n v_mov_b32 v5, s5\n "
      "v_lshl_add_u32 v4, v5, 5, v4\n"
      "v_lshlrev_b32 v4, 2, v4\n v_add_u32 v6, 1, v0\n s_waitcnt lgkmcnt(0)\n global_atomic_add "
      "v4, v6, s[6:7]");
  dispatch_.grid[0] = 5;
  dispatch_.grid[1] = 3;
  dispatch_.grid[2] = 2;
  dispatch_.block[0] = 8;
  dispatch_.block[1] = 2;
  dispatch_.block[2] = 2;  // 32 work-items: half a wave
  const DispatchResult r = run();
  ASSERT_TRUE(r.ok) << r.fault;
  EXPECT_EQ(r.wave_instructions, 30u * 17u);
  for (uint32_t g = 0; g < 30; ++g)
    for (uint32_t item = 0; item < 32; ++item)
      EXPECT_EQ(out_[g * 32 + item], ((item % 8) | (item / 8 % 2) << 10 | (item / 16) << 20) + 1);
  EXPECT_EQ(out_[30 * 32], 0u);
}

const char *kExchange =
    // Each wave writes its lanes to LDS, waits, and reads what the other wave wrote.
    "s_load_dwordx2 s[6:7], s[0:1], 0x0\n v_lshlrev_b32 v1, 2, v0\n v_xor_b32 v2, 0x100, v1\n "
    "ds_write_b32 v1, v0\n"
    "s_waitcnt lgkmcnt(0)\n s_barrier\n ds_read_b32 v3, v2\n s_waitcnt lgkmcnt(0)\n "
    "global_store_dword v1, v3, s[6:7]";

TEST_F(Launch, BarrierOrdersWaves) {
  build(kExchange);
  kernel_.lds_bytes = 256;
  dispatch_.dynamic_lds_bytes = 256;
  dispatch_.block[0] = 128;
  const DispatchResult r = run();
  ASSERT_TRUE(r.ok) << r.fault;
  for (uint32_t i = 0; i < 128; ++i) EXPECT_EQ(out_[i], i ^ 64);
}

TEST_F(Launch, LdsIsFreshForEachWorkGroupAndBounded) {
  build(kExchange);
  kernel_.lds_bytes = 256;
  dispatch_.block[0] = 128;
  const DispatchResult r = run();
  ASSERT_FALSE(r.ok);
  EXPECT_THAT(r.fault, HasSubstr("work-group (0,0,0) wave 1 lane 0 at 0x"));
  EXPECT_THAT(r.fault, HasSubstr("4 bytes of LDS at offset 0x100; the work-group has 256 bytes"));
}

TEST_F(Launch, WaveThatEndedDoesNotHoldTheBarrier) {
  build(
      "s_load_dwordx2 s[6:7], s[0:1], 0x0\n v_readfirstlane_b32 s8, v0\n s_cmp_eq_u32 s8, 0\n "
      "s_cbranch_scc1 end\n"
      "s_barrier\n v_mov_b32 v1, 0\n v_mov_b32 v2, 9\n global_store_dword v1, v2, s[6:7]\nend:");
  dispatch_.block[0] = 128;
  const DispatchResult r = run();
  ASSERT_TRUE(r.ok) << r.fault;
  EXPECT_EQ(out_[0], 9u);
}

TEST_F(Launch, SpinningWaveLetsTheOtherRun) {
  // Wave 0 spins on a word of LDS that wave 1 sets.
  build(
      "s_load_dwordx2 s[6:7], s[0:1], 0x0\n v_mov_b32 v1, 0\n v_mov_b32 v2, 5\n "
      "v_readfirstlane_b32 s8, v0\n"
      "s_cmp_eq_u32 s8, 0\n s_cbranch_scc0 set\nspin: ds_read_b32 v3, v1\n s_waitcnt lgkmcnt(0)\n"
      "v_readfirstlane_b32 s9, v3\n s_cmp_lg_u32 s9, 5\n s_cbranch_scc1 spin\n global_store_dword "
      "v1, v3, s[6:7]\n"
      "s_branch end\nset: ds_write_b32 v1, v2\nend:");
  kernel_.lds_bytes = 64;
  dispatch_.block[0] = 128;
  const DispatchResult r = run();
  ASSERT_TRUE(r.ok) << r.fault;
  EXPECT_EQ(out_[0], 5u);
}

TEST_F(Launch, EndlessLoopIsStoppedByTheLimit) {
  build("loop: s_branch loop");
  ASSERT_EQ(setenv("FLYDSL_EMU_INSTRUCTION_LIMIT", "100000", 1), 0);
  const DispatchResult r = run();
  unsetenv("FLYDSL_EMU_INSTRUCTION_LIMIT");
  ASSERT_FALSE(r.ok);
  EXPECT_THAT(r.fault,
              HasSubstr("passed the limit of 100000 wave-instructions; wave 0 at 0x0 `s_branch"));
}

TEST_F(Launch, FaultStopsTheDispatchAndNamesThePlace) {
  // Work-group 7 writes one word past the end.
  build(
      "s_load_dwordx2 s[6:7], s[0:1], 0x0\n v_mov_b32 v1, 0\n s_cmp_lg_u32 s2, 7\n s_cbranch_scc1 "
      "end\n"
      "v_mov_b32 v1, 64\n global_store_dword v1, v0, s[6:7]\nend:",
      16);
  dispatch_.grid[0] = 1000;
  const DispatchResult r = run();
  ASSERT_FALSE(r.ok);
  EXPECT_THAT(
      r.fault,
      HasSubstr("k: work-group (7,0,0) wave 0 lane 0 at 0x18 `global_store_dword v1, v0, s[6:7]`"));
  EXPECT_THAT(r.fault, HasSubstr("writes 4 bytes at 0x"));
  EXPECT_THAT(r.fault, HasSubstr("hipMalloc"));
}

TEST_F(Launch, WritingReadOnlyMemoryIsAFault) {
  build("v_mov_b32 v1, 0\n global_store_dword v1, v0, s[0:1]");
  const DispatchResult r = run();
  ASSERT_FALSE(r.ok);
  EXPECT_THAT(r.fault, HasSubstr("inside the read-only kernel arguments region"));
}

TEST_F(Launch, RefusesWhatTheHardwareCannotLaunch) {
  build("s_nop 0");
  dispatch_.block[0] = 1025;
  EXPECT_THAT(run().fault, HasSubstr("work-group size 1025 x 1 x 1"));
  dispatch_.block[0] = 0;
  EXPECT_THAT(run().fault, HasSubstr("work-group size 0 x 1 x 1"));
  dispatch_.block[0] = 64;
  kernel_.max_workgroup_size = 32;
  EXPECT_THAT(run().fault, HasSubstr("compiled for at most 32"));
  kernel_.max_workgroup_size = 256;
  dispatch_.dynamic_lds_bytes = 163841;
  EXPECT_THAT(run().fault, HasSubstr("163841 bytes of LDS"));
  dispatch_.dynamic_lds_bytes = 0;
  kernel_.entry_address += 2;
  EXPECT_THAT(run().fault, HasSubstr("entry address"));
  kernel_.entry_address -= 2;
  kernel_.wave_size = 32;
  EXPECT_THAT(run().fault, HasSubstr("wave size 32"));
  kernel_.wave_size = 64;
  EXPECT_TRUE(run().ok);
  dispatch_.grid[1] = 0;  // nothing to do
  EXPECT_TRUE(run().ok);
}

TEST_F(Launch, ResultsDoNotDependOnTheNumberOfThreads) {
  build(kExchange);
  kernel_.lds_bytes = 512;
  dispatch_.block[0] = 128;
  dispatch_.grid[0] = 50;
  const DispatchResult one = run(1);
  const DispatchResult four = run(4);
  ASSERT_TRUE(one.ok && four.ok);
  EXPECT_EQ(one.wave_instructions, four.wave_instructions);
  EXPECT_EQ(one.wave_instructions, 50u * 2u * 10u);
}

}  // namespace
}  // namespace flydsl::emu::test
