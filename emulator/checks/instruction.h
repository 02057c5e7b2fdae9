// What checks know of an instruction besides its Op: its family, the counters it occupies, the
// registers it reads and writes, the memory it touches. Derived once per program, when a dispatch
// with checks first needs it.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "emulator/engine/program_impl.h"

namespace flydsl::emu::checks {

enum class Family : uint8_t {
  kScalar,
  kVector,
  kMatrix,
  kLds,           // DS_*
  kScalarMemory,  // S_LOAD_*, S_BUFFER_LOAD_*, S_MEMTIME
  kGlobal,
  kFlat,
  kScratch,
  kBuffer,
  kCache,  // write-backs and invalidations
  kBranch,
  kWait,
  kBarrier,
  kEnd,
  kMessage,
  kOther,
};

// Registers in one numbering: vectors 0-511 as in Operand::index, scalars from kFirstScalar with
// the numbers of Wave::s (so vcc, m0 and exec have theirs), then SCC.
constexpr uint32_t kFirstScalar = 512, kSccRegister = kFirstScalar + 128,
                   kRegisterCount = kSccRegister + 1;
constexpr uint32_t scalar_register(uint32_t s) {
  return kFirstScalar + s;
}

struct Registers {
  uint16_t first = 0;
  uint8_t count = 0;
  int8_t operand = -1;  // number of the operand in Op::o; -1: implicit (exec, vcc, scc, m0)
};

enum : uint16_t {
  kLoads = 1,
  kStores = 2,
  kAtomic = 4,
  kReturns = 8,  // an atomic that returns the old value
  kCopiesToLds = 16,
  kTwoAddresses = 32,  // DS read2, write2
  kStride64 = 64,      // ... st64
  kUnderExec = 128,    // disabled lanes are untouched
  kHighHalf = 256,     // d16_hi: the other half of a register
  kLowHalf = 512,      // d16 loads that keep the high half
};

struct Instruction {
  Family family = Family::kOther;
  uint8_t read_count = 0, write_count = 0;
  uint16_t flags = 0;
  uint32_t bytes = 0;  // per lane and address
  Registers reads[12], writes[6];
  std::string_view mnemonic;  // without encoding suffix; points into the program's text

  bool is_vector_memory() const {
    return family == Family::kGlobal || family == Family::kFlat || family == Family::kScratch ||
           family == Family::kBuffer;
  }
  bool has(uint16_t flag) const { return flags & flag; }
};

class InstructionTable {
 public:
  explicit InstructionTable(const Program &program);
  const Instruction &operator[](uint32_t op) const { return instructions_[op]; }

 private:
  std::vector<Instruction> instructions_;
};

// The table of `program`, made at the first call.
std::shared_ptr<const InstructionTable> instructions_of(const Program &program);

// With relative register numbers in force (MODE.GPR_IDX_EN) the registers are others than the text
// says; `moved` is the operation with M0 applied.
Instruction with_operands_of(const Instruction &instruction, const Op &op, const Op &moved);

// E.g. "v[4:7]", "a0", "s[2:3]", "vcc", "scc".
std::string register_name(uint32_t number);

}  // namespace flydsl::emu::checks
