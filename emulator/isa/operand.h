// Operand text to Operand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/isa/op.h"

namespace flydsl::emu {

// The program's constants, spread over 64 lanes, two rows (low and high word) each; equal constants
// share.
class ConstantPool {
 public:
  uint32_t row_of(uint64_t value);
  const std::vector<uint32_t> &rows() const { return rows_; }

 private:
  std::vector<uint32_t> rows_;
  std::vector<std::pair<uint64_t, uint32_t>> sorted_;
};

// Parses `text` as an operand of shape letter `type`. False, with the reason in `error`, when it is
// not one.
bool parse_operand(std::string_view text, char type, ConstantPool &pool, Operand &operand,
                   std::string &error);

bool parse_integer(std::string_view text, int64_t &value);

}  // namespace flydsl::emu
