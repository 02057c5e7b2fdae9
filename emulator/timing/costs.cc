#include "emulator/timing/costs.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "emulator/checks/hazard_rules.h"
#include "emulator/checks/instruction.h"

namespace flydsl::emu::timing {
namespace {

using checks::HazardInfo;
using checks::MatrixRole;
using checks::Units;

enum class Rate : uint8_t { kFull, kTwice, kQuarter, kFp64, kTranscendental };

struct Rule {
  const char *prefix;
  Unit unit;
  Rate rate = Rate::kFull;
};

// The first prefix that fits counts: exceptions stand before their family. Rates of vector
// instructions: LLVM SISchedule.td, SIDPGFX950FullSpeedModel: what takes four issues there is kQuarter; fp32
// and fp16 transcendentals have a constant of their own.
constexpr Rule kRules[] = {
    // Without a unit
    {"s_nop", Unit::kNop},
    {"s_sleep", Unit::kSleep},
    {"s_waitcnt", Unit::kWait},
    {"s_barrier", Unit::kBarrier},
    {"s_setprio", Unit::kPriority},
    {"s_endpgm", Unit::kEnd},
    {"s_sethalt", Unit::kControl},
    {"s_icache_inv", Unit::kControl},
    {"s_incperflevel", Unit::kControl},
    {"s_decperflevel", Unit::kControl},
    {"s_ttracedata", Unit::kControl},
    {"s_wakeup", Unit::kControl},
    {"s_trap", Unit::kControl},
    {"s_set_gpr_idx_", Unit::kScalar},
    // Branches and messages
    {"s_branch", Unit::kBranch},
    {"s_cbranch_", Unit::kBranch},
    {"s_call_", Unit::kBranch},
    {"s_setpc_", Unit::kBranch},
    {"s_swappc_", Unit::kBranch},
    {"s_sendmsg", Unit::kMessage},
    // Scalar memory
    {"s_load_", Unit::kScalarMemory},
    {"s_buffer_", Unit::kScalarMemory},
    {"s_store_", Unit::kScalarMemory},
    {"s_scratch_", Unit::kScalarMemory},
    {"s_atomic_", Unit::kScalarMemory},
    {"s_dcache_", Unit::kScalarMemory},
    {"s_atc_probe", Unit::kScalarMemory},
    {"s_memtime", Unit::kScalarMemory},
    {"s_memrealtime", Unit::kScalarMemory},
    // Scalar ALU
    {"s_abs", Unit::kScalar},
    {"s_add", Unit::kScalar},
    {"s_and", Unit::kScalar},
    {"s_ashr_", Unit::kScalar},
    {"s_bcnt", Unit::kScalar},
    {"s_bf", Unit::kScalar},
    {"s_bit", Unit::kScalar},
    {"s_brev_", Unit::kScalar},
    {"s_cmov", Unit::kScalar},
    {"s_cmp", Unit::kScalar},
    {"s_cselect_", Unit::kScalar},
    {"s_ff", Unit::kScalar},
    {"s_flbit_", Unit::kScalar},
    {"s_getpc_", Unit::kScalar},
    {"s_getreg_", Unit::kScalar},
    {"s_setreg_", Unit::kScalar},
    {"s_lsh", Unit::kScalar},
    {"s_max_", Unit::kScalar},
    {"s_min_", Unit::kScalar},
    {"s_mov", Unit::kScalar},
    {"s_mul", Unit::kScalar},
    {"s_nand_", Unit::kScalar},
    {"s_nor_", Unit::kScalar},
    {"s_not_", Unit::kScalar},
    {"s_or", Unit::kScalar},
    {"s_pack_", Unit::kScalar},
    {"s_quadmask_", Unit::kScalar},
    {"s_sext_", Unit::kScalar},
    {"s_sub", Unit::kScalar},
    {"s_wqm_", Unit::kScalar},
    {"s_xnor_", Unit::kScalar},
    {"s_xor_", Unit::kScalar},
    // Memory
    {"ds_", Unit::kLds},
    {"buffer_", Unit::kVectorMemory},
    {"tbuffer_", Unit::kVectorMemory},
    {"global_", Unit::kVectorMemory},
    {"flat_", Unit::kVectorMemory},
    {"scratch_", Unit::kVectorMemory},
    // Matrix
    {"v_mfma_", Unit::kMatrix},
    {"v_smfmac_", Unit::kMatrix},
    // Transcendental
    {"v_rcp_f64", Unit::kTranscendental, Rate::kQuarter},
    {"v_rsq_f64", Unit::kTranscendental, Rate::kQuarter},
    {"v_sqrt_f64", Unit::kTranscendental, Rate::kQuarter},
    {"v_exp_", Unit::kTranscendental, Rate::kTranscendental},
    {"v_log_", Unit::kTranscendental, Rate::kTranscendental},
    {"v_rcp_", Unit::kTranscendental, Rate::kTranscendental},
    {"v_rsq_", Unit::kTranscendental, Rate::kTranscendental},
    {"v_sqrt_", Unit::kTranscendental, Rate::kTranscendental},
    {"v_sin_", Unit::kTranscendental, Rate::kTranscendental},
    {"v_cos_", Unit::kTranscendental, Rate::kTranscendental},
    // fp64 arithmetic
    {"v_add_f64", Unit::kVector, Rate::kFp64},
    {"v_mul_f64", Unit::kVector, Rate::kFp64},
    {"v_fma_f64", Unit::kVector, Rate::kFp64},
    {"v_fmac_f64", Unit::kVector, Rate::kFp64},
    // Conversions: those of one fp32 value at a quarter of the rate, the others at full rate
    {"v_cvt_f16_f32", Unit::kVector, Rate::kQuarter},
    {"v_cvt_f32_bf", Unit::kVector, Rate::kQuarter},
    {"v_cvt_f32_fp8", Unit::kVector, Rate::kQuarter},
    {"v_cvt_f32_f16", Unit::kVector, Rate::kQuarter},
    {"v_cvt_f32_i32", Unit::kVector, Rate::kQuarter},
    {"v_cvt_f32_u32", Unit::kVector, Rate::kQuarter},
    {"v_cvt_i32_f32", Unit::kVector, Rate::kQuarter},
    {"v_cvt_u32_f32", Unit::kVector, Rate::kQuarter},
    {"v_cvt_flr_", Unit::kVector, Rate::kQuarter},
    {"v_cvt_rpi_", Unit::kVector, Rate::kQuarter},
    {"v_cvt_off_", Unit::kVector, Rate::kQuarter},
    {"v_cvt_pk_f32_", Unit::kVector, Rate::kQuarter},
    {"v_cvt_pk_fp8_", Unit::kVector, Rate::kQuarter},
    {"v_cvt_pk_bf8_", Unit::kVector, Rate::kQuarter},
    {"v_cvt_sr_fp8_", Unit::kVector, Rate::kQuarter},
    {"v_cvt_sr_bf8_", Unit::kVector, Rate::kQuarter},
    {"v_cvt_", Unit::kVector},
    {"v_mqsad_", Unit::kVector, Rate::kQuarter},
    {"v_qsad_", Unit::kVector, Rate::kQuarter},
    // Two results
    {"v_permlane16_swap_", Unit::kVector, Rate::kTwice},
    {"v_permlane32_swap_", Unit::kVector, Rate::kTwice},
    {"v_swap_", Unit::kVector, Rate::kTwice},
    // The rest of the vector ALU
    {"v_accvgpr_", Unit::kVector},
    {"v_add", Unit::kVector},
    {"v_align", Unit::kVector},
    {"v_and_", Unit::kVector},
    {"v_ashr", Unit::kVector},
    {"v_bcnt_", Unit::kVector},
    {"v_bf", Unit::kVector},
    {"v_bitop3_", Unit::kVector},
    {"v_ceil_", Unit::kVector},
    {"v_clrexcp", Unit::kVector},
    {"v_cmp", Unit::kVector},
    {"v_cndmask_", Unit::kVector},
    {"v_cube", Unit::kVector},
    {"v_div_", Unit::kVector},
    {"v_dot", Unit::kVector},
    {"v_ff", Unit::kVector},
    {"v_floor_", Unit::kVector},
    {"v_fma", Unit::kVector},
    {"v_fract_", Unit::kVector},
    {"v_frexp_", Unit::kVector},
    {"v_ldexp_", Unit::kVector},
    {"v_lerp_", Unit::kVector},
    {"v_lsh", Unit::kVector},
    {"v_mac_", Unit::kVector},
    {"v_mad", Unit::kVector},
    {"v_max", Unit::kVector},
    {"v_mbcnt_", Unit::kVector},
    {"v_med3_", Unit::kVector},
    {"v_min", Unit::kVector},
    {"v_mov_", Unit::kVector},
    {"v_msad_", Unit::kVector},
    {"v_mul_", Unit::kVector},
    {"v_nop", Unit::kVector},
    {"v_not_", Unit::kVector},
    {"v_or", Unit::kVector},
    {"v_pack_", Unit::kVector},
    {"v_perm_", Unit::kVector},
    {"v_pk_", Unit::kVector},
    {"v_prng_", Unit::kVector},
    {"v_readfirstlane_", Unit::kVector},
    {"v_readlane_", Unit::kVector},
    {"v_rndne_", Unit::kVector},
    {"v_sad_", Unit::kVector},
    {"v_sat_pk_", Unit::kVector},
    {"v_sub", Unit::kVector},
    {"v_trig_preop_", Unit::kVector},
    {"v_trunc_", Unit::kVector},
    {"v_writelane_", Unit::kVector},
    {"v_xad_", Unit::kVector},
    {"v_xnor_", Unit::kVector},
    {"v_xor_", Unit::kVector},
};

// Not while a matrix instruction of the SIMD runs (llvm#233721).
constexpr const char *kNotUnderMatrix[] = {"v_pk_add_f32", "v_pk_mul_f32", "v_pk_fma_f32",
                                           "v_pk_mov_b32", "v_dot"};

bool starts(std::string_view s, std::string_view prefix) {
  return s.substr(0, prefix.size()) == prefix;
}

Category category_of(Unit unit) {
  switch (unit) {
    case Unit::kVector:
    case Unit::kTranscendental:
    case Unit::kMatrix:
      return Category::kVector;
    case Unit::kScalar:
    case Unit::kScalarMemory:
      return Category::kScalar;
    case Unit::kVectorMemory:
      return Category::kVectorMemory;
    case Unit::kLds:
      return Category::kLds;
    case Unit::kBranch:
    case Unit::kMessage:
      return Category::kBranch;
    default:
      return Category::kInternal;
  }
}

double clocks_of(Rate rate, const Constants &c) {
  switch (rate) {
    case Rate::kTwice:
      return 2 * c.valu_clocks;
    case Rate::kQuarter:
      return c.quarter_rate_clocks;
    case Rate::kFp64:
      return c.fp64_clocks;
    case Rate::kTranscendental:
      return c.transcendental_clocks;
    case Rate::kFull:
      break;
  }
  return c.valu_clocks;
}

uint16_t slots_of(double clocks, const Constants &c) {
  return uint16_t(std::max(1.0, std::ceil(clocks / c.slot_clocks)));
}

// The widest operand that a matrix instruction reads as A or B, in bytes a lane.
uint32_t widest_source(const HazardInfo &info) {
  uint32_t registers = 0;
  for (int n = 0; n < info.uses; ++n)
    if (n != info.source_c && info.use[n].vector())
      registers = std::max<uint32_t>(registers, info.use[n].count);
  return registers * 4;
}

MatrixResult result_of(const HazardInfo &info) {
  HazardInfo vector, memory, matrix;
  vector.classes = checks::kIsValu;
  memory.classes = checks::kIsVmem;
  matrix.classes = info.classes;  // chains are of one kind
  const auto wait = [&](const HazardInfo &second, MatrixRole role) {
    return uint8_t(checks::matrix_wait_states(checks::kGfx950, info, second, role));
  };
  MatrixResult r;
  r.vector = wait(vector, MatrixRole::kVectorRead);
  r.memory = wait(memory, MatrixRole::kMemoryRead);
  r.source = wait(matrix, MatrixRole::kSourceAB);
  r.same_c = wait(matrix, MatrixRole::kSameC);
  r.overlap_c = wait(matrix, MatrixRole::kOverlapC);
  return r;
}

// Registers that the text does not name.
void add_implicit(std::string_view mnemonic, HazardInfo &info) {
  const auto use = [&](uint32_t scalar) {
    if (info.uses < 8) info.use[info.uses++] = Units{uint16_t(checks::kFirstScalar + scalar), 2};
  };
  if (starts(mnemonic, "s_cbranch_vcc")) use(kVcc);
  if (starts(mnemonic, "s_cbranch_exec")) use(kExec);
}

bool writes_scalar(const HazardInfo &info) {
  return std::any_of(info.def, info.def + info.defs, [](Units u) { return !u.vector(); });
}

}  // namespace

const char *category_name(Category category) {
  static const char *const kNames[] = {"vector", "scalar", "vector memory",
                                       "lds",    "branch", "internal"};
  return kNames[unsigned(category)];
}

Cost cost_of(std::string_view mnemonic, const Constants &constants) {
  Cost cost;
  for (const Rule &rule : kRules) {
    if (!starts(mnemonic, rule.prefix)) continue;
    cost.known = true;
    cost.unit = rule.unit;
    cost.category = category_of(rule.unit);
    cost.port_slots = uint8_t(slots_of(clocks_of(rule.rate, constants), constants));
    if (rule.unit == Unit::kTranscendental) {
      cost.later = Later::kTranscendental;
      cost.slots =
          uint16_t(cost.port_slots + slots_of(constants.transcendental_extra_latency, constants));
    }
    break;
  }
  for (const char *prefix : kNotUnderMatrix) cost.waits_for_matrix |= starts(mnemonic, prefix);
  return cost;
}

CostTable::CostTable(const Program &program, const Constants &constants) : program_(program) {
  const uint32_t count = uint32_t(program.ops.size());
  for (const Op &op : program.ops)
    if (op.run && op.architecture != Architecture::kGfx950)
      throw UnknownCost(std::string("the timing model knows gfx950; this code is for ") +
                        (op.architecture == Architecture::kGfx942 ? "gfx942" : "gfx90a"));
  const auto instructions = checks::instructions_of(program);
  costs_.resize(count);
  registers_.resize(count);
  results_.resize(count);
  for (uint32_t n = 0; n < count; ++n) {
    if (program.refusals.count(n)) continue;
    const Op &op = program.ops[n];
    const std::string_view mnemonic = (*instructions)[n].mnemonic;
    HazardInfo &info = registers_[n];
    info = checks::hazard_info(op, program.text_of(n), checks::kGfx950);
    add_implicit(mnemonic, info);
    Cost &cost = costs_[n] = cost_of(mnemonic, constants);
    switch (cost.unit) {
      case Unit::kMatrix:
        cost.passes = info.passes;
        cost.later = Later::kMatrix;
        cost.port_slots =
            uint8_t(constants.vector_after_matrix_slots + (widest_source(info) + 15) / 16);
        results_[n] = result_of(info);
        break;
      case Unit::kVector:
        if (!writes_scalar(info)) break;
        cost.later = Later::kScalar;
        cost.slots = slots_of(constants.valu_scalar_latency, constants);
        break;
      case Unit::kNop:
        cost.slots = info.wait_states;
        break;
      case Unit::kSleep:
        cost.slots = slots_of((op.imm & 127) * constants.sleep_clocks, constants);
        break;
      case Unit::kPriority:
        cost.priority = uint8_t(op.imm & 3);
        break;
      case Unit::kWait: {
        // Fields of gfx9's s_waitcnt: LLVM AMDGPUBaseInfo.
        const uint32_t imm = uint32_t(op.imm), vm = (imm & 15) | (imm >> 14 & 3) << 4;
        cost.vm_wait = vm == 63 ? 255 : uint8_t(vm);
        cost.lgkm_wait = (imm >> 8 & 15) == 15 ? 255 : uint8_t(imm >> 8 & 15);
        break;
      }
      default:
        break;
    }
  }
}

void CostTable::throw_unknown(uint32_t op) const {
  throw UnknownCost("the timing model has no cost for `" + program_.text_of(op) + "`");
}

}  // namespace flydsl::emu::timing
