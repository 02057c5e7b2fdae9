// The interface of a check: an object per host thread that sees everything the waves of a
// work-group do. To add one: a file with its class, a row in all_checks.cc, a kernel that commits
// the fault and its twin without it under test/emulator/checks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "emulator/checks/instruction.h"
#include "emulator/engine/memory.h"

namespace flydsl::emu::checks {

enum class Space : uint8_t { kGlobal, kLds, kScratch };
enum class Use : uint8_t { kRead, kWrite, kAtomic };

// One address a lane of a memory instruction. Scalar loads are one lane, 0.
struct Access {
  Space space;
  Use use;
  bool scalar;
  uint8_t part;             // 1: the second address of DS read2 and write2
  uint32_t bytes;           // a lane
  uint64_t mask;            // lanes
  const uint64_t *address;  // [64]: device address; offset in LDS; offset in the lane's scratch
};

// What a check may look at besides the waves. Lives as long as the dispatch.
struct Context {
  const Kernel &kernel;
  const Dispatch &dispatch;
  const RegionSnapshot &memory;
  const InstructionTable &instructions;
};

class Check {
 public:
  virtual ~Check() = default;

  // Waves have their initial registers. The same object serves one work-group after the other.
  virtual void group_begin(const Group &, const std::vector<Wave *> &) {}
  // The order for one instruction: before (registers are as they were), access for each set of
  // addresses (data has not moved yet), after (registers and memory are changed).
  virtual void before(Wave &, const Op &, const Instruction &) {}
  virtual void access(Wave &, const Op &, const Instruction &, const Access &) {}
  virtual void after(Wave &, const Op &, const Instruction &) {}
  // A copy to LDS: lane l of mask writes `bytes` bytes at lds_offset + l * bytes when it lands.
  virtual void copy_issued(Wave &, const Op &, const Instruction &, const Copy &) {}
  virtual void copy_landed(Wave &, const Copy &) {}
  // Every wave that has not ended stands at the barrier and is about to go on.
  virtual void barrier_passed(const std::vector<Wave *> &) {}
  virtual void group_end(const std::vector<Wave *> &) {}
};

// The message of a check. `lane` < 0: not about one lane. The wave stops, unless checks only warn
// (FLYDSL_EMU_CHECKS_WARN=1); then each check reports an instruction once a dispatch.
void report(const char *check, Wave &wave, const Op &op, int lane, const std::string &what);

std::string hex(uint64_t x);

// All checks, by the names that FLYDSL_EMU_CHECKS takes.
struct Entry {
  const char *name;
  // State that the host threads of one dispatch share, or null.
  std::shared_ptr<void> (*make_shared_state)(const Context &);
  std::unique_ptr<Check> (*make)(const Context &, void *shared_state);
};
extern const Entry kAllChecks[];
extern const uint32_t kAllChecksCount;

// "all", "0", "" or names separated by commas to a mask of kAllChecks rows. False: unknown name.
bool parse_checks(const std::string &text, uint32_t &mask);
std::string check_names();  // " limits waitcnt ..."

}  // namespace flydsl::emu::checks
