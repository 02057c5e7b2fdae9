// What the hazard rules need to know of an instruction: its classes, the registers it reads and
// writes, how many wait states it takes. Worked out once per program, from the decoded operands and
// the mnemonic.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/checks/instruction.h"
#include "emulator/engine/program_impl.h"

namespace flydsl::emu::checks {

// A range of registers, numbered as in instruction.h.
struct Units {
  uint16_t first = 0, count = 0;
  bool overlaps(Units other) const {
    return first < other.first + other.count && other.first < first + count;
  }
  bool operator==(Units other) const { return first == other.first && count == other.count; }
  bool vector() const { return first < kFirstScalar; }
};

enum HazardClass : uint64_t {
  kIsValu = 1u << 0,  // vector ALU, matrix instructions included
  kIsSalu = 1u << 1,
  kIsVmem = 1u << 2,  // buffer, global, flat, scratch
  kIsDs = 1u << 3,
  kIsMfma = 1u << 4,
  kIsDgemm = 1u << 5,  // matrix, fp64
  kIsXdl = 1u << 6,    // matrix, neither fp64 nor (gfx940 and later) fp32 inputs
  kIsDot = 1u << 7,
  kIsTrans = 1u << 8,
  kIsDstSel = 1u << 9,  // result is shifted into part of the register
  kIsDpp = 1u << 10,
  kIsLdsDma = 1u << 11,
  kIsWideStore = 1u << 12,  // more than 64 bits of store data, no scalar register as buffer offset
  kIsRwLane = 1u << 13,     // v_readlane, v_writelane
  kIsReadLane = 1u << 14,   // v_readlane, v_readfirstlane
  kIsAnyLane = 1u << 15,    // all three
  kIsDivFmas = 1u << 16,
  kIsGetreg = 1u << 17,
  kIsSetreg = 1u << 18,
  kIsPermlaneSwap = 1u << 19,
  kIsCmpx = 1u << 20,
  kIsFma64 = 1u << 21,
  kIsM0Reader = 1u << 22,      // s_movrel, s_sendmsg, s_ttracedata, ds add-TID, GDS
  kReadsZeroFlags = 1u << 23,  // vccz or execz as a source operand
};

struct HazardInfo {
  uint64_t classes = 0;
  uint32_t mnemonic = 0;           // equal for equal instructions, encodings apart
  uint32_t hardware_register = 0;  // equal for equal ones
  uint16_t wait_states = 1;
  uint8_t passes = 0;  // of a matrix instruction
  uint8_t defs = 0, uses = 0;
  int8_t source_c = -1;     // index in use[] of a matrix instruction's C, or of a dot's accumulator
  int8_t lane_select = -1;  // index in use[]
  Units def[4], use[8];
  Units store_data;
};

enum HazardArch : uint8_t { kGfx90a = 1, kGfx940 = 2, kGfx950 = 4 };

uint8_t hazard_arch(Architecture architecture);

HazardInfo hazard_info(const Op &op, const std::string &text, uint8_t arch);

}  // namespace flydsl::emu::checks
