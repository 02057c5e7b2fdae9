// Results in flight of one wave, by the counters that s_waitcnt waits for (CDNA3 ISA, "Manually
// inserted wait states": vmcnt and the LDS share of lgkmcnt return in order, scalar loads in any).
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "emulator/checks/instruction.h"

namespace flydsl::emu::checks {

// Fields of s_waitcnt, gfx9 encoding (LLVM AMDGPUBaseInfo).
struct WaitFields {
  uint32_t vm, lgkm;
};
inline WaitFields wait_fields(const Op &op) {
  const uint32_t imm = uint32_t(op.imm);
  return {(imm & 15) | (imm >> 14 & 3) << 4, imm >> 8 & 15};
}

enum : uint8_t { kNeedsVm = 1, kNeedsLds = 2, kNeedsScalar = 4 };

struct InFlight {
  uint32_t op;    // index of the operation
  uint8_t needs;  // kNeeds*: not yet waited for
  uint32_t vm_number, lds_number;
  Registers to;
  uint64_t mask;               // lanes
  std::vector<uint32_t> data;  // of late_landing.cc
};

// With more in flight the hardware waits for the oldest before it issues.
constexpr uint32_t kMostVm = 63, kMostLgkm = 15;

class Scoreboard {
 public:
  void clear() {
    entries.clear();
    vm_issued = lds_issued = 0;
  }
  // After the issue of any instruction. `flat_lds`, `flat_vm`: where the lanes of a FLAT one went.
  void count(const Instruction &i) {
    vm_issued += i.is_vector_memory();
    lds_issued += i.family == Family::kLds || i.family == Family::kFlat;
  }
  static bool asynchronous(const Instruction &i) {
    return i.is_vector_memory() || i.family == Family::kLds || i.family == Family::kScalarMemory;
  }
  // What a result waits for. A FLAT access of LDS may return before or after DS ones.
  static uint8_t needs(const Instruction &i, bool flat_lds, bool flat_vm) {
    switch (i.family) {
      case Family::kLds:
        return kNeedsLds;
      case Family::kScalarMemory:
        return kNeedsScalar;
      case Family::kFlat:
        return uint8_t((flat_lds ? kNeedsScalar : 0) | (flat_vm ? kNeedsVm : 0));
      default:
        return kNeedsVm;
    }
  }
  bool vm_covered(uint32_t number, uint32_t vm) const { return vm_issued - number >= vm; }
  bool lds_covered(uint32_t number, uint32_t lgkm) const { return lds_issued - number >= lgkm; }

  // Whether results may be complete because no more can be in flight.
  bool is_full() const {
    return !entries.empty() && (vm_covered(entries.front().vm_number, kMostVm) ||
                                lds_covered(entries.front().lds_number, kMostLgkm));
  }

  // s_waitcnt: calls landed(entry), oldest first, for what is now complete, and forgets it.
  template <class Landed>
  void wait(WaitFields w, const Landed &landed) {
    for (auto at = entries.begin(); at != entries.end();) {
      InFlight &e = *at;
      if (vm_covered(e.vm_number, w.vm)) e.needs &= uint8_t(~kNeedsVm);
      if (lds_covered(e.lds_number, w.lgkm)) e.needs &= uint8_t(~kNeedsLds);
      if (w.lgkm == 0) e.needs &= uint8_t(~kNeedsScalar);
      if (e.needs) {
        ++at;
      } else {
        landed(e);
        at = entries.erase(at);
      }
    }
  }

  std::deque<InFlight> entries;
  uint32_t vm_issued = 0, lds_issued = 0;
};

}  // namespace flydsl::emu::checks
