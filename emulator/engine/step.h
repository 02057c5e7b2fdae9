// The instruction loop of one wave, with hooks for checks and timing.
#pragma once

#include <xmmintrin.h>

#include "emulator/isa/op.h"
#include "emulator/isa/runtime.h"

namespace flydsl::emu {

// A Hooks policy sees every instruction; Op carries its operands, so a policy can read the
// registers and addresses an instruction is about to use; before() returns false when it stopped the
// wave. NoHooks compiles to nothing.
struct NoHooks {
  bool before(Wave &, const Op &) { return true; }
  void after(Wave &, const Op &) {}
};

constexpr uint32_t kHostDefault =
    0x1f80;  // MXCSR: round to nearest, denormals kept, exceptions masked

// Host control word for 2 bits of rounding as MODE has them (CDNA3 ISA, "MODE register"); denormals
// are flushed as operands are read and results written (kMode).
inline uint32_t host_control(uint32_t round) {
  constexpr uint32_t kRound[4] = {0x0000, 0x4000, 0x2000, 0x6000};
  return kHostDefault | kRound[round & 3];
}
inline bool mode_is_default(uint32_t mode) {
  return (mode & (0xff | kModeFp16Ovfl | kModeIndexing)) == 0xf0;
}

// `op` with M0's index added to the register numbers that M0[15:12] names (CDNA3 ISA, "VGPR
// Indexing"). False when a number leaves its register file.
inline bool apply_index(const Wave &wave, Op &op) {
  const uint32_t index = wave.s[kM0] & 0xff, which = wave.s[kM0] >> 12 & 15;
  for (int n = 0; n < op.operands; ++n) {
    Operand &o = op.o[n];
    const bool destination = n < op.first_source;
    const uint32_t wanted = destination ? 8u : 1u << (n - op.first_source);
    if (o.kind != Kind::kVector || !(which & wanted)) continue;
    if ((o.index & 255) + index + o.words > 256) return false;
    o.index += index;
  }
  return true;
}

// Runs up to `budget` instructions; returns how many ran. wave.stop says why it ended early.
template <class Hooks>
uint64_t run_wave(Wave &wave, uint64_t budget, Hooks &hooks) {
  const uint64_t start = budget;
  const Op *ops = wave.ops;
  while (budget && wave.stop == Stop::kNone) {
    if (mode_is_default(wave.mode)) {
      do {
        const Op &op = ops[wave.pc++];
        if (!hooks.before(wave, op)) break;
        op.run(wave, op);
        hooks.after(wave, op);
      } while (--budget && wave.stop == Stop::kNone);
    } else {
      const uint32_t m = wave.mode;
      const uint32_t control[] = {kHostDefault, kHostDefault, host_control(m), host_control(m >> 2),
                                  kHostDefault};
      uint32_t current = kHostDefault;
      do {
        const Op &op = ops[wave.pc++];
        if (!hooks.before(wave, op)) break;
        if (op.fp != FpClass::kNone && control[unsigned(op.fp)] != current)
          _mm_setcsr(current = control[unsigned(op.fp)]);
        // With FP16_OVFL alone only fp16 differs.
        const bool arithmetic =
            op.fp == FpClass::kF16 ||
            ((m & 0xff) != 0xf0 && op.fp != FpClass::kNone && op.fp != FpClass::kDefault);
        const bool indexed = (m & kModeIndexing) && (op.flags & kVector);
        if (arithmetic || indexed) {
          Op changed = op;
          if (arithmetic) changed.flags |= kMode | kWriteSpecial;
          if (!indexed || apply_index(wave, changed)) {
            op.run(wave, changed);
          } else {
            fault(wave, op, -1, "relative register number out of range");
          }
        } else {
          op.run(wave, op);
        }
        hooks.after(wave, op);
      } while (--budget && wave.stop == Stop::kNone);
      _mm_setcsr(kHostDefault);
    }
    if (wave.stop == Stop::kMode) wave.stop = Stop::kNone;
  }
  return start - budget;
}

}  // namespace flydsl::emu
