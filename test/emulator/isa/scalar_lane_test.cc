// Scalar arithmetic, control flow, and data across lanes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/emulator/isa/lane_values.h"
#include "test/emulator/support/snippet.h"

namespace flydsl::emu::test {
namespace {

using testing::HasSubstr;

class Scalar : public testing::TestWithParam<Level> {};

struct ScalarVector {
  const char *text;  // reads s0, s1 (or pairs s[0:1], s[2:3]); writes s4 (and s5)
  uint32_t s0, s1, s2, s3, scc_in;
  uint64_t expected;
  int scc;  // -1: not looked at
};
const ScalarVector kScalar[] = {
    {"s_add_u32 s4, s0, s1", 0xffffffff, 1, 0, 0, 0, 0, 1},
    {"s_addc_u32 s4, s0, s1", 1, 2, 0, 0, 1, 4, 0},
    {"s_sub_u32 s4, s0, s1", 1, 2, 0, 0, 0, 0xffffffff, 1},
    {"s_subb_u32 s4, s0, s1", 5, 5, 0, 0, 1, 0xffffffff, 1},
    {"s_add_i32 s4, s0, s1", 0x7fffffff, 1, 0, 0, 0, 0x80000000, 1},
    {"s_sub_i32 s4, s0, s1", 0x80000000, 1, 0, 0, 0, 0x7fffffff, 1},
    {"s_min_i32 s4, s0, s1", 0xffffffff, 1, 0, 0, 0, 0xffffffff, 1},
    {"s_max_u32 s4, s0, s1", 0xffffffff, 1, 0, 0, 0, 0xffffffff, 1},
    {"s_lshl_b32 s4, s0, s1", 1, 33, 0, 0, 0, 2, 1},
    {"s_ashr_i32 s4, s0, 31", 0x80000000, 0, 0, 0, 0, 0xffffffff, 1},
    {"s_mul_hi_u32 s4, s0, s1", 0x80000000, 4, 0, 0, 0, 2, -1},
    {"s_mul_hi_i32 s4, s0, s1", 0xffffffff, 4, 0, 0, 0, 0xffffffff, -1},
    {"s_bfe_u32 s4, s0, 0x80004", 0x12345678, 0, 0, 0, 0, 0x67, 1},
    {"s_bfe_i32 s4, s0, 0x40004", 0xf0, 0, 0, 0, 0, 0xffffffff, 1},
    {"s_bfm_b32 s4, 4, 8", 0, 0, 0, 0, 0, 0xf00, -1},
    {"s_cselect_b32 s4, s0, s1", 7, 8, 0, 0, 1, 7, 1},
    {"s_abs_i32 s4, s0", 0xfffffffb, 0, 0, 0, 0, 5, 1},
    {"s_ff1_i32_b32 s4, s0", 0x100, 0, 0, 0, 0, 8, -1},
    {"s_flbit_i32_b32 s4, s0", 0x100, 0, 0, 0, 0, 23, -1},
    {"s_bcnt1_i32_b64 s4, s[0:1]", 0xff, 0xf, 0, 0, 0, 12, 1},
    {"s_brev_b32 s4, s0", 3, 0, 0, 0, 0, 0xc0000000, -1},
    {"s_sext_i32_i8 s4, s0", 0x80, 0, 0, 0, 0, 0xffffff80, -1},
    {"s_pack_ll_b32_b16 s4, s0, s1", 0x1234, 0x5678, 0, 0, 0, 0x56781234, -1},
    {"s_lshl2_add_u32 s4, s0, s1", 3, 5, 0, 0, 0, 17, 0},
    {"s_movk_i32 s4, 0xfffe", 0, 0, 0, 0, 0, 0xfffffffe, -1},
    {"s_mov_b32 s4, s0\n s_addk_i32 s4, 0xffff", 5, 0, 0, 0, 0, 4, 0},
    {"s_absdiff_i32 s4, s0, s1", 3, 10, 0, 0, 0, 7, 1},
};
const ScalarVector kWide[] = {
    {"s_and_b64 s[4:5], s[0:1], s[2:3]", 0xff, 0xf0, 0x0f, 0xff, 0, 0xf00000000full, 1},
    {"s_andn2_b64 s[4:5], s[0:1], s[2:3]", 0xff, 0xf0, 0xff, 0xf0, 0, 0, 0},
    {"s_lshl_b64 s[4:5], s[0:1], s2", 1, 0, 36, 0, 0, 0x1000000000ull, 1},
    {"s_ashr_i64 s[4:5], s[0:1], 4", 0, 0x80000000, 0, 0, 0, 0xf800000000000000ull, 1},
    {"s_bfe_u64 s[4:5], s[0:1], 0x100018", 0x12345678, 0x9abcdef0, 0, 0, 0, 0xf012 & 0xffff, 1},
    {"s_mov_b64 s[4:5], 0x80000000", 0, 0, 0, 0, 0, 0x80000000ull,
     -1},  // literals of b64 are zero-extended
    {"s_mov_b64 s[4:5], -2", 0, 0, 0, 0, 0, ~uint64_t(1), -1},
    {"s_cselect_b64 s[4:5], s[0:1], -1", 1, 2, 0, 0, 0, ~uint64_t(0), 0},
    {"s_wqm_b64 s[4:5], s[0:1]", 0x10, 0x800, 0, 0, 0, 0x00000f00000000f0ull, 1},
    {"s_not_b64 s[4:5], s[0:1]", 0xffffffff, 0xffffffff, 0, 0, 0, 0, 0},
};

TEST_P(Scalar, Vectors) {
  auto run = [&](const ScalarVector &c, bool wide) {
    SCOPED_TRACE(c.text);
    Snippet t(c.text, GetParam());
    t.s(0) = c.s0;
    t.s(1) = c.s1;
    t.s(2) = c.s2;
    t.s(3) = c.s3;
    t.wave().scc = c.scc_in;
    ASSERT_EQ(t.run(), "");
    EXPECT_EQ(wide ? t.s64(4) : t.s(4), c.expected) << std::hex << t.s64(4);
    if (c.scc >= 0) {
      EXPECT_EQ(int(t.wave().scc), c.scc);
    }
  };
  for (const ScalarVector &c : kScalar) run(c, false);
  for (const ScalarVector &c : kWide) run(c, true);
}

TEST_P(Scalar, LoopsCallsAndReturns) {
  Snippet t(
      "s_mov_b32 s0, 0\n s_mov_b32 s1, 10\nloop:\n s_add_u32 s0, s0, s1\n s_sub_u32 s1, s1, 1\n"
      "s_cmp_lg_u32 s1, 0\n s_cbranch_scc1 loop\n s_getpc_b64 s[4:5]\n s_add_u32 s4, s4, 20\n "
      "s_addc_u32 s5, s5, 0\n"
      "s_swappc_b64 s[6:7], s[4:5]\n s_branch end\n s_nop 0\n s_mov_b32 s2, 42\n s_setpc_b64 "
      "s[6:7]\nend:\n s_nop 0",
      GetParam());
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.s(0), 55u);
  EXPECT_EQ(t.s(2), 42u);
}

TEST_P(Scalar, ExecBranchesAndSaveexec) {
  Snippet t(
      "v_cmp_gt_u32 vcc, 4, v0\n s_and_saveexec_b64 s[0:1], vcc\n v_mov_b32 v1, 1\n s_xor_b64 "
      "exec, exec, s[0:1]\n"
      "v_mov_b32 v1, 2\n s_mov_b64 exec, 0\n s_cbranch_execz skip\n s_mov_b32 s3, 1\nskip:\n "
      "s_mov_b64 exec, s[0:1]",
      GetParam());
  t.set_v(0, [](int lane) { return uint32_t(lane); });
  ASSERT_EQ(t.run(), "");
  for (int lane = 0; lane < 64; ++lane) EXPECT_EQ(t.v(1, lane), lane < 4 ? 1u : 2u);
  EXPECT_EQ(t.s(3), 0u);
}

TEST_P(Scalar, JumpOutsideTheCodeStops) {
  Snippet t("s_setpc_b64 s[0:1]", GetParam());
  EXPECT_THAT(t.run(), HasSubstr("jumps to an address that holds no instruction"));
}

TEST_P(Scalar, UnknownBytesAndUnsupportedInstructionsStopWithTheirText) {
  const std::vector<uint8_t> bytes = {0xff, 0xff, 0xff, 0xff,
                                      0,    0,    0x81, 0xbf};  // no such encoding
  Snippet raw(bytes, GetParam(), "gfx950");
  EXPECT_THAT(raw.run(), HasSubstr("FFFFFFFF"));
  Snippet t("s_nop 0\n s_setvskip s0, s2", GetParam());
  const std::string fault = t.run();
  EXPECT_THAT(fault, HasSubstr("s_setvskip s0, s2"));
  EXPECT_THAT(fault, HasSubstr("this instruction is not emulated"));
  Snippet m("s_getreg_b32 s0, hwreg(HW_REG_TRAPSTS)", GetParam());
  EXPECT_THAT(m.run(), HasSubstr("hardware register that is not emulated, id 0x3"));
}

TEST_P(Scalar, RelativeRegisterNumbers) {
  Snippet t(
      "s_mov_b32 s0, 2\n s_set_gpr_idx_on s0, gpr_idx(SRC0)\n v_mov_b32 v8, v4\n "
      "s_set_gpr_idx_off\n"
      "v_mov_b32 v9, v4\n s_set_gpr_idx_on s0, gpr_idx(DST)\n v_add_u32 v10, v4, v5\n "
      "s_set_gpr_idx_idx 3\n"
      "s_set_gpr_idx_mode gpr_idx(SRC1)\n v_add_u32 v11, v4, v4\n s_set_gpr_idx_off",
      GetParam());
  for (int reg = 4; reg < 8; ++reg) t.set_v(reg, [=](int) { return uint32_t(100 + reg); });
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.v(8, 0), 106u);
  EXPECT_EQ(t.v(9, 0), 104u);
  EXPECT_EQ(t.v(10, 0), 0u);
  EXPECT_EQ(t.v(12, 0), 209u);
  EXPECT_EQ(t.v(11, 0), 104u + 107u);
  Snippet over("s_movk_i32 s0, 0xff\n s_set_gpr_idx_on s0, gpr_idx(SRC0)\n v_mov_b32 v8, v4",
               GetParam());
  EXPECT_THAT(over.run(),
              HasSubstr("`v_mov_b32_e32 v8, v4`: relative register number out of range"));
}

TEST_P(Scalar, RunningOffTheEndStops) {
  Snippet t(assemble("s_nop 0"), GetParam(), "gfx950");
  EXPECT_THAT(t.run(), HasSubstr("ran past the end of the code"));
}

TEST_P(Scalar, LaneReadsAndWrites) {
  Snippet t(
      "v_readlane_b32 s0, v0, 5\n s_mov_b32 s1, 70\n v_readlane_b32 s2, v0, s1\n v_writelane_b32 "
      "v1, s0, 63\n"
      "s_mov_b64 exec, 0xff00\n v_readfirstlane_b32 s3, v0\n v_mbcnt_lo_u32_b32 v2, -1, 0\n"
      "s_mov_b64 exec, -1\n v_mbcnt_lo_u32_b32 v3, -1, 0\n v_mbcnt_hi_u32_b32 v3, -1, v3",
      GetParam());
  t.set_v(0, [](int lane) { return uint32_t(lane + 1000); });
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.s(0), 1005u);
  EXPECT_EQ(t.s(2), 1006u);  // 70 modulo 64
  EXPECT_EQ(t.s(3), 1008u);
  EXPECT_EQ(t.v(1, 63), 1005u);
  for (int lane = 0; lane < 64; ++lane) {
    EXPECT_EQ(t.v(2, lane), lane >= 8 && lane < 16 ? uint32_t(lane) : 0u);
    EXPECT_EQ(t.v(3, lane), uint32_t(lane));
  }
}

// D's odd rows against S0's even rows; rows 2 and 3 behave as rows 0 and 1.
TEST_P(Scalar, PermlaneSwaps) {
  Snippet t("v_permlane16_swap_b32 v0, v1\n v_permlane32_swap_b32 v2, v3", GetParam());
  for (int reg = 0; reg < 4; ++reg)
    t.set_v(reg, [=](int lane) { return uint32_t(reg * 100 + lane); });
  ASSERT_EQ(t.run(), "");
  for (int lane = 0; lane < 64; ++lane) {
    const bool odd_row = lane / 16 % 2, high = lane >= 32;
    EXPECT_EQ(t.v(0, lane), odd_row ? uint32_t(100 + lane - 16) : uint32_t(lane));
    EXPECT_EQ(t.v(1, lane), odd_row ? uint32_t(100 + lane) : uint32_t(lane + 16));
    EXPECT_EQ(t.v(2, lane), high ? uint32_t(300 + lane - 32) : uint32_t(200 + lane));
    EXPECT_EQ(t.v(3, lane), high ? uint32_t(300 + lane) : uint32_t(200 + lane + 32));
  }
}

TEST_P(Scalar, DppControls) {
  struct Case {
    const char *control;
    std::function<int(int)> from;  // source lane or -1
  };
  const Case cases[] = {
      {"quad_perm:[1,0,3,2]", [](int l) { return l ^ 1; }},
      {"row_shl:1", [](int l) { return l % 16 < 15 ? l + 1 : -1; }},
      {"row_shr:3", [](int l) { return l % 16 >= 3 ? l - 3 : -1; }},
      {"row_ror:2", [](int l) { return l / 16 * 16 + (l % 16 + 14) % 16; }},
      {"row_mirror", [](int l) { return l ^ 15; }},
      {"row_half_mirror", [](int l) { return l ^ 7; }},
      {"row_bcast:15", [](int l) { return l < 16 ? -1 : l / 16 * 16 - 1; }},
      {"row_bcast:31", [](int l) { return l < 32 ? -1 : 31; }},
      {"row_newbcast:5", [](int l) { return l / 16 * 16 + 5; }},
      {"wave_shr:1", [](int l) { return l - 1; }},
      {"wave_rol:1", [](int l) { return (l + 1) % 64; }},
  };
  for (const Case &c : cases) {
    SCOPED_TRACE(c.control);
    Snippet t("v_mov_b32_dpp v1, v0 " + std::string(c.control) +
                  " row_mask:0xf bank_mask:0xf\n v_mov_b32_dpp v2, v0 " + c.control +
                  " row_mask:0xf bank_mask:0xf bound_ctrl:0\n v_mov_b32_dpp v3, v0 " + c.control +
                  " row_mask:0x5 bank_mask:0x3 bound_ctrl:0",
              GetParam());
    t.set_v(0, [](int lane) { return uint32_t(lane + 1); });
    for (int reg = 1; reg < 4; ++reg) t.set_v(reg, [](int) { return 999u; });
    ASSERT_EQ(t.run(), "");
    for (int lane = 0; lane < 64; ++lane) {
      const int from = c.from(lane);
      const uint32_t moved = from < 0 ? 0 : uint32_t(from + 1);
      EXPECT_EQ(t.v(1, lane), from < 0 ? 999u : moved) << lane;
      EXPECT_EQ(t.v(2, lane), moved) << lane;
      EXPECT_EQ(t.v(3, lane), lane / 16 % 2 == 0 && lane / 4 % 4 < 2 ? moved : 999u) << lane;
    }
  }
}

// A field of MODE from a register, from a literal, and back.
TEST_P(Scalar, HardwareRegisterFields) {
  Snippet t(
      "s_mov_b32 s1, 0xfffffff5\n s_setreg_b32 hwreg(HW_REG_MODE, 1, 3), s1\n"
      "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 4), 0xfffffffa\n s_getreg_b32 s2, hwreg(HW_REG_MODE)\n"
      "s_getreg_b32 s3, hwreg(HW_REG_MODE, 3, 5)",
      GetParam());
  t.wave().mode = 0x3f1;
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.s(2), 0x3abu);
  EXPECT_EQ(t.s(3), 0x15u);
  EXPECT_EQ(t.wave().mode, 0x3abu);
}

INSTANTIATE_TEST_SUITE_P(Levels, Scalar, testing::ValuesIn(levels()), [](const auto &p) {
  return std::string(p.param == Level::kBase   ? "base"
                     : p.param == Level::kAvx2 ? "avx2"
                                               : "avx512");
});

}  // namespace
}  // namespace flydsl::emu::test
