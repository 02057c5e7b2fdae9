#include "emulator/engine/environment.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>

namespace flydsl::emu {
namespace {

void say_once(const std::string &key, const std::string &line) {
  struct Said {
    std::mutex mutex;
    std::set<std::string> keys;
  };
  static auto *const said = new Said;  // never destroyed: launches may outlive static objects
  std::lock_guard<std::mutex> lock(said->mutex);
  if (said->keys.insert(key).second) std::fprintf(stderr, "flydsl_emu: %s\n", line.c_str());
}

}  // namespace

const char *const kVariables[] = {"FLYDSL_EMU_ARCH",
                                  "FLYDSL_EMU_CATCH_CRASHES",
                                  "FLYDSL_EMU_CHECKS",
                                  "FLYDSL_EMU_CHECKS_WARN",
                                  "FLYDSL_EMU_COMPUTE_UNITS",
                                  "FLYDSL_EMU_CXX",
                                  "FLYDSL_EMU_DEVICES",
                                  "FLYDSL_EMU_INSTRUCTION_LIMIT",
                                  "FLYDSL_EMU_ISA",
                                  "FLYDSL_EMU_LAUNCH_BLOCKING",
                                  "FLYDSL_EMU_LOG",
                                  "FLYDSL_EMU_MEMORY",
                                  "FLYDSL_EMU_MEMORY_MIB",
                                  "FLYDSL_EMU_MFMA",
                                  "FLYDSL_EMU_PROGRESS",
                                  "FLYDSL_EMU_THREADS",
                                  "FLYDSL_EMU_TIMEOUT_S",
                                  "FLYDSL_EMU_TIMING",
                                  "FLYDSL_EMU_TIMING_CONSTANTS",
                                  "FLYDSL_EMU_TIMING_MODE",
                                  "FLYDSL_EMU_TIMING_SAVE",
                                  "FLYDSL_EMU_TRACE",
                                  nullptr};

void complain_of(const char *variable, const std::string &value, const std::string &allowed) {
  std::string line = variable;
  line += " is \"" + value + "\", allowed are " + allowed + "; it is ignored";
  say_once(variable, line);
}

bool flag_variable(const char *variable, bool otherwise) {
  const char *text = std::getenv(variable);
  if (!text || !*text) return otherwise;
  const std::string value = text;
  if (value == "0" || value == "1") return value == "1";
  complain_of(variable, value, "0 and 1");
  return otherwise;
}

void complain_of_unknown_variables() {
  constexpr char kPrefix[] = "FLYDSL_EMU_";
  for (char **entry = environ; entry && *entry; ++entry) {
    if (std::strncmp(*entry, kPrefix, sizeof kPrefix - 1) != 0) continue;
    const std::string name(*entry, std::strcspn(*entry, "="));
    bool known = false;
    for (const char *const *variable = kVariables; *variable; ++variable)
      known = known || name == *variable;
    if (!known) say_once(name, name + " is no variable of the emulator; it is ignored");
  }
}

}  // namespace flydsl::emu
