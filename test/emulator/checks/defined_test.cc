// Check "defined": each fault beside a twin that is free of it. out_ stands for hipMalloc'd memory of
// which the first 256 words are written.
#include "emulator/memory/definedness.h"
#include "test/emulator/checks/check_launch.h"

namespace flydsl::emu::test {
namespace {

using testing::HasSubstr;

class DefinedCheck : public CheckLaunch {
 protected:
  std::string with_memory(const std::string &code) {
    build(
        "s_load_dwordx2 s[6:7], s[0:1], 0x0\n v_lshlrev_b32 v1, 2, v0\n s_mov_b32 m0, 0\n"
        "s_waitcnt lgkmcnt(0)\n" +
        code);
    declare_registers(128, 128);
    kernel_.lds_bytes = 4096;
    dispatch_.block[0] = work_items_;
    const auto begin = reinterpret_cast<uint64_t>(out_.data());
    Definedness &definedness = Definedness::instance();
    definedness.fresh(begin, out_.size() * 4);
    definedness.define(begin, 1024);
    options_.checks = "defined";
    const std::string fault = run(1).fault;
    definedness.forget(begin);
    return fault;
  }
  void passes(const std::string &code) { EXPECT_EQ(with_memory(code), ""); }
  void fails(const std::string &code, const std::string &report) {
    EXPECT_THAT(with_memory(code), testing::AllOf(HasSubstr("defined: " + report),
                                                  HasSubstr(" that was never written")));
  }
};

TEST_F(DefinedCheck, Addresses) {
  passes("global_load_dword v2, v1, s[6:7]");
  fails("global_load_dword v2, v3, s[6:7]", "takes its address from v3");
  fails("global_load_dword v2, v1, s[20:21]", "takes its address from s20");
  fails("ds_read_b32 v2, v5", "takes its address from v5");
  fails("s_load_dword s8, s[30:31], 0x0", "takes its address from s30");
  EXPECT_THAT(with_memory("v_cmp_gt_u32 vcc, 8, v0\n v_mov_b32 v3, v7\n s_mov_b64 s[8:9], exec\n"
                          "s_and_b64 exec, exec, vcc\n v_mov_b32 v3, v1\n s_mov_b64 exec, s[8:9]\n"
                          "global_load_dword v2, v3, s[6:7]"),
              HasSubstr("k: work-group (0,0,0) wave 0 lane 8 at 0x2c `global_load_dword v2, v3, "
                        "s[6:7]`: defined: takes its address from v3"));
  passes(
      "v_cmp_gt_u32 vcc, 8, v0\n s_and_b64 exec, exec, vcc\n v_mov_b32 v3, v1\n"
      "global_load_dword v2, v3, s[6:7]");
}

TEST_F(DefinedCheck, Branches) {
  passes("s_cmp_eq_u32 s2, 0\n s_cbranch_scc1 end\nend:");
  fails("s_cmp_eq_u32 s22, 0\n s_cbranch_scc1 end\nend:", "branches on scc");
  fails("v_cmp_eq_u32 vcc, v9, v0\n s_cbranch_vccz end\nend:", "branches on vcc_lo");
  // Lane 0 decides, whatever lane 1 holds.
  passes("v_writelane_b32 v9, 0, 0\n v_cmp_eq_u32 vcc, v9, v0\n s_cbranch_vccz end\nend:");
}

TEST_F(DefinedCheck, Exec) {
  fails("v_cmp_eq_u32 vcc, v9, v0\n s_and_saveexec_b64 s[8:9], vcc", "sets EXEC from data");
  fails("v_cmpx_eq_u32 s[8:9], v9, v0", "sets EXEC from data");
  fails("s_mov_b64 exec, s[40:41]", "sets EXEC from data");
  passes(
      "v_cmp_eq_u32 vcc, v9, v0\n v_cmp_gt_u32 s[8:9], 0, v0\n s_and_b64 vcc, vcc, s[8:9]\n"
      "s_and_saveexec_b64 s[8:9], vcc");
}

TEST_F(DefinedCheck, Stores) {
  passes("global_store_dword v1, v0, s[6:7]");
  fails("global_store_dword v1, v5, s[6:7]", "stores v5 to");
  fails("v_mov_b32 v2, 0\n global_store_dwordx2 v1, v[2:3], s[6:7]", "stores v3 to");
  fails("v_add_f32 v2, v0, v9\n global_store_dword v1, v2, s[6:7]", "stores v2 to");
  fails("v_mov_b32 v2, 1\n global_atomic_add v1, v9, s[6:7]", "combines v9 to");
  // Half of an element: compilers do that.
  passes("v_and_b32 v2, 0xffff, v9\n global_store_dword v1, v2, s[6:7]");
  passes("v_mov_b32 v9, 0\n v_cvt_pk_bf16_f32 v2, v9, v10\n global_store_dword v1, v2, s[6:7]");
  fails("v_and_b32 v2, 0xffff, v9\n global_store_short v1, v2, s[6:7]", "stores v2 to");
  passes("v_and_b32 v2, 0xffff, v9\n global_store_short_d16_hi v1, v2, s[6:7]");
}

TEST_F(DefinedCheck, GlobalMemory) {
  passes(
      "global_load_dword v2, v1, s[6:7] offset:768\n s_waitcnt vmcnt(0)\n"
      "global_store_dword v1, v2, s[6:7]");
  fails(
      "global_load_dword v2, v1, s[6:7] offset:1024\n s_waitcnt vmcnt(0)\n"
      "global_store_dword v1, v2, s[6:7]",
      "stores v2 to");
  // What a kernel wrote is written.
  passes(
      "global_store_dword v1, v0, s[6:7] offset:1024\n s_waitcnt vmcnt(0)\n"
      "global_load_dword v2, v1, s[6:7] offset:1024\n s_waitcnt vmcnt(0)\n"
      "global_store_dword v1, v2, s[6:7]");
  fails(
      "s_load_dword s8, s[6:7], 0x400\n s_waitcnt lgkmcnt(0)\n s_cmp_eq_u32 s8, 0\n"
      "s_cbranch_scc1 end\nend:",
      "branches on scc");
}

TEST_F(DefinedCheck, Lds) {
  const std::string tail =
      "ds_read_b32 v2, v1\n s_waitcnt lgkmcnt(0)\n global_store_dword v1, v2, s[6:7]";
  fails(tail, "stores v2 to");
  passes("ds_write_b32 v1, v0\n" + tail);
  fails("ds_write_b32 v1, v9\n" + tail, "stores v2 to");
  passes("ds_write_b8 v1, v0\n" + tail);  // one byte of each element
  passes("global_load_lds_dword v1, s[6:7]\n s_waitcnt vmcnt(0)\n" + tail);
  fails(
      "global_load_lds_dword v1, s[6:7] offset:1024\n s_waitcnt vmcnt(0)\n v_add_u32 v1, 1024, "
      "v1\n" +
          tail,
      "stores v2 to");
}

// Undefined bits do not spread further than they have to.
TEST_F(DefinedCheck, Arithmetic) {
  const std::string tail = "\n global_load_dword v20, v2, s[6:7]";
  passes("v_and_b32 v2, 0, v9" + tail);
  passes("v_and_b32 v3, 0xffff0000, v9\n v_lshrrev_b32 v2, 16, v3\n v_and_b32 v2, 0, v2" + tail);
  passes("v_lshlrev_b32 v3, 16, v9\n v_and_b32 v2, 0xff, v3" + tail);
  passes("v_lshl_or_b32 v3, v9, 16, v1\n v_bfe_u32 v2, v3, 0, 8" + tail);
  passes("v_mov_b32 v10, v1\n v_mad_u64_u32 v[12:13], s[8:9], v0, 4, v[10:11]\n v_mov_b32 v2, v12" +
         tail);
  passes(
      "v_cmp_eq_u32 vcc, 0, v0\n v_cndmask_b32 v3, v1, v9, vcc\n"
      "v_cndmask_b32 v2, v3, v1, vcc" +
      tail);
  fails("v_cmp_eq_u32 vcc, 0, v0\n v_cndmask_b32 v2, v1, v9, vcc" + tail,
        "takes its address from v2");
  passes(
      "s_mov_b32 s8, 0x07060100\n v_perm_b32 v3, v1, v9, s8\n s_mov_b32 s8, 0x0c0c0302\n"
      "v_perm_b32 v2, v9, v3, s8\n v_and_b32 v2, 0xfc, v2" +
      tail);
  passes(
      "v_mov_b32 v3, v9\n v_writelane_b32 v3, 0, 5\n v_readlane_b32 s8, v3, 5\n"
      "v_mov_b32 v2, s8" +
      tail);
  fails("v_mov_b32 v3, v9\n v_readlane_b32 s8, v3, 5\n v_mov_b32 v2, s8" + tail,
        "takes its address from v2");
  passes("v_mov_b32 v3, v1\n v_mov_b32 v4, v9\n v_swap_b32 v3, v4\n v_mov_b32 v2, v4" + tail);
  passes(
      "s_mov_b64 s[8:9], exec\n s_mov_b64 exec, 1\n v_mov_b32 v3, 0\n s_mov_b64 exec, s[8:9]\n"
      "v_mov_b32 v4, 0\n ds_bpermute_b32 v2, v4, v3\n s_waitcnt lgkmcnt(0)" +
      tail);
}

// Row 3 of A and column 5 of C are undefined; so is row 3 and column 5 of D, and nothing else.
TEST_F(DefinedCheck, MatrixRowsAndColumns) {
  const std::string product =
      "v_mov_b32 v4, 1.0\n v_mov_b32 v5, 1.0\n v_cmp_ne_u32 vcc, 3, v0\n s_mov_b64 s[8:9], exec\n"
      "s_and_b64 exec, exec, vcc\n v_mov_b32 v6, 0\n s_mov_b64 exec, s[8:9]\n v_mov_b32 v7, 0\n"
      "v_mov_b32 v8, 0\n v_mov_b32 v9, 0\n v_mov_b32 v10, 0\n v_mov_b32 v11, 0\n"
      "v_mfma_f32_16x16x16_f16 v[8:11], v[6:7], v[4:5], v[8:11]\n s_nop 15\n";
  // Rows 4 (l / 16) + register: row 3 is register 3 of lanes 0-15.
  passes(product +
         "global_store_dword v1, v8, s[6:7]\n global_store_dword v1, v10, s[6:7]\n"
         "v_cmp_lt_u32 vcc, 15, v0\n s_and_b64 exec, exec, vcc\n"
         "global_store_dword v1, v11, s[6:7]");
  fails(product + "global_store_dword v1, v11, s[6:7]", "stores v11 to");
}

// A reservation of 64 GiB costs nothing until it is touched.
TEST(Definedness, IsSparse) {
  Definedness d;
  const uint64_t begin = uint64_t(1) << 45, middle = begin + (uint64_t(40) << 30);
  d.fresh(begin, uint64_t(64) << 30);
  uint8_t u[8];
  const auto read = [&](uint64_t address) { return Definedness::View(d).read(address, 8, u); };
  EXPECT_TRUE(read(middle - 4));
  EXPECT_THAT(u, testing::Each(0xff));
  d.define(middle, 100);
  EXPECT_TRUE(read(middle - 4));
  EXPECT_THAT(u, testing::ElementsAre(0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0));
  EXPECT_FALSE(read(middle));
  EXPECT_FALSE(read(begin + (uint64_t(64) << 30)));  // not an allocation
  d.copy(begin + 3, middle + 96, 8);
  EXPECT_TRUE(read(begin + 3));
  EXPECT_THAT(u, testing::ElementsAre(0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff));
  // Whole pages become defined without a mask a byte.
  d.define(begin, uint64_t(1) << 30);
  EXPECT_FALSE(read(begin + 12345));
  d.forget(begin);
  EXPECT_FALSE(read(middle - 4));
}

}  // namespace
}  // namespace flydsl::emu::test
