// What LLVM's DWARF reader trusts of .debug_info and .debug_abbrev and must not: lengths that pass the
// unit (an offset that wraps around reads before the section), trees so deep that recursion ends the
// stack, skeleton units, for which it opens files that they name.
#pragma once

#include <cstdint>
#include <vector>

namespace flydsl::emu {

// Whether the entries of all units lie in their units by the lengths of their attributes (DWARF 2 to 5,
// sections 7.5 of DWARF 5), of forms that are known.
bool entries_are_bounded(const std::vector<uint8_t> &info,
                         const std::vector<uint8_t> &abbreviations);

}  // namespace flydsl::emu
