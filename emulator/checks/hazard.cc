#include "emulator/checks/hazard.h"

#include <algorithm>

#include "emulator/checks/hazard_rules.h"

namespace flydsl::emu::checks {
namespace {

constexpr Units kExecUnits{kFirstScalar + kExec, 2}, kVccUnits{kFirstScalar + kVcc, 2},
    kM0Units{kFirstScalar + kM0, 1};

bool defines(const HazardInfo &info, Units u) {
  return std::any_of(info.def, info.def + info.defs, [&](Units d) { return d.overlaps(u); });
}
bool defines_used(const HazardInfo &first, const HazardInfo &second, bool vector) {
  for (int n = 0; n < second.uses; ++n)
    if (second.use[n].vector() == vector && defines(first, second.use[n])) return true;
  return false;
}
bool defines_defined(const HazardInfo &first, const HazardInfo &second) {
  for (int n = 0; n < second.defs; ++n)
    if (second.def[n].vector() && defines(first, second.def[n])) return true;
  return false;
}

bool overlap(Overlap kind, const HazardInfo &first, const HazardInfo &second) {
  switch (kind) {
    case Overlap::kNone:
      return true;
    case Overlap::kDefUseScalar:
      return defines_used(first, second, false);
    case Overlap::kDefUseVector:
      return defines_used(first, second, true);
    case Overlap::kDefAnyVector:
      return defines_used(first, second, true) || defines_defined(first, second);
    case Overlap::kDefLaneSelect:
      return second.lane_select >= 0 && defines(first, second.use[second.lane_select]);
    case Overlap::kDefExec:
      return defines(first, kExecUnits);
    case Overlap::kDefVcc:
      return defines(first, kVccUnits);
    case Overlap::kDefVccOrExec:
      return defines(first, kVccUnits) || defines(first, kExecUnits);
    case Overlap::kDefM0:
      return defines(first, kM0Units);
    case Overlap::kStoreDataDef:
      return defines(second, first.store_data);
    case Overlap::kHardwareRegister:
      return first.hardware_register == second.hardware_register;
  }
  return false;
}

void note(Hazard &worst, uint32_t first, uint32_t second, int distance, int needed,
          const char *what) {
  if (needed - distance <= worst.needed - worst.wait_states) return;
  worst = {first, second, distance, needed, what};
}

}  // namespace

HazardProgram::HazardProgram(const Program &program, uint8_t arch) : arch_(arch) {
  const uint32_t count = uint32_t(program.ops.size());
  infos_.reserve(count);
  for (uint32_t op = 0; op < count; ++op)
    infos_.push_back(hazard_info(program.ops[op], program.text_of(op), arch));
  uint64_t firsts = 0, seconds = kIsValu | kIsVmem | kIsDs;
  for (int r = 0; r < kHazardRuleCount; ++r) {
    firsts |= kHazardRules[r].first;
    seconds |= kHazardRules[r].second;
  }
  firsts &= ~uint64_t(kIsSalu);
  for (const HazardInfo &i : infos_) {
    first_.push_back((i.classes & firsts) || (i.classes & kIsSalu && defines(i, kM0Units)));
    second_.push_back(i.classes & seconds);
  }
}

void HazardProgram::judge(uint32_t first, uint32_t second, int distance, uint32_t &matrix_seen,
                          Hazard &worst) const {
  if (!first_[first]) return;
  const HazardInfo &a = infos_[first], &b = infos_[second];
  for (int r = 0; r < kHazardRuleCount; ++r) {
    const HazardRule &rule = kHazardRules[r];
    if (distance >= rule.wait_states || !(rule.archs & arch_)) continue;
    if ((a.classes & rule.first) != rule.first || (a.classes & rule.first_not)) continue;
    if ((b.classes & rule.second) != rule.second || (b.classes & rule.second_not)) continue;
    if (overlap(rule.overlap, a, b))
      note(worst, first, second, distance, rule.wait_states, rule.name);
  }
  if (a.classes & kIsMfma) judge_matrix(first, second, distance, matrix_seen, worst);
  if (a.classes & kIsDot) judge_dot(first, second, distance, worst);
}

// Matrix instructions of a wave run in order, so only the last writer of each operand counts.
void HazardProgram::judge_matrix(uint32_t first, uint32_t second, int distance, uint32_t &seen,
                                 Hazard &worst) const {
  const HazardInfo &a = infos_[first], &b = infos_[second];
  const Units result = a.def[0];
  const bool matrix = b.classes & kIsMfma, memory = b.classes & (kIsVmem | kIsDs);
  if (!matrix && !memory && !(b.classes & kIsValu)) return;
  auto judge_role = [&](MatrixRole role) {
    const int needed = matrix_wait_states(arch_, a, b, role);
    if (distance < needed) note(worst, first, second, distance, needed, matrix_role_name(role));
  };
  for (int n = 0; n < b.uses; ++n) {
    if (seen >> n & 1 || !b.use[n].overlaps(result)) continue;
    seen |= 1u << n;
    if (!matrix)
      judge_role(memory ? MatrixRole::kMemoryRead : MatrixRole::kVectorRead);
    else if (n != b.source_c)
      judge_role(MatrixRole::kSourceAB);
    else
      judge_role(b.use[n] == result ? MatrixRole::kSameC : MatrixRole::kOverlapC);
  }
  if (matrix) return;
  for (int n = 0; n < b.defs; ++n) {
    const Units d = b.def[n];
    if (!(seen >> (8 + n) & 1) && d.overlaps(result)) {
      seen |= 1u << (8 + n);
      judge_role(MatrixRole::kOverwrite);
    }
    if (!(seen >> (16 + n) & 1) && a.source_c >= 0 && a.use[a.source_c].overlaps(d)) {
      seen |= 1u << (16 + n);
      judge_role(MatrixRole::kWriteAfterC);
    }
  }
}

// LLVM checkMAIVALUHazards: dot products forward only to the accumulator of the same instruction.
void HazardProgram::judge_dot(uint32_t first, uint32_t second, int distance, Hazard &worst) const {
  constexpr int kNeeded = 3;
  const HazardInfo &a = infos_[first], &b = infos_[second];
  if (distance >= kNeeded || b.classes & kIsMfma || !(b.classes & (kIsValu | kIsVmem | kIsDs)))
    return;
  const bool same = a.mnemonic == b.mnemonic;
  bool hit = !same && defines_defined(a, b);
  for (int n = 0; n < b.uses; ++n) hit |= defines(a, b.use[n]) && !(same && n == b.source_c);
  if (hit)
    note(worst, first, second, distance, kNeeded,
         "the result of a dot product used by another instruction");
}

void HazardTracker::jump(uint32_t op) {
  std::copy_backward(stretch_, stretch_ + kStretches - 1, stretch_ + kStretches);
  stretch_[0] = {op, op};
  count_ = std::min(count_ + 1, kStretches);
}

bool HazardTracker::check(const HazardProgram &program, uint32_t op, bool straight,
                          std::vector<uint8_t> &known, std::unordered_set<uint64_t> &known_paths,
                          Hazard &found) const {
  if (straight) {
    if (walk(program, op, found)) return true;
    known[op] = 1;
    return false;
  }
  if (!program.second(op)) return false;
  // The path into `op`, as far back as it matters. Two paths with equal hashes would hide a hazard;
  // 64 bits of it make that unlikely.
  uint64_t path = op + 1;
  uint32_t length = 0;
  for (int n = 0; n < count_ && length < kMostWaitStates; ++n) {
    path = (path ^ stretch_[n].first) * 0x9e3779b97f4a7c15ull;
    path = (path ^ (path >> 29) ^ stretch_[n].last) * 0xbf58476d1ce4e5b9ull;
    length += stretch_[n].last - stretch_[n].first + 1;
  }
  if (known_paths.count(path)) return false;
  if (walk(program, op, found)) return true;
  known_paths.insert(path);
  return false;
}

bool HazardTracker::walk(const HazardProgram &program, uint32_t op, Hazard &found) const {
  if (!program.second(op)) return false;
  found = {};
  uint32_t seen = 0;
  int distance = 0;
  for (int n = 0; n < count_; ++n) {
    // The newest instruction of the newest stretch is `op` itself.
    uint32_t at = stretch_[n].last + (n ? 1 : 0);
    while (at > stretch_[n].first && distance < kMostWaitStates) {
      --at;
      program.judge(at, op, distance, seen, found);
      distance += program.info(at).wait_states;
    }
    if (distance >= kMostWaitStates) break;
  }
  return found.needed > 0;
}

std::string describe(const Program &program, const Hazard &hazard) {
  return std::string(hazard.what) + " needs " + std::to_string(hazard.needed) +
         " wait states (instructions in between, or s_nop), there are " +
         std::to_string(hazard.wait_states) + "; the first is `" + program.text_of(hazard.first) +
         "` at " + offset_and_line(program, hazard.first);
}

}  // namespace flydsl::emu::checks
