// Scalar stores, scratch and atomics; forks and joins; relative scalar destinations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/emulator/isa/lane_values.h"
#include "test/emulator/support/snippet.h"

namespace flydsl::emu::test {
namespace {

using testing::HasSubstr;
using u32 = uint32_t;
using u64 = uint64_t;

class ScalarMemory : public testing::TestWithParam<Level> {
 protected:
  alignas(64) u32 data_[64];
  ScalarMemory() {
    for (u32 i = 0; i < 64; ++i) data_[i] = 100 + i;
  }
  void point(Snippet &t, int reg) {
    const auto p = reinterpret_cast<u64>(data_);
    t.s(reg) = u32(p);
    t.s(reg + 1) = u32(p >> 32);
    t.allow(data_, sizeof data_);
  }
};

TEST_P(ScalarMemory, StoresAndScratch) {
  Snippet t(
      "s_store_dwordx2 s[8:9], s[0:1], 0x10\n s_mov_b32 s4, 32\n s_store_dword s10, s[0:1], s4\n"
      "s_mov_b32 s5, 2\n s_scratch_load_dwordx2 s[12:13], s[0:1], s5\n"
      "s_scratch_store_dword s8, s[0:1], s5 offset:0x4\n s_buffer_store_dword s9, s[20:23], 0x1c\n"
      "s_buffer_store_dwordx2 s[8:9], s[20:23], 0x1c",
      GetParam());
  point(t, 0);
  point(t, 20);
  t.s(22) = 32;  // bytes: of the pair at 28 one dword fits
  t.s(8) = 1, t.s(9) = 2, t.s(10) = 3;
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(data_[4], 1u);
  EXPECT_EQ(data_[5], 2u);
  EXPECT_EQ(data_[8], 3u);
  EXPECT_EQ(t.s(12), 132u) << "register offsets of scratch count 64 bytes";
  EXPECT_EQ(t.s(13), 133u);
  EXPECT_EQ(data_[33], 1u);
  EXPECT_EQ(data_[7], 1u) << "the first dword of the pair is inside";
  EXPECT_EQ(data_[8], 3u);
  Snippet outside("s_store_dword s8, s[0:1], 0x100", GetParam());
  point(outside, 0);
  EXPECT_THAT(outside.run(), HasSubstr("writes 4 bytes"));
}

// CDNA4 ISA, "Scalar Memory Addressing": the factor 64 is the register's, not the immediate's; the two
// low bits of each part of an address do not count.
TEST_P(ScalarMemory, PartsOfAddresses) {
  Snippet t(
      "s_scratch_load_dword s8, s[0:1], 0x14\n s_mov_b32 s4, 7\n"
      "s_buffer_load_dword s9, s[20:23], s4 offset:0x5\n s_load_dwordx2 s[10:11], s[0:1], 0x8",
      GetParam());
  point(t, 0);
  point(t, 20);
  t.s(20) += 3, t.s(22) = 256;
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.s(8), 105u);
  EXPECT_EQ(t.s(9), 102u) << "4 + 4";
  EXPECT_EQ(t.s(10), 102u);
  Snippet low("s_mov_b32 s4, 3\n s_load_dword s8, s[0:1], s4 offset:0x1", GetParam());
  point(low, 0);
  EXPECT_THAT(low.run(), HasSubstr("not a multiple of 4"));
}

TEST_P(ScalarMemory, Atomics) {
  Snippet t(
      "s_atomic_add s8, s[0:1], 0x0 glc\n s_atomic_smin_x2 s[10:11], s[0:1], 0x8\n"
      "s_atomic_cmpswap s[12:13], s[0:1], 0x10 glc\n s_atomic_cmpswap s[14:15], s[0:1], 0x14 glc\n"
      "s_buffer_atomic_inc s16, s[20:23], 0x18 glc\n s_buffer_atomic_swap s17, s[20:23], 0x20 glc\n"
      "s_atomic_umax s18, s[0:1], 0x24",
      GetParam());
  point(t, 0);
  point(t, 20);
  t.s(22) = 32;
  t.s(8) = 5;
  t.s(10) = 0xfffffff0, t.s(11) = 0xffffffff;
  t.s(12) = 7, t.s(13) = 104;
  t.s(14) = 8, t.s(15) = 104;
  t.s(16) = 106;
  t.s(17) = 9;
  t.s(18) = 1;
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.s(8), 100u);
  EXPECT_EQ(data_[0], 105u);
  EXPECT_EQ(data_[2], 0xfffffff0u);
  EXPECT_EQ(data_[3], 0xffffffffu);
  EXPECT_EQ(t.s(12), 104u);
  EXPECT_EQ(data_[4], 7u);
  EXPECT_EQ(t.s(14), 105u);
  EXPECT_EQ(data_[5], 105u) << "not equal, not swapped";
  EXPECT_EQ(t.s(16), 106u);
  EXPECT_EQ(data_[6], 0u) << "wraps at the data";
  EXPECT_EQ(t.s(17), 9u) << "outside: nothing happens";
  EXPECT_EQ(data_[8], 108u);
  EXPECT_EQ(data_[9], 109u);
}

// Both halves run, the smaller first, and meet again at the join, where the program restores EXEC.
TEST_P(ScalarMemory, ForkAndJoin) {
  const char *text =
      "v_mov_b32 v1, 1\n s_mov_b32 s20, 0\n s_getpc_b64 s[30:31]\n s_add_u32 s30, s30, 20\n"
      "s_addc_u32 s31, s31, 0\n s_cbranch_g_fork s[10:11], s[30:31]\n v_mov_b32 v1, 2\n s_branch "
      "1\n"
      "v_mov_b32 v1, 3\n v_add_u32 v1, v1, v0\n s_add_u32 s20, s20, 1\n s_mov_b32 s12, 0\n"
      "s_cbranch_join s12\n s_mov_b64 exec, -1\n v_add_u32 v1, 100, v1";
  for (const u64 taken : {u64(0x00000000000000ff), ~u64(0xff), ~u64(0), u64(0)}) {
    Snippet t(text, GetParam());
    t.s(10) = u32(taken);
    t.s(11) = u32(taken >> 32);
    t.set_v(0, [](int lane) { return u32(lane) * 1000; });
    ASSERT_EQ(t.run(), "");
    for (int lane = 0; lane < 64; ++lane)
      EXPECT_EQ(t.v(1, lane), u32(lane) * 1000 + 100 + (taken >> lane & 1 ? 3 : 2)) << lane;
    EXPECT_EQ(t.s(20), taken == 0 || taken == ~u64(0) ? 1u : 2u) << "times through the common part";
  }
}

TEST_P(ScalarMemory, RelativeDestinationsAndMasks) {
  Snippet t(
      "s_mov_b32 m0, 3\n s_movreld_b32 s10, s4\n s_movreld_b64 s[20:21], s[4:5]\n"
      "s_wqm_b32 s6, s4\n s_quadmask_b32 s7, s4\n s_cselect_b32 s8, 1, 0",
      GetParam());
  t.s(4) = 0x10020000;
  t.s(5) = 77;
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.s(13), 0x10020000u);
  EXPECT_EQ(t.s(23), 0x10020000u);
  EXPECT_EQ(t.s(24), 77u);
  EXPECT_EQ(t.s(6), 0xf00f0000u);
  EXPECT_EQ(t.s(7), 0x90u);
  EXPECT_EQ(t.s(8), 1u);
  // Where FLAT addresses of LDS and scratch begin, the old way and the new.
  Snippet bases(
      "s_getreg_b32 s0, hwreg(HW_REG_SH_MEM_BASES, 16, 16)\n"
      "s_getreg_b32 s1, hwreg(HW_REG_SH_MEM_BASES, 0, 16)\n s_mov_b64 s[2:3], src_shared_base\n"
      "s_mov_b64 s[4:5], src_private_base",
      GetParam());
  ASSERT_EQ(bases.run(), "");
  EXPECT_EQ(bases.s(0) << 16, bases.s(3));
  EXPECT_EQ(bases.s(1) << 16, bases.s(5));
  EXPECT_NE(bases.s(0), bases.s(1));
  Snippet halted("s_sethalt 1", GetParam());
  EXPECT_THAT(halted.run(), HasSubstr("halts the wave"));
}

INSTANTIATE_TEST_SUITE_P(Levels, ScalarMemory, testing::ValuesIn(levels()), [](const auto &p) {
  return std::string(p.param == Level::kBase   ? "base"
                     : p.param == Level::kAvx2 ? "avx2"
                                               : "avx512");
});

}  // namespace
}  // namespace flydsl::emu::test
