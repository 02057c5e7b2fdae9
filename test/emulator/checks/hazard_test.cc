// Each rule: the pair one wait state too close is named, and its twin with the wait state is clean.
#include "emulator/checks/hazard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "test/emulator/support/snippet.h"

namespace flydsl::emu::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// Straight-line code of one processor, and the hazards in it.
class Code {
 public:
  explicit Code(std::string processor) : processor_(std::move(processor)) {}

  // Adds lines, one instruction each; returns the operation of the last.
  uint32_t add(const std::string &lines) {
    text_ += lines;
    count_ += uint32_t(std::count(lines.begin(), lines.end(), '\n'));
    return count_ - 1;
  }
  // Adds what is out of every rule's reach.
  void separate() { add("s_nop 15\ns_nop 15\n"); }

  // By the second instruction.
  std::map<uint32_t, std::string> hazards() const {
    const std::vector<uint8_t> code = assemble(text_, processor_);
    const auto program = decode_program_for(host_level(), processor_, code.data(), code.size());
    const checks::HazardProgram rules(*program, checks::hazard_arch(program->ops[0].architecture));
    checks::HazardTracker tracker;
    std::vector<uint8_t> known(program->ops.size(), 0);
    std::unordered_set<uint64_t> paths;
    checks::Hazard found;
    std::map<uint32_t, std::string> all;
    for (uint32_t op = 0; op < count_; ++op)
      if (tracker.step(rules, op, known, paths, found)) all[op] = describe(*program, found);
    return all;
  }

 private:
  std::string processor_, text_;
  uint32_t count_ = 0;
};

std::string wait_states(int n) {
  std::string s;
  for (; n > 0; n -= 16) s += "s_nop " + std::to_string(std::min(n, 16) - 1) + "\n";
  return s;
}

struct Pair {
  const char *processors;  // separated by blanks
  const char *first, *second;
  int needed;
  const char *says;
};

// One wait state too few is named; the twin with the last wait state, be it s_nop or an independent
// instruction, is not.
void expect_pairs(const std::vector<Pair> &pairs) {
  for (const char *processor : {"gfx90a", "gfx942", "gfx950"}) {
    Code code(processor);
    std::map<uint32_t, const Pair *> bad;
    for (const Pair &p : pairs) {
      if (!std::strstr(p.processors, processor)) continue;
      const std::string first = std::string(p.first) + "\n", second = std::string(p.second) + "\n";
      bad[code.add(first + wait_states(p.needed - 1) + second)] = &p;
      code.separate();
      code.add(first + wait_states(p.needed) + second);
      code.separate();
      code.add(first);
      for (int n = 0; n < p.needed; ++n) code.add("v_mov_b32 v200, v201\n");
      code.add(second);
      code.separate();
    }
    const auto found = code.hazards();
    for (const auto &[op, pair] : bad) {
      SCOPED_TRACE(std::string(processor) + ": " + pair->first + "; " + pair->second);
      ASSERT_TRUE(found.count(op));
      EXPECT_THAT(found.at(op), HasSubstr(pair->says));
      EXPECT_THAT(found.at(op),
                  HasSubstr("needs " + std::to_string(pair->needed) + " wait states"));
      EXPECT_THAT(found.at(op), HasSubstr("there are " + std::to_string(pair->needed - 1)));
    }
    for (const auto &[op, what] : found)
      EXPECT_TRUE(bad.count(op)) << processor << " op " << op << ": " << what;
  }
}

std::map<uint32_t, std::string> hazards_in(const std::string &lines,
                                           const char *processor = "gfx950") {
  Code code(processor);
  code.add(lines);
  return code.hazards();
}

const char *kAll = "gfx90a gfx942 gfx950", *kNew = "gfx942 gfx950";

TEST(Hazards, Plain) {
  expect_pairs({
      {kAll, "v_readfirstlane_b32 s4, v0", "global_load_dword v1, v2, s[4:5]", 5, "vector memory"},
      {kAll, "v_cmp_eq_u32 s[4:5], v0, v1", "buffer_load_dword v1, v2, s[8:11], s5 offen", 5,
       "vector memory"},
      {kAll, "v_mov_b32 v1, v0",
       "v_mov_b32_dpp v2, v1 quad_perm:[0,1,2,3] row_mask:0xf bank_mask:0xf", 2, "DPP"},
      {kAll, "v_cmpx_eq_u32 vcc, v0, v1",
       "v_mov_b32_dpp v2, v3 quad_perm:[0,1,2,3] row_mask:0xf bank_mask:0xf", 5, "EXEC"},
      {kAll, "v_cmp_eq_u32 vcc, v0, v1", "v_div_fmas_f32 v2, v3, v4, v5", 4, "v_div_fmas"},
      {kAll, "v_readfirstlane_b32 s4, v0", "v_readlane_b32 s6, v9, s4", 4, "lane select"},
      {kAll, "v_readfirstlane_b32 s4, v0", "v_writelane_b32 v9, 1, s4", 4, "lane select"},
      {kAll, "s_setreg_b32 hwreg(HW_REG_MODE), s0", "s_getreg_b32 s1, hwreg(HW_REG_MODE)", 2,
       "s_getreg"},
      {kAll, "s_setreg_b32 hwreg(HW_REG_MODE), s0", "s_setreg_imm32_b32 hwreg(HW_REG_MODE), 0", 2,
       "s_setreg"},
      {kAll, "s_mov_b32 m0, s0", "s_movrels_b32 s1, s2", 1, "M0"},
      {kAll, "s_mov_b32 m0, s0", "s_sendmsg sendmsg(MSG_INTERRUPT)", 1, "M0"},
      {kAll, "s_add_u32 m0, s0, s1", "ds_read_addtid_b32 v1", 1, "M0"},
      {kAll, "s_mov_b32 m0, s0", "buffer_load_dword v1, s[8:11], 0 offen lds", 1, "copy to LDS"},
      {kNew, "s_mov_b32 m0, s0", "global_load_lds_dword v[0:1], off", 1, "copy to LDS"},
      {"gfx90a", "global_store_dwordx4 v[0:1], v[4:7], off", "v_mov_b32 v5, 0", 1, "store data"},
      {kNew, "global_store_dwordx4 v[0:1], v[4:7], off", "v_mov_b32 v5, 0", 2, "store data"},
      {kNew, "buffer_store_dwordx3 v[4:6], v0, s[8:11], 0 offen", "v_mov_b32 v6, 0", 2,
       "store data"},
      {kNew, "v_exp_f32 v1, v0", "v_add_f32 v2, v1, v1", 1, "transcendental"},
      {kNew, "v_rcp_f64 v[2:3], v[0:1]", "v_mov_b32 v4, v3", 1, "transcendental"},
      {kNew,
       "v_add_u32_sdwa v1, v0, v0 dst_sel:BYTE_0 dst_unused:UNUSED_PAD src0_sel:DWORD "
       "src1_sel:DWORD",
       "v_mov_b32 v2, v1", 1, "shifted into part"},
      {kNew, "v_mad_u16 v1, v0, v0, v0 op_sel:[0,0,0,1]", "v_mov_b32 v1, 0", 1,
       "shifted into part"},
      {"gfx942 gfx950", "v_cvt_sr_fp8_f32 v1, v0, v2 op_sel:[0,0,1,0]", "v_mov_b32 v3, v1", 1,
       "shifted into part"},
      {"gfx950", "v_cvt_scalef32_pk_fp4_f32 v1, v0, v2, v3", "v_mov_b32 v4, v1", 1,
       "shifted into part"},
      {kNew, "v_cmp_eq_u32 s[4:5], v0, v1", "v_cndmask_b32_e64 v2, v3, v4, s[4:5]", 2,
       "scalar register"},
      {kNew, "v_cmp_eq_u32 vcc, v0, v1", "v_cndmask_b32 v2, v3, v4, vcc", 2, "scalar register"},
      {kNew, "v_mov_b32 v1, v0", "v_readlane_b32 s4, v1, 3", 1, "v_readlane"},
      {kNew, "v_mov_b32 v1, v0", "v_readfirstlane_b32 s4, v1", 1, "v_readlane"},
      {kNew, "v_cmpx_eq_u32 vcc, v0, v1", "v_writelane_b32 v9, s6, 1", 4, "EXEC"},
      {kAll, "v_cmp_eq_u32 vcc, v0, v1", "v_mov_b32 v2, src_vccz", 5, "vccz"},
      {"gfx950", "v_mov_b32 v1, v0", "v_permlane32_swap_b32 v1, v2", 2, "permlane"},
      {"gfx950", "v_mov_b32 v1, v0", "v_permlane16_swap_b32 v2, v1", 2, "permlane"},
      {"gfx950", "v_cmpx_eq_u32 vcc, v0, v1", "v_permlane32_swap_b32 v3, v2", 4, "v_cmpx"},
      {"gfx90a", "v_cmpx_eq_u32 vcc, v0, v1", "v_mfma_f32_4x4x4f16 a[0:3], v[4:5], v[6:7], a[0:3]",
       4, "EXEC"},
      {kNew, "v_cmpx_eq_u32 vcc, v0, v1", "v_mfma_f32_4x4x4_16b_f16 a[0:3], v[4:5], v[6:7], a[0:3]",
       4, "EXEC"},
      {"gfx90a", "v_mov_b32 v4, v0", "v_mfma_f32_4x4x4f16 a[0:3], v[4:5], v[6:7], a[0:3]", 2,
       "read by a matrix instruction"},
      {kNew, "v_mov_b32 v4, v0", "v_mfma_f32_4x4x4_16b_f16 a[0:3], v[4:5], v[6:7], a[0:3]", 2,
       "read by a matrix instruction"},
      {kAll, "v_dot2_f32_f16 v1, v2, v3, v4", "v_dot2_f32_f16 v5, v1, v3, v4", 3, "dot product"},
      {kAll, "v_dot2_f32_f16 v1, v2, v3, v4", "v_mov_b32 v5, v1", 3, "dot product"},
      {kAll, "v_dot2_f32_f16 v1, v2, v3, v4", "global_store_dword v[6:7], v1, off", 3,
       "dot product"},
      {kAll, "v_dot2_f32_f16 v1, v2, v3, v4", "v_mov_b32 v1, 0", 3, "dot product"},
  });
}

// The tables in comments of LLVM's GCNHazardRecognizer give these numbers for each count of passes.
TEST(Hazards, Matrix) {
  expect_pairs({
      // fp16, 16x16x16: 8 passes on gfx90a, 4 later; 32x32x8: 16 and 8
      {"gfx90a", "v_mfma_f32_16x16x16f16 v[0:3], v[4:5], v[6:7], v[0:3]", "v_add_f32 v8, v0, v0",
       11, "vector ALU"},
      {"gfx942", "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3]", "v_add_f32 v8, v3, v3",
       7, "vector ALU"},
      {"gfx950", "v_mfma_f32_16x16x32_f16 v[0:3], v[4:7], v[8:11], v[0:3]", "v_add_f32 v12, v0, v0",
       8, "vector ALU"},
      {"gfx950", "v_mfma_f32_32x32x16_bf16 v[0:15], v[16:19], v[20:23], v[0:15]",
       "v_add_f32 v30, v15, v15", 12, "vector ALU"},
      {"gfx950", "v_mfma_f32_32x32x16_bf16 a[0:15], v[16:19], v[20:23], a[0:15]",
       "v_accvgpr_read_b32 v30, a7", 12, "vector ALU"},
      {"gfx950", "v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[16:23], v[24:31], v[0:15]",
       "v_add_f32 v40, v0, v0", 20, "vector ALU"},
      {"gfx950", "v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[16:19], v[24:27], v[0:15] cbsz:4 blgp:4",
       "v_add_f32 v40, v0, v0", 12, "vector ALU"},
      {"gfx950",
       "v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[16:23], v[24:27], v[0:3], v32, v33 "
       "op_sel_hi:[0,0,0] blgp:4",
       "global_store_dword v[40:41], v0, off", 12, "memory"},
      {"gfx942", "v_mfma_f32_32x32x2_f32 v[0:15], v16, v17, v[0:15]", "v_add_f32 v30, v0, v0", 18,
       "vector ALU"},
      {"gfx942", "v_mfma_f32_32x32x4_xf32 v[0:15], v[16:17], v[18:19], v[0:15]",
       "v_add_f32 v30, v0, v0", 11, "vector ALU"},
      {"gfx942", "v_mfma_f32_32x32x4_2b_f16 v[0:31], v[32:33], v[34:35], v[0:31]",
       "ds_write_b32 v40, v31", 19, "memory"},
      {kNew, "v_mfma_f32_4x4x4_16b_f16 v[0:3], v[4:5], v[6:7], v[0:3]", "v_mov_b32 v0, 0", 5,
       "overwritten"},
      {"gfx90a", "v_mfma_f32_32x32x8f16 v[0:15], v[16:17], v[18:19], v[0:15]", "v_mov_b32 v0, 0",
       19, "overwritten"},
      {kAll, "v_mfma_f64_16x16x4f64 v[0:7], v[8:9], v[10:11], v[0:7]", "v_mov_b32 v0, 0", 11,
       "overwritten"},
      {kAll, "v_mfma_f64_16x16x4f64 v[0:7], v[8:9], v[10:11], v[0:7]",
       "global_store_dword v[20:21], v0, off", 18, "memory"},
      {"gfx950", "v_mfma_f64_16x16x4f64 v[0:7], v[8:9], v[10:11], v[0:7]", "v_mov_b32 v20, v0", 19,
       "vector ALU"},
      {kAll, "v_mfma_f64_4x4x4f64 v[0:1], v[8:9], v[10:11], v[0:1]", "v_mov_b32 v20, v0", 6,
       "vector ALU"},
      {kAll, "v_mfma_f64_4x4x4f64 v[0:1], v[8:9], v[10:11], v[0:1]",
       "v_fma_f64 v[20:21], v[22:23], v[22:23], v[22:23]", 2, "v_fma_f64"},
      // as A or B
      {"gfx90a", "v_mfma_f32_16x16x16f16 v[0:3], v[4:5], v[6:7], v[0:3]",
       "v_mfma_f32_16x16x16f16 v[8:11], v[0:1], v[6:7], v[8:11]", 11, "read as A, B"},
      {"gfx942", "v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], v[0:15]",
       "v_mfma_f32_16x16x16_f16 v[24:27], v[20:21], v[2:3], v[24:27]", 11, "read as A, B"},
      {"gfx950", "v_mfma_f32_32x32x16_f16 v[0:15], v[16:19], v[20:23], v[0:15]",
       "v_mfma_f32_16x16x32_f16 v[24:27], v[0:3], v[20:23], v[24:27]", 12, "read as A, B"},
      {kNew, "v_mfma_f32_16x16x4_f32 v[0:3], v4, v5, v[0:3]",
       "v_mfma_f32_16x16x4_f32 v[8:11], v0, v5, v[8:11]", 10, "read as A, B"},
      {"gfx950", "v_mfma_f32_16x16x32_f16 v[0:3], v[4:7], v[8:11], v[0:3]",
       "v_mfma_scale_f32_16x16x128_f8f6f4 v[20:23], v[32:39], v[40:47], v[20:23], v0, v50 "
       "op_sel_hi:[0,0,0]",
       8, "read as A, B"},
      // as an overlapping C
      {"gfx90a", "v_mfma_f32_16x16x16f16 v[0:3], v[4:5], v[6:7], v[0:3]",
       "v_mfma_f32_32x32x8f16 v[0:15], v[16:17], v[18:19], v[0:15]", 8, "overlapping C"},
      {"gfx942", "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3]",
       "v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], v[0:15]", 5, "overlapping C"},
      {"gfx950", "v_mfma_f32_16x16x32_f16 v[0:3], v[4:7], v[8:11], v[0:3]",
       "v_mfma_f32_32x32x16_f16 v[0:15], v[16:19], v[20:23], v[0:15]", 6, "overlapping C"},
      {"gfx90a", "v_mfma_f64_16x16x4f64 v[0:7], v[8:9], v[10:11], v[0:7]",
       "v_mfma_f64_16x16x4f64 v[12:19], v[8:9], v[10:11], v[2:9]", 9, "overlapping C"},
      {"gfx950", "v_mfma_f64_16x16x4f64 v[0:7], v[8:9], v[10:11], v[0:7]",
       "v_mfma_f64_16x16x4f64 v[12:19], v[20:21], v[22:23], v[2:9]", 17, "overlapping C"},
      // as the same C
      {kAll, "v_mfma_f64_4x4x4f64 v[0:1], v[8:9], v[10:11], v[0:1]",
       "v_mfma_f64_4x4x4f64 v[0:1], v[8:9], v[10:11], v[0:1]", 4, "read as C"},
      {kNew, "v_mfma_f32_4x4x4_16b_f16 v[0:3], v[4:5], v[6:7], v[0:3]",
       "v_mfma_f32_4x4x4_16b_f16 v[0:3], v[4:5], v[6:7], v[0:3]", 2, "read as C"},
      // C overwritten
      {"gfx90a", "v_mfma_f32_16x16x16f16 v[0:3], v[4:5], v[6:7], v[12:15]", "v_mov_b32 v12, 0", 7,
       "while it is read"},
      {"gfx942", "v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], v[20:35]", "v_mov_b32 v35, 0",
       7, "while it is read"},
      {"gfx950", "v_mfma_f32_16x16x32_f16 v[0:3], v[4:7], v[8:11], v[12:15]", "v_mov_b32 v12, 0", 3,
       "while it is read"},
  });
}

TEST(HazardPaths, AccumulationIntoTheSameRegistersIsForwarded) {
  const std::string line = "v_mfma_f32_32x32x16_f16 v[0:15], v[16:19], v[20:23], v[0:15]\n";
  EXPECT_THAT(hazards_in(line + line), IsEmpty());
}

TEST(HazardPaths, OtherRegistersAndScalarUsesAreFree) {
  EXPECT_THAT(hazards_in("v_exp_f32 v1, v0\nv_exp_f32 v2, v1\nv_mov_b32 v3, v4\n"), IsEmpty());
  EXPECT_THAT(hazards_in("v_readfirstlane_b32 s4, v0\ns_add_u32 s5, s4, s4\n"), IsEmpty());
  EXPECT_THAT(hazards_in("v_exp_f32 v1, v0\nv_add_f32 v2, v1, v1\n", "gfx90a"), IsEmpty());
  EXPECT_THAT(hazards_in("buffer_store_dwordx4 v[4:7], v0, s[8:11], s3 offen\nv_mov_b32 v6, 0\n"),
              IsEmpty());
}

// A hazard whose two ends are joined by a taken branch, found even when both stretches were seen
// clean before.
TEST(HazardPaths, AcrossABranch) {
  const std::string text =
      "v_mov_b32 v110, v111\n"                                     // 0
      "v_mfma_f32_16x16x32_f16 v[0:3], v[4:7], v[8:11], v[0:3]\n"  // 1
      "s_branch 20\n" +                                            // 2
      [] {
        std::string s;
        for (int i = 0; i < 20; ++i) s += "v_mov_b32 v100, v101\n";  // 3-22
        return s;
      }() +
      "v_add_f32 v12, v0, v0\n";  // 23
  const std::vector<uint8_t> code = assemble(text + "s_endpgm");
  const auto program = decode_program_for(host_level(), "gfx950", code.data(), code.size());
  const checks::HazardProgram hazards(*program, checks::kGfx950);
  checks::HazardTracker tracker;
  std::vector<uint8_t> known(program->ops.size(), 0);
  std::unordered_set<uint64_t> paths;
  checks::Hazard found;
  tracker.start();
  for (uint32_t op = 3; op <= 23; ++op)
    EXPECT_FALSE(tracker.step(hazards, op, known, paths, found));
  tracker.start();
  for (uint32_t op = 0; op <= 2; ++op) EXPECT_FALSE(tracker.step(hazards, op, known, paths, found));
  ASSERT_TRUE(tracker.step(hazards, 23, known, paths, found));
  EXPECT_EQ(found.first, 1u);
  EXPECT_EQ(found.second, 23u);
  EXPECT_EQ(found.wait_states, 1);
  EXPECT_EQ(found.needed, 8);
}

}  // namespace
}  // namespace flydsl::emu::test
