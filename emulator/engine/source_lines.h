// Where machine code comes from: the files and lines of its source, when its code object has debug
// information (-g, -gline-tables-only). For texts about instructions: faults, reports of checks,
// traces, annotated listings. The instruction loop never asks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace flydsl::emu {

class Program;

struct SourceFrame {
  std::string file;      // with its folder, as the compiler was told
  uint32_t line = 0;     // from 1
  uint32_t column = 0;   // from 1; 0: not known
  std::string function;  // linkage name; may be empty
  // The compiler gives the instruction no line of its own: this is the nearest one before it.
  bool nearest = false;
};

// What the loader hangs on a Program.
class SourceLines {
 public:
  virtual ~SourceLines() = default;
  // The place of the instruction `code_offset` bytes after Program::base; then, frame by frame, where
  // that function was inlined, up to the function that holds the code. Empty: not known. Safe from
  // any thread; slow at a unit's first call, a look-up in sorted tables from then on.
  virtual std::vector<SourceFrame> frames(uint64_t code_offset) const = 0;
};

std::vector<SourceFrame> source_frames(const Program &program, uint64_t code_offset);

// "softmax.h:120 inlined at kernel.hip:33", files without their folders; empty: not known.
std::string source_line(const Program &program, uint64_t code_offset);

// An operation's offset for messages: "0x1f40 (softmax.h:120 inlined at kernel.hip:33)", or "0x1f40".
std::string offset_and_line(const Program &program, uint32_t op);

}  // namespace flydsl::emu
