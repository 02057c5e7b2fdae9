// The rules: after which instruction which other needs how many wait states, where the hardware
// does not wait.
#pragma once

#include "emulator/checks/hazard_info.h"

namespace flydsl::emu::checks {

// What has to be equal between the two instructions.
enum class Overlap : uint8_t {
  kNone,           // nothing: the pair is enough
  kDefUseScalar,   // the first writes a scalar register that the second reads
  kDefUseVector,   // ... vector register
  kDefAnyVector,   // ... reads or writes
  kDefLaneSelect,  // the first writes the second's lane select
  kDefExec,        // the first writes EXEC
  kDefVcc,         // the first writes VCC
  kDefVccOrExec,
  kDefM0,         // the first writes M0
  kStoreDataDef,  // the second overwrites the first's store data
  kHardwareRegister,
};

struct HazardRule {
  uint8_t archs;
  uint64_t first, first_not, second, second_not;  // classes: all of `first`, none of `first_not`
  Overlap overlap;
  uint8_t wait_states;
  const char *name;
};
extern const HazardRule kHazardRules[];
extern const int kHazardRuleCount;

// Roles that a matrix result plays in the second instruction.
enum class MatrixRole : uint8_t {
  kSourceAB,     // A, B or scale of a matrix instruction
  kSameC,        // C, exactly the registers of the result
  kOverlapC,     // C, other registers that overlap
  kVectorRead,   // of a vector ALU instruction
  kMemoryRead,   // address or data of a memory instruction
  kOverwrite,    // destination of a vector ALU or memory instruction
  kWriteAfterC,  // destination of a vector ALU instruction that the matrix instruction reads as C
};
enum class MatrixKind : uint8_t { kDgemm4, kDgemm16, kXdl, kSingle };

// Wait states that `first`, a matrix instruction, needs before `second` uses its result in `role`;
// 0 for none.
int matrix_wait_states(uint8_t arch, const HazardInfo &first, const HazardInfo &second,
                       MatrixRole role);
const char *matrix_role_name(MatrixRole role);

// The most wait states that any rule asks for.
constexpr int kMostWaitStates = 20;

}  // namespace flydsl::emu::checks
