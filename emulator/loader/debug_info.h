// The debug information of a code object, for the look-ups of engine/source_lines.h. Loading copies the
// sections as they are; they are inflated and read at the first question. Damaged ones answer nothing.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emulator/engine/source_lines.h"
#include "emulator/loader/elf_file.h"

namespace flydsl::emu {

struct DebugSection {
  bool compressed = false;  // SHF_COMPRESSED: an Elf64_Chdr, then a zlib or zstd stream
  std::vector<uint8_t> bytes;
};
using DebugSections = std::map<std::string, DebugSection>;  // by name without ".debug_"

// Of what lines and inlined calls need; empty when the object has no line table.
DebugSections debug_sections_of(const ElfFile &file);

class DwarfReader;

// The lines of the code that the file places at `file_address`; null without sections.
class DebugInfo {
 public:
  explicit DebugInfo(DebugSections sections);
  std::shared_ptr<const SourceLines> lines_at(uint64_t file_address) const;

 private:
  std::shared_ptr<DwarfReader> reader_;
};

}  // namespace flydsl::emu
