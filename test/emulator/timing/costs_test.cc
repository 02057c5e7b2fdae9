#include "emulator/timing/costs.h"

#include <gmock/gmock.h>

#include "emulator/coverage/sweep.h"
#include "test/emulator/support/snippet.h"

namespace flydsl::emu::test {
namespace {

using testing::HasSubstr;
using timing::Category;
using timing::Constants;
using timing::Cost;
using timing::CostTable;
using timing::Unit;
using timing::UnknownCost;

std::shared_ptr<const Program> program_of(const std::vector<uint8_t> &code,
                                          const std::string &processor = "gfx950") {
  return decode_program_for(host_level(), processor, code.data(), code.size());
}

TEST(Costs, EveryExecutedInstructionHasOne) {
  int executed = 0;
  for (const char *processor : {"gfx950", "gfx942", "gfx90a"})
    for (const auto &[mnemonic, m] : coverage::sweep(processor)) {
      if (!m.refusal.empty()) continue;
      ++executed;
      EXPECT_TRUE(timing::cost_of(mnemonic, Constants()).known) << mnemonic;
    }
  EXPECT_GT(executed, 3000);
}

TEST(Costs, UnknownInstructionsAreNamed) {
  EXPECT_FALSE(timing::cost_of("v_frobnicate_f32", Constants()).known);
  EXPECT_FALSE(timing::cost_of("s_frobnicate", Constants()).known);
  const std::vector<uint8_t> code = assemble("v_mov_b32 v0, v1\nds_gws_init v0 gds\ns_endpgm");
  const auto program = program_of(code);
  const CostTable costs(*program, Constants());
  EXPECT_EQ(costs.cost(0).unit, Unit::kVector);
  try {
    costs.cost(1);
    FAIL() << "ds_gws_init has a cost";
  } catch (const UnknownCost &e) {
    EXPECT_THAT(e.what(), HasSubstr("`ds_gws_init v0 gds`"));
  }
}

TEST(Costs, OtherArchitecturesAreRefused) {
  for (const char *processor : {"gfx942", "gfx90a"}) {
    const std::vector<uint8_t> code = assemble("v_mov_b32 v0, v1\ns_endpgm", processor);
    const auto program = program_of(code, processor);
    try {
      const CostTable costs(*program, Constants());
      FAIL() << processor;
    } catch (const UnknownCost &e) {
      EXPECT_THAT(e.what(), HasSubstr(processor));
    }
  }
}

TEST(Costs, UnitsAndCategories) {
  const struct {
    const char *mnemonic;
    Unit unit;
    Category category;
  } kCases[] = {
      {"v_add_f32", Unit::kVector, Category::kVector},
      {"v_exp_f32", Unit::kTranscendental, Category::kVector},
      {"v_mfma_f32_32x32x16_bf16", Unit::kMatrix, Category::kVector},
      {"s_add_u32", Unit::kScalar, Category::kScalar},
      {"s_andn2_saveexec_b64", Unit::kScalar, Category::kScalar},
      {"s_buffer_load_dword", Unit::kScalarMemory, Category::kScalar},
      {"s_memtime", Unit::kScalarMemory, Category::kScalar},
      {"s_bitcmp1_b32", Unit::kScalar, Category::kScalar},
      {"ds_bpermute_b32", Unit::kLds, Category::kLds},
      {"buffer_inv", Unit::kVectorMemory, Category::kVectorMemory},
      {"scratch_load_dword", Unit::kVectorMemory, Category::kVectorMemory},
      {"s_cbranch_execz", Unit::kBranch, Category::kBranch},
      {"s_sendmsg", Unit::kMessage, Category::kBranch},
      {"s_barrier", Unit::kBarrier, Category::kInternal},
      {"s_endpgm", Unit::kEnd, Category::kInternal},
  };
  for (const auto &c : kCases) {
    const Cost cost = timing::cost_of(c.mnemonic, Constants());
    EXPECT_EQ(cost.unit, c.unit) << c.mnemonic;
    EXPECT_EQ(cost.category, c.category) << c.mnemonic;
  }
}

TEST(Costs, ExceptionsStandBeforeTheirFamilies) {
  const auto slots = [](const char *m) { return int(timing::cost_of(m, Constants()).port_slots); };
  EXPECT_EQ(slots("v_cvt_f16_f32"), 4);
  EXPECT_EQ(slots("v_cvt_f32_bf16"), 4);
  EXPECT_EQ(slots("v_cvt_pk_bf16_f32"), 1);
  EXPECT_EQ(slots("v_cvt_scalef32_pk_fp4_f32"), 1);
  EXPECT_EQ(slots("v_cvt_f32_f64"), 1);
  EXPECT_EQ(slots("v_rcp_f64"), 4);
  EXPECT_EQ(slots("v_rcp_f32"), 2);
  EXPECT_EQ(slots("v_permlane32_swap_b32"), 2);
  EXPECT_EQ(slots("v_perm_b32"), 1);
  EXPECT_EQ(slots("v_mul_lo_u32"), 1);
  EXPECT_TRUE(timing::cost_of("v_pk_fma_f32", Constants()).waits_for_matrix);
  EXPECT_FALSE(timing::cost_of("v_pk_fma_f16", Constants()).waits_for_matrix);
}

TEST(Costs, WaitCounters) {
  const std::vector<uint8_t> code = assemble(
      "s_waitcnt vmcnt(0)\ns_waitcnt vmcnt(37) lgkmcnt(5)\ns_waitcnt lgkmcnt(0)\n"
      "s_waitcnt expcnt(0)\ns_waitcnt vmcnt(62)\ns_nop 5\ns_setprio 2\ns_endpgm");
  const auto program = program_of(code);
  const CostTable costs(*program, Constants());
  const int kWanted[][2] = {{0, 255}, {37, 5}, {255, 0}, {255, 255}, {62, 255}};
  for (uint32_t op = 0; op < 5; ++op) {
    EXPECT_EQ(costs.cost(op).vm_wait, kWanted[op][0]) << op;
    EXPECT_EQ(costs.cost(op).lgkm_wait, kWanted[op][1]) << op;
  }
  EXPECT_EQ(costs.cost(5).slots, 6);
  EXPECT_EQ(costs.cost(6).priority, 2);
}

}  // namespace
}  // namespace flydsl::emu::test
