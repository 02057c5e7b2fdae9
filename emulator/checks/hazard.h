// Hazards: pairs of instructions that the hardware does not keep apart by itself. Every executed
// path is checked; a stretch of code without a taken branch is checked once and then skipped.
//
// Distance counts as LLVM's hazard recogniser counts: each instruction in between is one wait
// state, s_nop n is n + 1.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "emulator/checks/hazard_info.h"

namespace flydsl::emu::checks {

struct Hazard {
  uint32_t first = 0, second = 0;  // operations
  int wait_states = 0, needed = 0;
  const char *what = nullptr;
};

// What is known of one program: shared by all waves and threads, never changed.
class HazardProgram {
 public:
  HazardProgram(const Program &program, uint8_t arch);

  const HazardInfo &info(uint32_t op) const { return infos_[op]; }
  uint8_t arch() const { return arch_; }
  // A second instruction may be at fault only if it is not purely scalar bookkeeping.
  bool second(uint32_t op) const { return second_[op]; }

  // The worst hazard between `first` and `second` at this distance, into `worst` when worse than
  // what is there. `matrix_seen`: registers of `second` whose last matrix writer was met already,
  // one bit a use, then a def.
  void judge(uint32_t first, uint32_t second, int distance, uint32_t &matrix_seen,
             Hazard &worst) const;

 private:
  void judge_matrix(uint32_t first, uint32_t second, int distance, uint32_t &seen,
                    Hazard &worst) const;
  void judge_dot(uint32_t first, uint32_t second, int distance, Hazard &worst) const;

  uint8_t arch_;
  std::vector<HazardInfo> infos_;
  std::vector<bool> first_, second_;
  friend class HazardTracker;
};

// The stretches of code that a wave executed last.
class HazardTracker {
 public:
  void start() { count_ = 0; }

  // Call before each instruction of the wave. True when it completes a hazard, described in
  // `found`.
  bool step(const HazardProgram &program, uint32_t op, std::vector<uint8_t> &known,
            std::unordered_set<uint64_t> &known_paths, Hazard &found) {
    if (count_ && op == stretch_[0].last + 1) {
      stretch_[0].last = op;
    } else {
      jump(op);
    }
    // Instructions before it in its stretch: with this many, what came before the stretch is out of
    // reach.
    constexpr uint32_t kReach = 20;
    const bool straight = op - stretch_[0].first >= kReach;
    if (straight && known[op]) return false;
    return check(program, op, straight, known, known_paths, found);
  }

 private:
  struct Stretch {
    uint32_t first, last;
  };
  static constexpr int kStretches = 20;

  void jump(uint32_t op);
  bool check(const HazardProgram &program, uint32_t op, bool straight, std::vector<uint8_t> &known,
             std::unordered_set<uint64_t> &known_paths, Hazard &found) const;
  bool walk(const HazardProgram &program, uint32_t op, Hazard &found) const;

  int count_ = 0;
  Stretch stretch_[kStretches];  // newest first
};

// "two wait states ..., the first at ...": the report.
std::string describe(const Program &program, const Hazard &hazard);

}  // namespace flydsl::emu::checks
