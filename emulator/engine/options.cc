#include "emulator/engine/options.h"

#include <cstdlib>

#include "emulator/checks/check.h"
#include "emulator/engine/environment.h"
#include "emulator/engine/trace.h"

namespace flydsl::emu {
namespace {

bool number(const std::string &text, uint64_t &value) {
  char *end = nullptr;
  value = std::strtoull(text.c_str(), &end, 10);
  return !text.empty() && *end == 0 && text[0] >= '0' && text[0] <= '9';
}

// nominal, strict, random or random:SEED
bool parse_memory(const std::string &text, RunOptions &options) {
  if (text == "nominal") return true;
  if (text == "strict") return options.memory = MemoryModel::kStrict, true;
  if (text.substr(0, 6) != "random") return false;
  options.memory = MemoryModel::kRandom;
  return text.size() == 6 || (text[6] == ':' && number(text.substr(7), options.seed));
}

}  // namespace

RunOptions run_options(const DispatchOptions &asked) {
  RunOptions options;
  if (const char *text = std::getenv("FLYDSL_EMU_INSTRUCTION_LIMIT"))
    if (*text && !number(text, options.instruction_limit))
      options.error = "FLYDSL_EMU_INSTRUCTION_LIMIT is \"" + std::string(text) +
                      "\", a number of wave-instructions is expected";
  if (const char *text = std::getenv("FLYDSL_EMU_TIMEOUT_S")) {
    char *end = nullptr;
    options.timeout_s = std::strtod(text, &end);
    if (end == text || *end || !(options.timeout_s >= 0))
      options.error =
          "FLYDSL_EMU_TIMEOUT_S is \"" + std::string(text) + "\", a number of seconds is expected";
  }
  options.seed = asked.seed;
  if (asked.memory) {
    options.memory = *asked.memory;
  } else if (const char *text = std::getenv("FLYDSL_EMU_MEMORY")) {
    if (!parse_memory(text, options))
      options.error = "FLYDSL_EMU_MEMORY is \"" + std::string(text) +
                      "\", allowed are nominal, strict, random and random:SEED";
  }
  if (!Trace::error().empty()) options.error = Trace::error();
  const char *checks = asked.checks ? asked.checks->c_str() : std::getenv("FLYDSL_EMU_CHECKS");
  if (checks && !checks::parse_checks(checks, options.checks))
    options.error =
        "FLYDSL_EMU_CHECKS is \"" + std::string(checks) +
        "\", allowed are 0, all and names of checks separated by commas:" + checks::check_names();
  options.warn =
      asked.checks_warn ? *asked.checks_warn : flag_variable("FLYDSL_EMU_CHECKS_WARN", false);
  return options;
}

}  // namespace flydsl::emu
