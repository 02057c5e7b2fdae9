// Check "barrier", and the limits that end a hung kernel without it.
#include "test/emulator/checks/check_launch.h"

namespace flydsl::emu::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Barrier : public CheckLaunch {
 protected:
  std::string fault_of(const std::string &assembly, uint32_t waves = 2, uint32_t groups = 1,
                       unsigned threads = 1) {
    build(assembly);
    declare_registers(128, 128);
    kernel_.lds_bytes = 256;
    dispatch_.block[0] = 64 * waves;
    dispatch_.grid[0] = groups;
    options_.checks = "barrier";
    return run(threads).fault;
  }
};

// s8: first work-item of the wave; SCC: is it wave 0?
const std::string kSetUp =
    "s_load_dwordx2 s[6:7], s[0:1], 0x0\n v_readfirstlane_b32 s8, v0\n s_cmp_eq_u32 s8, 0\n"
    "s_waitcnt lgkmcnt(0)\n v_mov_b32 v1, 0\n v_mov_b32 v2, 1\n";

TEST_F(Barrier, WaveThatNeverComes) {
  // Wave 1 spins on a word of LDS that wave 0 would set behind the barrier.
  auto text = [](const char *at_barrier, const char *behind) {
    return kSetUp + "s_cbranch_scc0 other\n" + at_barrier + "\n s_barrier\n" + behind +
           "\n s_endpgm\n"
           "other: ds_read_b32 v3, v1\n s_waitcnt lgkmcnt(0)\n v_readfirstlane_b32 s9, v3\n"
           "s_cmp_eq_u32 s9, 1\n s_cbranch_scc0 other\n s_barrier";
  };
  const std::string fault = fault_of(text("", "ds_write_b32 v1, v2"));
  EXPECT_THAT(fault, AllOf(HasSubstr("work-group (0,0,0) wave 1 at 0x"),
                           HasSubstr("barrier: deadlock: no wave of the work-group can go on; "
                                     "wave 0 waits at 0x"),
                           HasSubstr("`s_barrier`; wave 1 repeats itself at 0x")));
  EXPECT_EQ(fault_of(text("ds_write_b32 v1, v2", "")), "");
}

TEST_F(Barrier, DifferentBarriersAndEndedWavesAreLegal) {
  EXPECT_EQ(fault_of(kSetUp + "s_cbranch_scc0 other\n s_barrier\n s_endpgm\n"
                              "other: s_nop 0\n s_barrier"),
            "");
  EXPECT_EQ(fault_of(kSetUp + "s_cbranch_scc0 other\n s_barrier\n s_barrier\n s_endpgm\nother:"),
            "");
  EXPECT_EQ(fault_of(kSetUp + "s_mov_b64 exec, 1\n s_barrier"), "");
}

TEST_F(Barrier, SleepingWaveThatWaitsForNothing) {
  EXPECT_THAT(fault_of("loop: s_sleep 1\n s_branch loop", 1),
              HasSubstr("wave 0 repeats itself at"));
}

TEST_F(Barrier, LongLoopsThatEndAreLegal) {
  EXPECT_EQ(fault_of("s_mov_b32 s9, 0\nloop: s_add_u32 s9, s9, 1\n s_cmp_lt_u32 s9, 0x40000\n"
                     "s_cbranch_scc1 loop"),
            "");
}

// Work-group 0 waits for the word that work-group 1 sets.
std::string wait_for_other(const std::string &other) {
  return kSetUp +
         "s_cmp_eq_u32 s2, 0\n s_cbranch_scc0 other\n"
         "loop: global_load_dword v3, v1, s[6:7] sc1\n s_waitcnt vmcnt(0)\n"
         "v_readfirstlane_b32 s9, v3\n s_cmp_eq_u32 s9, 1\n s_cbranch_scc0 loop\n s_endpgm\n"
         "other: " +
         other;
}
TEST_F(Barrier, WorkGroupsThatWaitForEachOther) {
  const std::string slow =
      "s_mov_b32 s9, 0\nagain: s_add_u32 s9, s9, 1\n"
      "s_cmp_lt_u32 s9, 0x100000\n s_cbranch_scc1 again\n"
      "global_store_dword v1, v2, s[6:7] sc1";
  EXPECT_EQ(fault_of(wait_for_other(slow), 1, 2, 2), "");
  EXPECT_THAT(fault_of(wait_for_other("s_branch other"), 1, 2, 2), HasSubstr("deadlock"));
  // On one host thread the second work-group does not start before the first has ended.
  EXPECT_THAT(fault_of(wait_for_other(slow), 1, 2, 1), HasSubstr("deadlock"));
}

TEST_F(Barrier, TimeLimitNamesEveryWave) {
  setenv("FLYDSL_EMU_TIMEOUT_S", "0.2", 1);
  build(kSetUp + "s_cbranch_scc0 loop\n s_barrier\n s_endpgm\nloop: s_nop 0\n s_branch loop");
  dispatch_.block[0] = 128;
  EXPECT_THAT(run(1).fault,
              AllOf(HasSubstr("work-group (0,0,0) passed the limit of 0.2 seconds"),
                    HasSubstr("wave 0 waits at 0x20 `s_barrier`"), HasSubstr("; wave 1 at 0x2")));
  build(kSetUp + "s_barrier");
  EXPECT_EQ(run(1).fault, "");
  setenv("FLYDSL_EMU_TIMEOUT_S", "soon", 1);
  EXPECT_THAT(run(1).fault, HasSubstr("FLYDSL_EMU_TIMEOUT_S is \"soon\""));
  unsetenv("FLYDSL_EMU_TIMEOUT_S");
}

}  // namespace
}  // namespace flydsl::emu::test
