// Decoded machine code. Decoding happens once per code object, through LLVM's disassembler (isa/),
// and is kept by address; executing never looks at text again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace flydsl::emu {

class Program;

// Decodes `bytes` bytes of machine code that lies at `text` (device address == host address). Never
// fails: bytes that do not decode, and instructions the emulator does not execute, become
// operations that stop the kernel with their text when they are reached. `target` is a target id
// such as "gfx950" or "gfx950:sramecc+:xnack-".
std::shared_ptr<const Program> decode_program(const std::string &target, const void *text,
                                              size_t bytes);

}  // namespace flydsl::emu
