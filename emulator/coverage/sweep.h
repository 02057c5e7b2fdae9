// Every instruction that LLVM's disassembler knows for a target, found by sweeping the opcode field
// of every encoding, and whether the emulator executes it.
#pragma once

#include <map>
#include <string>

namespace flydsl::emu::coverage {

struct Mnemonic {
  std::string encoding;               // the one it was first met in
  std::map<std::string, int> forms;   // "", "dpp", "sdwa": how many samples decoded
  std::string refused_text, refusal;  // first sample that is not executed, and why; else empty
};

// By mnemonic without encoding suffix.
using Sweep = std::map<std::string, Mnemonic>;

Sweep sweep(const std::string &processor);

}  // namespace flydsl::emu::coverage
