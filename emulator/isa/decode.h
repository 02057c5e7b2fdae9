// One disassembled instruction to one Op.
#pragma once

#include <cstdint>
#include <string>

#include "emulator/isa/op.h"
#include "emulator/isa/operand.h"
#include "emulator/isa/table.h"

namespace flydsl::emu {

struct Decoded {
  Op op;
  bool branch = false;  // op.imm is a distance in dwords from the next instruction
  std::string refusal;  // not empty: why the emulator does not execute it
};

// From a target such as "gfx942:sramecc+"; unknown ones count as gfx950.
Architecture architecture_of(const std::string &target);

// `bytes` is the encoding of `text`, of `size` bytes.
Decoded decode_instruction(Level level, Architecture architecture, const std::string &text,
                           const uint8_t *bytes, size_t size, ConstantPool &pool);

}  // namespace flydsl::emu
