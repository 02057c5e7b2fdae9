#include "emulator/engine/source_lines.h"

#include <cinttypes>
#include <cstdio>

#include "emulator/engine/program_impl.h"

namespace flydsl::emu {

std::vector<SourceFrame> source_frames(const Program &program, uint64_t code_offset) {
  if (!program.source) return {};
  return program.source->frames(code_offset);
}

std::string source_line(const Program &program, uint64_t code_offset) {
  std::string text;
  for (const SourceFrame &frame : source_frames(program, code_offset)) {
    if (!text.empty()) text += " inlined at ";
    if (frame.nearest) text += "near ";
    const size_t folder = frame.file.find_last_of('/');
    text += folder == std::string::npos ? frame.file : frame.file.substr(folder + 1);
    text += ':';
    text += std::to_string(frame.line);
  }
  return text;
}

std::string offset_and_line(const Program &program, uint32_t op) {
  char offset[16];
  std::snprintf(offset, sizeof offset, "0x%" PRIx32, program.offsets[op]);
  const std::string line = source_line(program, program.offsets[op]);
  return line.empty() ? offset : std::string(offset) + " (" + line + ")";
}

}  // namespace flydsl::emu
