// What LLVM's DWARF reader trusts and must not: version 5 headers of line tables whose entries take no
// bytes, of which it would make as many as a 64-bit count says (DWARF 5, section 6.2.4).
#pragma once

#include <cstdint>
#include <vector>

namespace flydsl::emu {

// Whether each entry of the directory and file lists of a .debug_line section has bytes of its own.
bool line_headers_are_bounded(const std::vector<uint8_t> &section);

}  // namespace flydsl::emu
