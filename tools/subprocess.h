// Another program, run to its end.
#pragma once

#include <string>
#include <vector>

namespace flydsl::tools {

struct ProgramResult {
  int exit_status = -1;  // 128 + the signal if one ended it
  std::string output;    // stdout
  std::string errors;    // stderr
};

// Searches PATH for arguments[0]. Throws ToolError if it cannot be started.
ProgramResult run_program(const std::vector<std::string> &arguments);

}  // namespace flydsl::tools
