// Decoded machine code. Decoding happens once per code object, through LLVM's disassembler (isa/),
// and is kept by address; executing never looks at text again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace flydsl::emu {

class Program;
class SourceLines;

// Decodes `bytes` bytes of machine code that lies at `text` (device address == host address). Never
// fails: bytes that do not decode, and instructions the emulator does not execute, become
// operations that stop the kernel with their text when they are reached. `target` is a target id
// such as "gfx950" or "gfx950:sramecc+:xnack-". `source` (source_lines.h) may be null.
std::shared_ptr<const Program> decode_program(const std::string &target, const void *text,
                                              size_t bytes,
                                              std::shared_ptr<const SourceLines> source = {});

}  // namespace flydsl::emu
