// Splits one line of the disassembler into mnemonic, operands and modifiers.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace flydsl::emu {

struct Line {
  std::string_view mnemonic;
  std::vector<std::string_view> operands;
  std::vector<std::pair<std::string_view, std::string_view>>
      modifiers;  // name, value ("" when bare)
};

// The views point into `text`.
Line split_line(std::string_view text);

}  // namespace flydsl::emu
