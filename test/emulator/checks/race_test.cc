// Check "race": each fault and its twin with what was missing.
#include "test/emulator/checks/check_launch.h"

namespace flydsl::emu::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Race : public CheckLaunch {
 protected:
  std::string fault_of(const std::string &assembly, uint32_t waves = 2, uint32_t groups = 1) {
    build(assembly);
    kernel_.lds_bytes = 4096;
    dispatch_.block[0] = 64 * waves;
    dispatch_.grid[0] = groups;
    options_.checks = "race";
    return run(1).fault;
  }
};

// Both instructions are named; which of the two is at fault depends on the order of the waves.
testing::Matcher<std::string> between(const char *one, const char *other) {
  return AllOf(HasSubstr("race: "), HasSubstr("`" + std::string(one) + "`"),
               HasSubstr("`" + std::string(other) + "`"));
}

// v1: 4 * work-item; v2: the same in the other wave of two; s[6:7]: the output.
const std::string kSetUp =
    "s_load_dwordx2 s[6:7], s[0:1], 0x0\n v_lshlrev_b32 v1, 2, v0\n v_xor_b32 v2, 0x100, v1\n"
    "v_readfirstlane_b32 s8, v0\n s_cmp_eq_u32 s8, 0\n s_waitcnt lgkmcnt(0)\n";

TEST_F(Race, LdsReadOfWhatAnotherWaveWrites) {
  const std::string write = kSetUp + "ds_write_b32 v1, v0\n s_waitcnt lgkmcnt(0)\n";
  const std::string read = "ds_read_b32 v3, v2\n s_waitcnt lgkmcnt(0)\n";
  EXPECT_THAT(fault_of(write + read),
              AllOf(between("ds_read_b32 v3, v2", "ds_write_b32 v1, v0"),
                    HasSubstr("k: work-group (0,0,0) wave 1 lane 0 at 0x20 "),
                    HasSubstr("writes 4 bytes at LDS offset 0x100, which wave 0 at 0x2c "),
                    HasSubstr(" accesses with no barrier in between")));
  EXPECT_EQ(fault_of(write + "s_barrier\n" + read), "");
  // Each wave its own bytes.
  EXPECT_EQ(fault_of(write + "ds_read_b32 v3, v1\n"), "");
}

TEST_F(Race, LdsWriteOverWhatAnotherWaveReads) {
  const std::string read = kSetUp + "ds_read_b32 v3, v2\n s_waitcnt lgkmcnt(0)\n";
  EXPECT_THAT(fault_of(read + "ds_write_b32 v1, v0"),
              between("ds_read_b32 v3, v2", "ds_write_b32 v1, v0"));
  EXPECT_EQ(fault_of(read + "s_barrier\n ds_write_b32 v1, v0"), "");
}

TEST_F(Race, WritesOfTwoWavesUnlessTheyAreOfOneValue) {
  EXPECT_THAT(fault_of("v_mov_b32 v1, 0\n ds_write_b32 v1, v0"),
              HasSubstr("race: writes 4 bytes at LDS offset 0x0, which wave 0 at 0x4"));
  EXPECT_EQ(fault_of("v_mov_b32 v1, 0\n ds_write_b32 v1, v0", 1), "");
  EXPECT_EQ(fault_of("v_mov_b32 v1, 0\n ds_write_b32 v1, v1"), "");
  // A reader of either is at fault all the same.
  EXPECT_THAT(fault_of("v_mov_b32 v1, 0\n ds_write_b32 v1, v1\n ds_read_b32 v2, v1"),
              between("ds_read_b32 v2, v1", "ds_write_b32 v1, v1"));
  const std::string store = kSetUp + "v_mov_b32 v4, 0\n global_store_dwordx4 v4, v[4:7], s[6:7]";
  EXPECT_THAT(
      fault_of(kSetUp + "v_mov_b32 v5, s2\n v_mov_b32 v6, 1\n v_mov_b32 v7, 2\n" + store, 1, 2),
      HasSubstr("race: writes 16 bytes"));
  EXPECT_EQ(
      fault_of(kSetUp + "v_mov_b32 v5, 3\n v_mov_b32 v6, 1\n v_mov_b32 v7, 2\n" + store, 1, 2), "");
}

TEST_F(Race, EveryReaderCountsNotOnlyTheLast) {
  // All four waves read; then the last writes.
  const std::string text = kSetUp + "v_mov_b32 v4, 0\n ds_read_b32 v3, v4\n s_waitcnt lgkmcnt(0)\n";
  const std::string write = "s_cmp_eq_u32 s8, 192\n s_cbranch_scc0 end\n ds_write_b32 v4, v0\nend:";
  EXPECT_THAT(fault_of(text + write, 4),
              HasSubstr("which others besides wave 3 at 0x24 `ds_read_b32 v3, v4` access"));
  EXPECT_EQ(fault_of(text + "s_barrier\n" + write, 4), "");
}

TEST_F(Race, LdsBytesOfOneWordAreApart) {
  // Wave 0 writes even bytes, wave 1 odd ones.
  const std::string text =
      kSetUp +
      "v_and_b32 v3, 63, v0\n v_lshlrev_b32 v3, 1, v3\n v_lshrrev_b32 v4, 6, v0\n"
      "v_add_u32 v3, v3, v4\n ds_write_b8 v3, v0\n";
  EXPECT_EQ(fault_of(text), "");
  EXPECT_THAT(fault_of(text + "ds_read_u16 v5, v3"),
              between("ds_read_u16 v5, v3", "ds_write_b8 v3, v0"));
  EXPECT_THAT(fault_of(text + "s_waitcnt lgkmcnt(0)\n s_barrier\n v_lshlrev_b32 v3, 1, v0\n"
                              "ds_write_b32 v3, v0"),
              HasSubstr("race: writes 4 bytes"));
}

TEST_F(Race, LdsAtomicsRaceWithOthersOnly) {
  const std::string text = kSetUp + "v_mov_b32 v4, 0\n ds_add_u32 v4, v0\n s_waitcnt lgkmcnt(0)\n";
  EXPECT_EQ(fault_of(text), "");
  EXPECT_THAT(fault_of(text + "ds_read_b32 v5, v4"),
              between("ds_read_b32 v5, v4", "ds_add_u32 v4, v0"));
  EXPECT_EQ(fault_of(text + "s_barrier\n ds_read_b32 v5, v4"), "");
}

TEST_F(Race, BarrierWithoutWaitingForLds) {
  // The write may still be on its way when the other wave has passed the barrier.
  const std::string write = kSetUp + "ds_write_b32 v1, v0\n",
                    rest = "s_barrier\n ds_read_b32 v3, v2\n s_waitcnt lgkmcnt(0)\n";
  EXPECT_THAT(fault_of(write + rest), HasSubstr("race: reads 4 bytes"));
  EXPECT_EQ(fault_of(write + "s_waitcnt lgkmcnt(0)\n" + rest), "");
  // One of two is waited for.
  const std::string two = write + "ds_write_b32 v1, v0 offset:2048\n s_waitcnt lgkmcnt(1)\n";
  EXPECT_EQ(fault_of(two + rest), "");
  EXPECT_THAT(fault_of(two + "s_barrier\n ds_read_b32 v3, v2 offset:2048"),
              HasSubstr("race: reads 4 bytes at LDS offset 0x900"));
}

// Wave w copies 64 dwords to LDS offset 256 w.
const std::string kCopy = kSetUp +
                          "s_lshl_b32 m0, s8, 2\n s_nop 0\n"
                          "global_load_lds_dword v1, s[6:7]\n";

TEST_F(Race, CopyToLdsReadWithoutItsWaitOrBarrier) {
  const std::string read = "ds_read_b32 v3, v2\n s_waitcnt vmcnt(0) lgkmcnt(0)\n";
  EXPECT_THAT(fault_of(kCopy + "s_barrier\n" + read),
              AllOf(HasSubstr("race: reads 4 bytes"),
                    HasSubstr("copies to with no s_waitcnt and barrier in between")));
  EXPECT_THAT(fault_of(kCopy + "s_waitcnt vmcnt(0)\n" + read), HasSubstr("race: reads 4 bytes"));
  // The wait must come before the barrier.
  EXPECT_THAT(fault_of(kCopy + "s_barrier\n s_waitcnt vmcnt(0)\n" + read),
              HasSubstr("race: reads 4 bytes"));
  EXPECT_EQ(fault_of(kCopy + "s_waitcnt vmcnt(0)\n s_barrier\n" + read), "");
}

TEST_F(Race, CopyToLdsOverWhatAnotherWaveReads) {
  const std::string copy =
      "s_xor_b32 m0, s8, 64\n s_lshl_b32 m0, m0, 2\n s_nop 0\n global_load_lds_dword v1, s[6:7]\n";
  const std::string read = kSetUp + "ds_read_b32 v3, v1\n s_waitcnt lgkmcnt(0)\n";
  EXPECT_THAT(fault_of(read + copy),
              between("ds_read_b32 v3, v1", "global_load_lds_dword v1, s[6:7]"));
  EXPECT_EQ(fault_of(read + "s_barrier\n" + copy), "");
}

TEST_F(Race, CopyInFlightAcrossBarriers) {
  // The older of two copies is waited for.
  const std::string two = kCopy +
                          "s_add_u32 m0, m0, 0x400\n s_nop 0\n global_load_lds_dword v1, s[6:7]\n"
                          "s_waitcnt vmcnt(1)\n s_barrier\n";
  EXPECT_EQ(fault_of(two + "ds_read_b32 v3, v2\n s_waitcnt vmcnt(0) lgkmcnt(0)"), "");
  EXPECT_THAT(fault_of(two + "ds_read_b32 v3, v2 offset:0x400"), HasSubstr("copies to with no"));
  EXPECT_EQ(fault_of(two + "s_waitcnt vmcnt(0)\n s_barrier\n ds_read_b32 v3, v2 offset:0x400"), "");
}

TEST_F(Race, GlobalBetweenWaves) {
  const std::string write = kSetUp + "global_store_dword v1, v0, s[6:7]\n s_waitcnt vmcnt(0)\n";
  const std::string read = "global_load_dword v3, v2, s[6:7]\n s_waitcnt vmcnt(0)\n";
  EXPECT_THAT(fault_of(write + read), AllOf(between("global_load_dword v3, v2, s[6:7]",
                                                    "global_store_dword v1, v0, s[6:7]"),
                                            HasSubstr("accesses with no barrier in between")));
  EXPECT_EQ(fault_of(write + "s_barrier\n" + read), "");
}

TEST_F(Race, GlobalBetweenWorkGroups) {
  const std::string all = "v_mov_b32 v4, 0\n v_mov_b32 v5, s2\n";
  EXPECT_THAT(fault_of(kSetUp + all + "global_store_dword v4, v5, s[6:7]", 1, 3),
              AllOf(HasSubstr("work-group (1,0,0)"), HasSubstr("race: writes 4 bytes at 0x"),
                    HasSubstr("which wave 0 of work-group (0,0,0) at 0x"),
                    HasSubstr("with no atomic in between")));
  // A barrier orders the waves of one work-group only.
  EXPECT_THAT(fault_of(kSetUp + all + "s_barrier\n global_store_dword v4, v5, s[6:7]", 1, 2),
              HasSubstr("race: writes 4 bytes"));
  EXPECT_EQ(fault_of(kSetUp + all + "global_atomic_add v4, v0, s[6:7]", 1, 3), "");
  EXPECT_EQ(fault_of(kSetUp + all + "global_load_dword v3, v4, s[6:7]", 2, 3), "");
  EXPECT_EQ(fault_of(kSetUp + "v_mov_b32 v4, s2\n v_lshlrev_b32 v4, 8, v4\n v_add_u32 v4, v4, v1\n"
                              "global_store_dword v4, v0, s[6:7]",
                     1, 3),
            "");
  // Read by all, written by the last: the earlier readers are not forgotten.
  EXPECT_THAT(fault_of(kSetUp + all +
                           "global_load_dword v3, v4, s[6:7]\n s_cmp_eq_u32 s2, 2\n"
                           "s_cbranch_scc0 end\n global_store_dword v4, v0, s[6:7]\nend:",
                       1, 3),
              HasSubstr("race: writes 4 bytes"));
  // Narrow stores to one dword.
  EXPECT_EQ(fault_of(kSetUp + "v_mov_b32 v4, s2\n global_store_byte v4, v0, s[6:7]", 1, 4), "");
}

TEST_F(Race, ScalarLoadOfWhatAnotherWorkGroupWrites) {
  const std::string text = kSetUp +
                           "s_cmp_eq_u32 s2, 0\n s_cbranch_scc0 read\n"
                           "v_mov_b32 v4, 0\n global_store_dword v4, v0, s[6:7]\n"
                           "s_endpgm\nread: s_load_dword s9, s[6:7], ";
  EXPECT_THAT(fault_of(text + "0x0", 1, 2), HasSubstr("race: reads 4 bytes"));
  EXPECT_EQ(fault_of(text + "0x4", 1, 2), "");
}

// Each work-group writes its word and counts itself; the last to come reads all words.
const char *const kWriteBack = "buffer_wbl2 sc1\n s_waitcnt vmcnt(0)\n", *const kInvalidate =
                                                                             "buffer_inv sc1\n";
std::string last_reads_all(const std::string &count, const std::string &release = kWriteBack,
                           const std::string &acquire = kInvalidate,
                           const std::string &scope = "") {
  return "s_mov_b64 exec, 1\n" + kSetUp +
         "v_mov_b32 v4, s2\n v_lshlrev_b32 v4, 4, v4\n v_mov_b32 v5, 1\n v_mov_b32 v6, 0\n"
         "global_store_dwordx4 v4, v[12:15], s[6:7] offset:1024" +
         scope + "\n" + release + count +
         "\n s_waitcnt vmcnt(0)\n v_readfirstlane_b32 s9, v7\n s_cmp_eq_u32 s9, 2\n"
         "s_cbranch_scc0 end\n" +
         acquire + "global_load_dwordx4 v[8:11], v6, s[6:7] offset:1024" + scope +
         "\n s_waitcnt vmcnt(0)\nend:";
}
const std::string kCount = "global_atomic_add v7, v6, v5, s[6:7] sc0";
TEST_F(Race, AtomicsOrderWorkGroups) {
  EXPECT_EQ(fault_of(last_reads_all(kCount), 1, 3), "");
  // Not by an index that happens to be the same.
  EXPECT_THAT(fault_of(last_reads_all("v_mov_b32 v7, s2"), 1, 3),
              AllOf(HasSubstr("race: reads 16 bytes"), HasSubstr("no atomic ")));
}

// What the caches of two XCDs keep for themselves, and what is still in flight.
TEST_F(Race, ReleaseAndAcquireAtDeviceScope) {
  const std::string wait = "s_waitcnt vmcnt(0)\n";
  EXPECT_THAT(fault_of(last_reads_all(kCount, wait), 1, 3),
              AllOf(HasSubstr("race: reads 16 bytes"), HasSubstr("buffer_wbl2 sc1")))
      << "not written back";
  EXPECT_THAT(fault_of(last_reads_all(kCount, "buffer_wbl2 sc1\n"), 1, 3),
              AllOf(HasSubstr("race: reads 16 bytes"), HasSubstr("s_waitcnt vmcnt")))
      << "not waited for";
  EXPECT_THAT(fault_of(last_reads_all(kCount, kWriteBack, ""), 1, 3),
              AllOf(HasSubstr("race: reads 16 bytes"), HasSubstr("no buffer_inv sc1")));
  // Past the caches.
  EXPECT_EQ(fault_of(last_reads_all(kCount, wait, "", " sc1"), 1, 3), "");
  EXPECT_THAT(fault_of(last_reads_all(kCount, "", "", " sc1"), 1, 3),
              AllOf(HasSubstr("race: reads 16 bytes"), HasSubstr("s_waitcnt vmcnt")));
  EXPECT_THAT(fault_of(last_reads_all("v_mov_b32 v7, s2", wait, "", " sc1"), 1, 3),
              HasSubstr("race: reads 16 bytes"))
      << "wide accesses at device scope are data, not atomics";
}

// One of two stores is in flight when the work-group counts itself.
TEST_F(Race, AWaitThatIsOffByOne) {
  const auto text = [](const char *left) {
    return last_reads_all(kCount,
                          "global_store_dword v4, v5, s[6:7] offset:2048 sc1\n s_waitcnt vmcnt(" +
                              std::string(left) + ")\n",
                          "", " sc1");
  };
  EXPECT_EQ(fault_of(text("1"), 1, 3), "") << "the older one is what is read";
  EXPECT_THAT(fault_of(text("2"), 1, 3), HasSubstr("race: reads 16 bytes"));
}

// The store of the next step, by the same instruction, is in flight when that of this one is signalled.
TEST_F(Race, AStepLate) {
  const auto text = [](const char *offset) {
    return kSetUp + R"(
v_mov_b32 v4, 0
v_mov_b32 v5, 1
v_lshlrev_b32 v6, 4, v0
s_cmp_eq_u32 s2, 0
s_cbranch_scc0 read
s_mov_b32 s10, 0
step:
global_store_dwordx4 v6, v[12:15], s[6:7] offset:1024 sc1
v_add_u32 v6, 0x400, v6
s_add_u32 s10, s10, 1
s_cmp_eq_u32 s10, 2
s_cbranch_scc0 step
s_waitcnt vmcnt(1)
global_store_dword v4, v5, s[6:7] sc1
s_endpgm
read:
global_load_dword v7, v4, s[6:7] sc1
s_waitcnt vmcnt(0)
global_load_dwordx4 v[8:11], v6, s[6:7] offset:)" +
           std::string(offset) + " sc1\n";
  };
  EXPECT_EQ(fault_of(text("1024"), 1, 2), "");
  EXPECT_THAT(fault_of(text("2048"), 1, 2), HasSubstr("race: reads 16 bytes"));
}

// The wave that counts has not waited for the other one's store.
TEST_F(Race, StoresOfOtherWavesAreReleasedOnceTheirWaveHasWaited) {
  const auto text = [](const std::string &wait) {
    return kSetUp +
           "s_lshl_b32 s10, s2, 11\n v_lshlrev_b32 v1, 4, v0\n v_mov_b32 v5, 1\n v_mov_b32 v6, 0\n "
           "v_add_u32 v1, s10, v1\n"
           "global_store_dwordx4 v1, v[12:15], s[6:7] offset:1024 sc1\n" +
           wait +
           "s_barrier\n s_mov_b32 s9, 0\n v_readfirstlane_b32 s8, v0\n s_cmp_eq_u32 s8, 0\n"
           "s_cbranch_scc0 end\n s_waitcnt vmcnt(0)\n s_mov_b64 exec, 1\n" +
           kCount +
           "\n s_waitcnt vmcnt(0)\n v_readfirstlane_b32 s9, v7\n s_cmp_eq_u32 s9, 1\n"
           "s_cbranch_scc0 end\n global_load_dwordx4 v[8:11], v6, s[6:7] offset:2048 sc1\n"
           "s_waitcnt vmcnt(0)\nend:";
  };
  EXPECT_EQ(fault_of(text("s_waitcnt vmcnt(0)\n"), 2, 2), "");
  EXPECT_THAT(fault_of(text(""), 2, 2), HasSubstr("race: reads 16 bytes"));
}

TEST_F(Race, FlagsAtDeviceScopeOrderWorkGroups) {
  // Work-group 0 writes data and raises a flag, work-group 1 waits for the flag and reads.
  auto text = [](const std::string &scope) {
    return "s_mov_b64 exec, 1\n" + kSetUp +
           "v_mov_b32 v4, 0\n v_mov_b32 v5, 1\n s_cmp_eq_u32 s2, 0\n s_cbranch_scc0 wait\n"
           "global_store_dword v4, v5, s[6:7] offset:64\n buffer_wbl2 sc1\n s_waitcnt vmcnt(0)\n"
           "global_store_dword v4, v5, s[6:7]" +
           scope +
           "\n s_endpgm\n"
           "wait: global_load_dword v6, v4, s[6:7]" +
           scope +
           "\n s_waitcnt vmcnt(0)\n v_readfirstlane_b32 s9, v6\n s_cmp_eq_u32 s9, 0\n"
           "s_cbranch_scc1 wait\n buffer_inv sc1\n global_load_dword v7, v4, s[6:7] offset:64\n";
  };
  EXPECT_EQ(fault_of(text(" sc1"), 1, 2), "");
  EXPECT_THAT(fault_of(text(""), 1, 2), HasSubstr("race: reads 4 bytes"));
}

// A flag may be raised between the moment at which the load of it begins and the one at which it sees memory: 200 times
// a host thread runs into the other's.
TEST_F(Race, ALoadAcquiresWhatItSees) {
  build("s_mov_b64 exec, 1\n" + kSetUp + R"(
v_mov_b32 v4, 0
v_mov_b32 v5, 0
s_mov_b32 s10, 0
step:
s_add_u32 s10, s10, 1
v_mov_b32 v5, s10
s_cmp_eq_u32 s2, 0
s_cbranch_scc0 wait
global_store_dwordx4 v4, v[12:15], s[6:7] offset:128 sc1
s_waitcnt vmcnt(0)
global_store_dword v4, v5, s[6:7] sc1
answer:
global_load_dword v6, v4, s[6:7] offset:64 sc1
s_waitcnt vmcnt(0)
v_readfirstlane_b32 s9, v6
s_cmp_eq_u32 s9, s10
s_cbranch_scc0 answer
s_branch next
wait:
global_load_dword v6, v4, s[6:7] sc1
s_waitcnt vmcnt(0)
v_readfirstlane_b32 s9, v6
s_cmp_eq_u32 s9, s10
s_cbranch_scc0 wait
global_load_dwordx4 v[8:11], v4, s[6:7] offset:128 sc1
s_waitcnt vmcnt(0)
global_store_dword v4, v5, s[6:7] offset:64 sc1
next:
s_cmp_eq_u32 s10, 200
s_cbranch_scc0 step
)");
  dispatch_.block[0] = 64;
  dispatch_.grid[0] = 2;
  options_.checks = "race";
  EXPECT_EQ(run(2).fault, "");
}

TEST_F(Race, LoadThatBeginsACompareAndSwapLoop) {
  auto text = [](const char *swap) {
    return kSetUp +
           "v_mov_b32 v4, 0\n global_load_dword v9, v4, s[6:7]\n s_waitcnt vmcnt(0)\n"
           "loop: v_add_u32 v8, v9, v0\n" +
           swap +
           "\n s_waitcnt vmcnt(0)\n v_cmp_ne_u32 vcc, v10, v9\n v_mov_b32 v9, v10\n"
           "s_and_b64 exec, exec, vcc\n s_cbranch_execnz loop";
  };
  EXPECT_EQ(fault_of(text("global_atomic_cmpswap v10, v4, v[8:9], s[6:7] sc0"), 2, 2), "");
  EXPECT_THAT(
      fault_of(text("global_atomic_swap v10, v4, v8, s[6:7] sc0\n v_mov_b32 v9, v10"), 2, 1),
      HasSubstr("race: "));
}

TEST_F(Race, ManyThreadsShareTheShadow) {
  build(kSetUp +
        "v_mov_b32 v4, s2\n v_lshlrev_b32 v4, 6, v4\n v_add_u32 v4, v4, v1\n"
        "global_store_dword v4, v0, s[6:7]");
  dispatch_.grid[0] = 64;
  options_.checks = "race";
  EXPECT_THAT(run(4).fault, HasSubstr("race: writes 4 bytes"));  // 64 of 256 bytes apart
  dispatch_.block[0] = 16;
  EXPECT_EQ(run(4).fault, "");
}

}  // namespace
}  // namespace flydsl::emu::test
