// Check "waitcnt": each fault beside its twin with the wait that covers it.
#include "test/emulator/checks/check_launch.h"

namespace flydsl::emu::test {
namespace {

using testing::HasSubstr;

class WaitcntCheck : public CheckLaunch {
 protected:
  // `code` has %s where the wait goes; `enough` covers the result and `missing` does not.
  void expect(std::string code, const char *enough, const char *missing,
              const std::string &complaint) {
    kernel_.lds_bytes = 4096;
    code = std::string(
               "s_load_dwordx2 s[6:7], s[0:1], 0x0\n v_lshlrev_b32 v1, 2, v0\n"
               "v_mov_b32 v8, 0\n v_mov_b32 v9, 0\n s_mov_b32 m0, 0\n"
               "s_waitcnt lgkmcnt(0)\n") +
           code;
    const size_t at = code.find("%s");
    EXPECT_EQ(fault_of("waitcnt", std::string(code).replace(at, 2, enough)), "") << code;
    EXPECT_THAT(fault_of("waitcnt", code.replace(at, 2, missing)), HasSubstr(complaint));
  }
};

TEST_F(WaitcntCheck, NamesThePlace) {
  expect("global_load_dword v2, v1, s[6:7]\n %s\n v_mov_b32 v3, v2", "s_waitcnt vmcnt(0)",
         "s_nop 0",
         "k: work-group (0,0,0) wave 0 at 0x28 `v_mov_b32_e32 v3, v2`: waitcnt: reads v2 while the "
         "result of `global_load_dword v2, v1, s[6:7]` at 0x1c is in flight; needs s_waitcnt "
         "vmcnt(0)");
}

TEST_F(WaitcntCheck, VectorMemoryOffByOne) {
  const char *loads =
      "global_load_dword v2, v1, s[6:7]\n global_load_dword v3, v1, s[6:7] offset:256\n"
      "global_store_dword v1, v0, s[6:7] offset:1024\n %s\n v_add_u32 v4, v2, v2";
  expect(loads, "s_waitcnt vmcnt(2)", "s_waitcnt vmcnt(3)", "needs s_waitcnt vmcnt(2)");
  expect(
      "s_mov_b32 s8, s6\n s_mov_b32 s9, s7\n s_mov_b32 s10, 64\n s_mov_b32 s11, 0\n"
      "buffer_load_dwordx2 v[2:3], off, s[8:11], 0\n %s\n v_mov_b32 v4, v3",
      "s_waitcnt vmcnt(0)", "s_waitcnt vmcnt(1)", "reads v3 while");
  expect("global_atomic_add v2, v1, v0, s[6:7] sc0\n %s\n v_mov_b32 v4, v2", "s_waitcnt vmcnt(0)",
         "s_waitcnt lgkmcnt(0)", "reads v2 while");
}

TEST_F(WaitcntCheck, LdsOffByOne) {
  expect("ds_read_b32 v2, v1\n ds_read_b64 v[4:5], v8\n %s\n v_mov_b32 v3, v2",
         "s_waitcnt lgkmcnt(1)", "s_waitcnt lgkmcnt(2)", "needs s_waitcnt lgkmcnt(1)");
  expect("ds_bpermute_b32 v2, v1, v0\n %s\n v_mov_b32 v3, v2", "s_waitcnt lgkmcnt(0)",
         "s_waitcnt vmcnt(0)", "reads v2 while");
}

// Two scalar loads: the first is covered by lgkmcnt(0) only.
TEST_F(WaitcntCheck, ScalarLoadsReturnInAnyOrder) {
  expect("s_load_dword s8, s[6:7], 0x0\n s_load_dword s9, s[6:7], 0x4\n %s\n s_mov_b32 s10, s8",
         "s_waitcnt lgkmcnt(0)", "s_waitcnt lgkmcnt(1)", "reads s8 while");
  // An LDS result is still covered by its own order.
  expect(
      "ds_read_b32 v2, v1\n s_load_dword s9, s[6:7], 0x4\n ds_read_b32 v4, v1\n %s\n"
      "v_mov_b32 v3, v2",
      "s_waitcnt lgkmcnt(1)", "s_waitcnt lgkmcnt(2)", "reads v2 while");
}

TEST_F(WaitcntCheck, OverwritingCounts) {
  expect("global_load_dword v2, v1, s[6:7]\n %s\n v_mov_b32 v2, 1", "s_waitcnt vmcnt(0)", "s_nop 0",
         "overwrites v2 while");
  // A younger load of the same kind arrives later.
  EXPECT_EQ(fault_of("waitcnt",
                     "s_load_dwordx2 s[6:7], s[0:1], 0x0\n v_lshlrev_b32 v1, 2, v0\n"
                     "s_waitcnt lgkmcnt(0)\n global_load_dword v2, v1, s[6:7]\n"
                     "global_load_dword v2, v1, s[6:7] offset:4\n s_waitcnt vmcnt(0)"),
            "");
}

TEST_F(WaitcntCheck, FlatWaitsForWhatItTouched) {
  expect("v_mov_b32 v2, s6\n v_mov_b32 v3, s7\n flat_load_dword v4, v[2:3]\n %s\n v_mov_b32 v5, v4",
         "s_waitcnt vmcnt(0)", "s_waitcnt lgkmcnt(0)", "needs s_waitcnt vmcnt(0)");
  expect(
      "s_mov_b64 s[8:9], src_shared_base\n v_mov_b32 v3, s9\n v_mov_b32 v2, 0\n"
      "flat_load_dword v4, v[2:3]\n %s\n v_mov_b32 v5, v4",
      "s_waitcnt vmcnt(0) lgkmcnt(0)", "s_waitcnt vmcnt(0)", "needs s_waitcnt lgkmcnt(0)");
}

TEST_F(WaitcntCheck, CopyToLdsIsReadBeforeItsWait) {
  const char *code =
      "global_load_lds_dword v1, s[6:7]\n global_load_lds_dword v1, s[6:7] offset:256\n %s\n"
      "ds_read_b32 v2, v1\n s_waitcnt vmcnt(0) lgkmcnt(0)";
  expect(code, "s_waitcnt vmcnt(1)", "s_waitcnt vmcnt(2)",
         "lane 0 at 0x30 `ds_read_b32 v2, v1`: waitcnt: reads LDS at 0x0 while the copy "
         "`global_load_lds_dword v1, s[6:7]` at 0x1c of wave 0 is in flight; wave 0 needs "
         "s_waitcnt vmcnt(1) before");
}

// Wave 1 reads what wave 0 copied: wave 0 has to wait before the barrier.
TEST_F(WaitcntCheck, CopyOfAnotherWave) {
  work_items_ = 128;
  expect(
      "v_and_b32 v1, 0xff, v1\n v_readfirstlane_b32 s8, v0\n s_cmp_lg_u32 s8, 0\n"
      "s_cbranch_scc1 reader\n global_load_lds_dword v1, s[6:7]\n %s\n s_barrier\n s_endpgm\n"
      "reader: s_barrier\n ds_read_b32 v2, v1\n s_waitcnt lgkmcnt(0)",
      "s_waitcnt vmcnt(0)", "s_nop 0", "wave 1 lane 0");
}

}  // namespace
}  // namespace flydsl::emu::test
