// How the flydsl-aot command ends: one error type, thrown anywhere, printed once by main as one
// line.
#pragma once

#include <stdexcept>
#include <string>

#include "flydsl_aot/status.h"

namespace flydsl::tools {

enum ExitStatus : int {
  kExitOk = 0,
  kExitCasesFailed = 1,  // of verify: results are wrong
  kExitBadInput = 2,  // usage, files, arguments that contradict each other or the operator's header
  kExitUnsupported = 3,  // a valid problem that this library has no kernel for
  kExitFailure = 4       // device, archive or internal failure
};

class ToolError : public std::runtime_error {
 public:
  ToolError(ExitStatus exit_status, const std::string &message)
      : std::runtime_error(message), exit_status_(exit_status) {}
  ExitStatus exit_status() const { return exit_status_; }

 private:
  ExitStatus exit_status_;
};

[[noreturn]] inline void bad_input(const std::string &message) {
  throw ToolError(kExitBadInput, message);
}

// Turns a status of the library into the error that ends the command, with the library's own
// message.
[[noreturn]] inline void fail_with_status(flydsl_aot_status status, const std::string &what,
                                          const std::string &message) {
  const int family = FLYDSL_AOT_STATUS_FAMILY(status);
  const ExitStatus exit_status = family == 1   ? kExitBadInput
                                 : family == 2 ? kExitUnsupported
                                               : kExitFailure;
  throw ToolError(exit_status, what + ": " + flydsl_aot_status_name(status) + ": " +
                                   (message.empty() ? flydsl_aot_status_string(status) : message));
}

inline void check(flydsl_aot_status status, const std::string &what) {
  if (status != FLYDSL_AOT_OK) fail_with_status(status, what, flydsl_aot_last_error());
}

}  // namespace flydsl::tools
