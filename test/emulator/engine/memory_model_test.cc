// When copies to LDS and loads arrive under each memory model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "test/emulator/support/launch.h"

namespace flydsl::emu::test {
namespace {

using testing::HasSubstr;

// Wave 0 fills 64 words of LDS with 7. Between the next two barriers it copies out[0..63] over them
// and waits for the copy, while wave 1 reads them; afterwards wave 1 reads them again.
const char *kOverwrite =
    "s_load_dwordx2 s[6:7], s[0:1], 0x0\n v_and_b32 v1, 63, v0\n v_lshlrev_b32 v1, 2, v1\n"
    "v_mov_b32 v2, 7\n s_mov_b32 m0, 0\n v_readfirstlane_b32 s8, v0\n s_cmp_eq_u32 s8, 0\n"
    "s_cbranch_scc0 other\n ds_write_b32 v1, v2\n s_waitcnt lgkmcnt(0)\n s_barrier\n"
    "global_load_lds_dword v1, s[6:7]\n s_waitcnt vmcnt(0)\n s_barrier\n s_endpgm\n"
    "other: s_barrier\n ds_read_b32 v3, v1\n s_waitcnt lgkmcnt(0)\n s_barrier\n ds_read_b32 v4, "
    "v1\n"
    "s_waitcnt lgkmcnt(0)\n global_store_dword v1, v3, s[6:7] offset:256\n"
    "global_store_dword v1, v4, s[6:7] offset:512";

class MemoryModels : public Launch {
 protected:
  void overwrite(MemoryModel model) {
    build(kOverwrite);
    for (uint32_t i = 0; i < 64; ++i) out_[i] = 100 + i;
    kernel_.lds_bytes = 256;
    dispatch_.block[0] = 128;
    options_.memory = model;
    const DispatchResult r = run();
    ASSERT_TRUE(r.ok) << r.fault;
    for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out_[128 + i], 100 + i);
  }
};

TEST_F(MemoryModels, NominalCopyLetsTheOtherWavesRunToTheBarrier) {
  overwrite(MemoryModel::kNominal);
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out_[64 + i], 7u);
}

TEST_F(MemoryModels, StrictCopyLandsAtItsWait) {
  overwrite(MemoryModel::kStrict);
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out_[64 + i], 100 + i);
}

TEST_F(MemoryModels, RandomCopyShowsBothOrders) {
  std::set<uint32_t> seen;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    options_.seed = seed;
    overwrite(MemoryModel::kRandom);
    for (uint32_t i = 0; i < 64; ++i) seen.insert(out_[64 + i] - (out_[64 + i] == 7 ? 0 : i));
  }
  EXPECT_THAT(seen, testing::UnorderedElementsAre(7u, 100u));
}

// Without a wait the strict model shows the pattern; the last instruction reads all results.
TEST_F(MemoryModels, StrictResultsArriveAtTheirWaits) {
  const std::string head =
      "s_load_dwordx2 s[6:7], s[0:1], 0x0\n v_lshlrev_b32 v1, 2, v0\n s_waitcnt lgkmcnt(0)\n"
      "ds_write_b32 v1, v0\n global_load_dword v2, v1, s[6:7]\n"
      "global_load_dword v3, v1, s[6:7] offset:4\n ds_read_b32 v4, v1\n"
      "s_load_dword s8, s[6:7], 0x0\n";
  const std::string tail =
      "\n v_mov_b32 v6, v2\n v_mov_b32 v7, v3\n v_mov_b32 v8, v4\n v_mov_b32 v9, s8\n"
      "s_waitcnt vmcnt(0) lgkmcnt(0)\n global_store_dwordx4 v10, v[6:9], s[6:7] offset:1024";
  const struct {
    const char *wait;
    uint32_t expected[4];
  } kRows[] = {
      {"s_nop 0", {0xabababab, 0xabababab, 0xabababab, 0xabababab}},
      {"s_waitcnt vmcnt(1)", {100, 0xabababab, 0xabababab, 0xabababab}},
      {"s_waitcnt vmcnt(0)", {100, 101, 0xabababab, 0xabababab}},
      {"s_waitcnt lgkmcnt(1)", {0xabababab, 0xabababab, 0xabababab, 0xabababab}},
      {"s_waitcnt lgkmcnt(0)", {0xabababab, 0xabababab, 0, 100}},
  };
  kernel_.lds_bytes = 256;
  for (const auto &row : kRows) {
    build(head + "v_mov_b32 v10, 0\n s_mov_b64 exec, 1\n" + row.wait + tail);
    for (uint32_t i = 0; i < 128; ++i) out_[i] = 100 + i;
    options_.memory = MemoryModel::kStrict;
    ASSERT_TRUE(run().ok);
    for (int k = 0; k < 4; ++k) EXPECT_EQ(out_[256 + size_t(k)], row.expected[k]) << row.wait << k;
  }
}

// Random results arrive in some order that the counters allow, and not later than their wait.
TEST_F(MemoryModels, RandomResultsArriveInTheirOrder) {
  build(
      "s_load_dwordx2 s[6:7], s[0:1], 0x0\n v_lshlrev_b32 v1, 2, v0\n v_mov_b32 v2, 1\n"
      "v_mov_b32 v3, 1\n s_waitcnt lgkmcnt(0)\n global_load_dword v2, v1, s[6:7]\n"
      "global_load_dword v3, v1, s[6:7] offset:4\n s_nop 0\n s_nop 0\n s_nop 0\n s_nop 0\n"
      "v_mov_b32 v4, v3\n v_mov_b32 v5, v2\n s_waitcnt vmcnt(0)\n v_mov_b32 v6, v2\n v_mov_b32 v7, "
      "v3\n"
      "v_mov_b32 v8, 0\n s_mov_b64 exec, 1\n global_store_dwordx4 v8, v[4:7], s[6:7] offset:1024");
  std::set<std::pair<uint32_t, uint32_t>> seen;
  options_.memory = MemoryModel::kRandom;
  for (options_.seed = 1; options_.seed <= 200; ++options_.seed) {
    out_[0] = 100;
    out_[1] = 101;
    ASSERT_TRUE(run().ok);
    seen.insert({out_[257], out_[256]});
    EXPECT_EQ(out_[258], 100u);
    EXPECT_EQ(out_[259], 101u);
  }
  // v3 was read before v2, and never is the second load there without the first.
  EXPECT_THAT(seen, testing::UnorderedElementsAre(std::pair(1u, 1u), std::pair(100u, 1u),
                                                  std::pair(100u, 101u)));
}

TEST_F(MemoryModels, RandomOrderRunsEveryWorkGroupOnce) {
  build(
      "s_load_dwordx2 s[6:7], s[0:1], 0x0\n s_lshl_b32 s2, s2, 2\n v_mov_b32 v1, s2\n v_mov_b32 "
      "v2, 1\n"
      "s_mov_b64 exec, 1\n s_waitcnt lgkmcnt(0)\n global_atomic_add v1, v2, s[6:7]");
  options_.memory = MemoryModel::kRandom;
  for (const uint32_t groups : {1u, 2u, 97u, 1000u}) {
    dispatch_.grid[0] = groups;
    std::fill(out_.begin(), out_.end(), 0);
    ASSERT_TRUE(run().ok);
    for (uint32_t g = 0; g < groups; ++g) EXPECT_EQ(out_[g], 1u) << g;
    EXPECT_EQ(out_[groups], 0u);
  }
}

// Wave 1 never blocks: it spins, asleep in between, until wave 0 has waited for its copy.
TEST_F(MemoryModels, SpinningWaveDoesNotHoldUpTheCopy) {
  build(
      "s_load_dwordx2 s[6:7], s[0:1], 0x0\n v_and_b32 v1, 63, v0\n v_lshlrev_b32 v1, 2, v1\n"
      "v_mov_b32 v2, 0\n v_mov_b32 v3, 1\n s_mov_b32 m0, 0\n v_readfirstlane_b32 s8, v0\n"
      "ds_write_b32 v2, v2 offset:256\n s_waitcnt lgkmcnt(0)\n s_barrier\n s_cmp_eq_u32 s8, 0\n"
      "s_cbranch_scc0 spin\n global_load_lds_dword v1, s[6:7]\n s_waitcnt vmcnt(0)\n"
      "ds_write_b32 v2, v3 offset:256\n s_endpgm\n"
      "spin: s_sleep 1\n ds_read_b32 v4, v2 offset:256\n s_waitcnt lgkmcnt(0)\n"
      "v_readfirstlane_b32 s9, v4\n s_cmp_eq_u32 s9, 1\n s_cbranch_scc0 spin\n ds_read_b32 v5, v1\n"
      "s_waitcnt lgkmcnt(0)\n global_store_dword v1, v5, s[6:7] offset:256");
  for (uint32_t i = 0; i < 64; ++i) out_[i] = 100 + i;
  kernel_.lds_bytes = 260;
  dispatch_.block[0] = 128;
  ASSERT_EQ(setenv("FLYDSL_EMU_INSTRUCTION_LIMIT", "100000", 1), 0);
  const DispatchResult r = run();
  unsetenv("FLYDSL_EMU_INSTRUCTION_LIMIT");
  ASSERT_TRUE(r.ok) << r.fault;
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out_[64 + i], 100 + i);
}

TEST_F(MemoryModels, VariableNamesTheModel) {
  build("s_nop 0");
  for (const char *good : {"nominal", "strict", "random", "random:17"}) {
    setenv("FLYDSL_EMU_MEMORY", good, 1);
    EXPECT_TRUE(run().ok) << good;
  }
  for (const char *bad : {"", "lax", "random:", "random:x", "strict:1"}) {
    setenv("FLYDSL_EMU_MEMORY", bad, 1);
    EXPECT_THAT(run().fault, HasSubstr("FLYDSL_EMU_MEMORY")) << bad;
  }
  unsetenv("FLYDSL_EMU_MEMORY");
}

}  // namespace
}  // namespace flydsl::emu::test
