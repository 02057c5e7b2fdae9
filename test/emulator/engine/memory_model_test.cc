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
