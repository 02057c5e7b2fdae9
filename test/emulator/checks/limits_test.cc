// Check "limits".
#include "test/emulator/checks/check_launch.h"

namespace flydsl::emu::test {
namespace {

using testing::HasSubstr;

TEST_F(CheckLaunch, VectorRegisterBeyondTheDeclaredOnes) {
  EXPECT_EQ(fault_of("limits", "v_mov_b32 v1, v127\n v_accvgpr_write_b32 a127, v1"), "");
  const std::string fault = fault_of("limits", "v_mov_b32 v1, 0\n v_mov_b32 v2, v128");
  EXPECT_THAT(fault, HasSubstr("k: work-group (0,0,0) wave 0 at 0x4 `v_mov_b32_e32 v2, v128`: "
                               "limits: uses v128; the kernel declares 128 vector registers"));
  EXPECT_THAT(fault_of("limits", "global_load_dwordx4 v[126:129], v1, s[0:1]"),
              HasSubstr("limits: uses v129;"));
  EXPECT_THAT(fault_of("limits", "v_accvgpr_write_b32 a128, v1"),
              HasSubstr("limits: uses a128; the kernel declares 128 accumulation registers"));
}

TEST_F(CheckLaunch, RelativeRegisterNumbersCount) {
  const char *code = "s_set_gpr_idx_on s8, gpr_idx(SRC0)\n v_mov_b32 v1, v2\n s_set_gpr_idx_off";
  EXPECT_EQ(fault_of("limits", std::string("s_mov_b32 s8, 125\n") + code), "");
  EXPECT_THAT(fault_of("limits", std::string("s_mov_b32 s8, 126\n") + code),
              HasSubstr("limits: uses v128;"));
}

TEST_F(CheckLaunch, ChecksAreChosenByName) {
  const char *bad = "v_mov_b32 v2, v128";
  EXPECT_EQ(fault_of("0", bad), "");
  EXPECT_EQ(fault_of("", bad), "");
  EXPECT_THAT(fault_of("all", bad), HasSubstr("limits:"));
  EXPECT_THAT(fault_of("limit", bad), HasSubstr("FLYDSL_EMU_CHECKS is \"limit\""));
  setenv("FLYDSL_EMU_CHECKS", "limits", 1);
  options_.checks.reset();
  EXPECT_THAT(run(1).fault, HasSubstr("limits:"));
  unsetenv("FLYDSL_EMU_CHECKS");
  EXPECT_TRUE(run(1).ok);
}

TEST_F(CheckLaunch, WarningsLetTheKernelGoOn) {
  options_.checks_warn = true;
  dispatch_.grid[0] = 3;
  fault_of("limits",
           "s_load_dwordx2 s[6:7], s[0:1], 0x0\n v_mov_b32 v2, v128\n v_mov_b32 v3, 5\n"
           "s_waitcnt lgkmcnt(0)\n v_mov_b32 v1, 0\n global_store_dword v1, v3, s[6:7]");
  const DispatchResult r = run(1);
  EXPECT_TRUE(r.ok) << r.fault;
  EXPECT_EQ(out_[0], 5u);
  ASSERT_EQ(r.warnings.size(), 1u);  // of three work-groups
  EXPECT_THAT(r.warnings[0], HasSubstr("limits: uses v128"));
}

}  // namespace
}  // namespace flydsl::emu::test
