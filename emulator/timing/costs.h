// What each instruction costs. One table of rules by mnemonic (costs.cc); an instruction without a
// rule is an error that names it.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string_view>
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
  kInternal,  // s_nop, s_waitcnt, s_barrier, s_setprio, s_sleep, s_endpgm: no unit
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
  kMessage,
  kWait,
  kBarrier,
  kPriority,
  kNop,
  kSleep,
  kEnd,
  kControl  // takes its slot and nothing else
};

// How long a result that was not there at the next slot keeps its readers waiting.
enum class Later : uint8_t {
  kNo,
  kMatrix,          // by the reader's role, matrix_results()
  kTranscendental,  // readers in the vector unit
  kScalar           // any reader of a scalar register written by a vector instruction
};

struct Cost {
  bool known = false;
  Category category = Category::kInternal;
  Unit unit = Unit::kControl;
  Later later = Later::kNo;
  bool waits_for_matrix = false;           // packed FP32, dot: not under an MFMA of the SIMD
  uint8_t port_slots = 1;                  // vector: slots until the next one may issue
  uint8_t passes = 0;                      // of a matrix instruction, 4 clocks each
  uint8_t vm_wait = 255, lgkm_wait = 255;  // kWait: the most in flight; 255: any
  uint8_t priority = 0;                    // kPriority
  uint16_t slots = 1;  // kNop, kSleep: of the wave. Later: slots until the result may be used
};

// Wait states after a matrix instruction until its result may be used, by what uses it.
struct MatrixResult {
  uint8_t vector = 0, memory = 0;     // read or overwritten by other instructions
  uint8_t source = 0;                 // A or B of a matrix instruction
  uint8_t same_c = 0, overlap_c = 0;  // C, of exactly these registers or others
};

// The rule for a mnemonic without encoding suffix, as far as the mnemonic decides; `known` is false
// where there is none.
Cost cost_of(std::string_view mnemonic, const Constants &constants);

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
  const MatrixResult &matrix_result(uint32_t op) const { return results_[op]; }

 private:
  [[noreturn]] void throw_unknown(uint32_t op) const;

  const Program &program_;
  std::vector<Cost> costs_;
  std::vector<checks::HazardInfo> registers_;
  std::vector<MatrixResult> results_;
};

}  // namespace flydsl::emu::timing
