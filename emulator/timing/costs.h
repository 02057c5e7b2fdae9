// What each instruction costs: one row of rules by mnemonic (costs.cc). An instruction without a
// rule is an error that names it.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "emulator/checks/hazard_info.h"
#include "emulator/engine/program_impl.h"
#include "emulator/timing/constants.h"

namespace flydsl::emu::timing {

// An instruction, or an architecture, that the model does not know.
struct UnknownCost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Per slot and SIMD at most one instruction of each category issues, each from another wave.
enum class Category : uint8_t {
  kVector,        // vector ALU, matrix instructions included
  kScalar,        // scalar ALU and scalar memory
  kVectorMemory,  // buffer, global, flat, scratch
  kLds,
  kBranch,    // branches, messages
  kInternal,  // s_nop, s_waitcnt, s_barrier, s_setprio, s_sleep: no unit
  kCount
};
const char *category_name(Category category);

enum class Unit : uint8_t {
  kVector,
  kTranscendental,
  kMatrix,
  kScalar,
  kScalarMemory,
  kVectorMemory,
  kLds,
  kBranch,
  kWait,
  kBarrier,
  kPriority,
  kNop,
  kSleep,
  kEnd,
  kOther  // takes its slot and nothing else
};

struct Cost {
  bool known = false;
  Category category = Category::kInternal;
  Unit unit = Unit::kOther;
  uint8_t passes = 0;             // of a matrix instruction, 4 clocks each
  bool waits_for_matrix = false;  // packed FP32, dot: not while the matrix unit is busy
  uint16_t busy_slots = 1;        // of the unit, or of the wave for kNop
  uint16_t latency_slots = 1;     // until a vector or scalar instruction may use the result
  uint8_t port_slots = 1;         // matrix: vector port held
  uint8_t vm_wait = 255, lgkm_wait = 255;  // kWait: most in flight; 255: any
  uint8_t priority = 0;                    // kPriority
  bool scalar_result = false;              // latency counts for scalar registers only
};

// Costs and registers of every operation of a program.
class CostTable {
 public:
  // Throws UnknownCost for an architecture other than gfx950. Instructions without a rule throw
  // when they are asked for.
  CostTable(const Program &program, const Constants &constants);

  const Cost &cost(uint32_t op) const {
    if (!costs_[op].known) throw_unknown(op);
    return costs_[op];
  }
  const checks::HazardInfo &registers(uint32_t op) const { return registers_[op]; }

 private:
  [[noreturn]] void throw_unknown(uint32_t op) const;

  const Program &program_;
  std::vector<Cost> costs_;
  std::vector<checks::HazardInfo> registers_;
};

}  // namespace flydsl::emu::timing
