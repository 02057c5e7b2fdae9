// The library's environment variables: values that are not allowed, and names that do not exist, are
// said on stderr, each once. (What decides whether a launch is right is an error of the launch
// instead: options.h.)
#pragma once

#include <string>

namespace flydsl::emu {

// "flydsl_emu: FLYDSL_EMU_THREADS is "two", allowed are ...; it is ignored".
void complain_of(const char *variable, const std::string &value, const std::string &allowed);

// A variable that is 0 or 1; `otherwise` when it is unset, empty or something else.
bool flag_variable(const char *variable, bool otherwise);

// Names every variable of the environment that begins with FLYDSL_EMU_ and is none of the library's.
void complain_of_unknown_variables();

// Ends with a null; README.md describes them.
extern const char *const kVariables[];

}  // namespace flydsl::emu
