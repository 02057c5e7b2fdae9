// Undefined bits of the registers of one wave, beside the registers themselves.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/checks/instruction.h"

namespace flydsl::emu::checks {

struct RegisterShadow {
  std::vector<uint32_t> vectors;  // [512][64], a set bit is undefined
  uint32_t scalars[129] = {};     // numbers of Wave::s, then SCC
  // Registers with any undefined bit. Most instructions meet none and are done with this.
  uint64_t dirty[(kRegisterCount + 63) / 64] = {};

  bool is_dirty(uint32_t r) const { return dirty[r / 64] >> (r % 64) & 1; }
  bool any_dirty(const Registers &r) const {
    for (uint32_t n = r.first; n < uint32_t(r.first) + r.count; ++n)
      if (is_dirty(n)) return true;
    return false;
  }
  void set_dirty(uint32_t r, bool yes) {
    const uint64_t bit = uint64_t(1) << (r % 64);
    dirty[r / 64] = yes ? dirty[r / 64] | bit : dirty[r / 64] & ~bit;
  }
  uint32_t *row(uint32_t r) { return vectors.data() + size_t(r) * 64; }
  const uint32_t *row(uint32_t r) const { return vectors.data() + size_t(r) * 64; }

  // Undefined bits of the 32-bit register r as lane `lane` sees it.
  uint32_t word(uint32_t r, int lane) const {
    return r < kFirstScalar ? row(r)[lane] : scalars[r - kFirstScalar];
  }
  void set_scalar(uint32_t r, uint32_t undefined) {
    scalars[r - kFirstScalar] = undefined;
    set_dirty(r, undefined);
  }
  void set_row(uint32_t r, const uint32_t *undefined, uint64_t mask) {
    uint32_t *d = row(r), seen = 0;
    for (int lane = 0; lane < 64; ++lane) {
      if (mask >> lane & 1) d[lane] = undefined[lane];
      seen |= d[lane];
    }
    set_dirty(r, seen);
  }
  void define_row(uint32_t r, uint64_t mask) {
    static const uint32_t kZeros[64] = {};
    if (is_dirty(r)) set_row(r, kZeros, mask);
  }
};

// Sets the shadow of what `op` writes from the shadow and the values of what it reads: everything
// but memory. Values are those before the instruction runs.
void propagate(RegisterShadow &shadow, Wave &wave, const Op &op, const Instruction &i);

}  // namespace flydsl::emu::checks
