// How a dispatch runs: DispatchOptions completed from the environment.
#pragma once

#include <cstdint>
#include <string>

#include "emulator/engine/dispatch.h"

namespace flydsl::emu {

struct RunOptions {
  // FLYDSL_EMU_INSTRUCTION_LIMIT: wave-instructions a work-group may execute before it counts as
  // hung; 0: no limit.
  uint64_t instruction_limit = 0;
  // FLYDSL_EMU_TIMEOUT_S: seconds that a work-group may run; 0: no limit.
  double timeout_s = 0;
  MemoryModel memory = MemoryModel::kNominal;
  uint64_t seed = 1;
  uint32_t checks = 0;  // rows of checks::kAllChecks
  bool warn = false;    // checks report and the kernel goes on
  std::string error;    // not empty: a variable is wrong, and how
};

RunOptions run_options(const DispatchOptions &asked);

// Sequence of random numbers that is equal for equal seeds (splitmix64).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
  }
  uint64_t below(uint64_t n) { return next() % n; }

 private:
  uint64_t state_;
};

}  // namespace flydsl::emu
