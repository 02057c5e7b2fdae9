// Runs the device compiler (clang 22) as a program of its own.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace flydsl::emu::hip {

struct CompilerInput {
  std::string source;
  std::string name;                                          // for messages
  std::vector<std::pair<std::string, std::string>> headers;  // include name, text
  std::vector<std::string> options;                          // checked by the caller
};

struct CompilerOutput {
  bool ran = false;  // the compiler could be started
  bool ok = false;
  std::string log;
  std::string code;  // a code object
};

CompilerOutput run_device_compiler(const CompilerInput &input);

}  // namespace flydsl::emu::hip
