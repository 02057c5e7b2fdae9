// What LLVM's DWARF reader trusts of .debug_line and must not: version 5 lists whose entries take no bytes,
// of which it would make as many as a 64-bit count says, and lengths that pass the unit (DWARF 5, section
// 6.2).
#pragma once

#include <cstdint>
#include <vector>

namespace flydsl::emu {

// Whether each entry of the directory and file lists has bytes of its own, and headers and opcodes end in
// their units.
bool line_tables_are_bounded(const std::vector<uint8_t> &section);

}  // namespace flydsl::emu
