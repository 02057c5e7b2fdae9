// Another program, run to its end.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace flydsl::tools {

struct ProgramResult {
  int exit_status = -1;  // 128 + the signal if one ended it
  std::string output;    // stdout
  std::string errors;    // stderr
};

// Searches PATH for arguments[0]; one that cannot be started ends with 127 and the reason in `errors`. It
// gets SIGINT when this process ends before it.
ProgramResult run_program(const std::vector<std::string> &arguments);

// The folder of this program's file.
std::filesystem::path program_folder();
// Of what a program wrote.
std::string last_line(std::string text);

}  // namespace flydsl::tools
