#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <regex>
#include <sstream>

#include "tools/commands.h"
#include "tools/exit_status.h"
#include "tools/library_handle.h"
#include "tools/verify/attention_operators.h"
#include "tools/verify/case_line.h"
#include "tools/verify/case_list.h"
#include "tools/verify/device_tensor.h"

namespace flydsl::tools {
namespace {

struct Case {
  std::string line;
  verify::ReadCase read;
};

std::vector<std::string> lines_of(const VerifyArguments &arguments,
                                  const verify::AttentionOperator &op) {
  if (!arguments.line.empty()) return {arguments.line};
  std::vector<std::string> lines;
  if (arguments.fuzz > 0) {
    // Seeds are passed over until as many lines match; a pattern that few match is likely a wrong one.
    constexpr uint64_t kMostSeedsOfALine = 100000;
    const std::regex pattern(arguments.lines);
    uint64_t passed_over = 0;
    for (uint64_t seed = arguments.seed; static_cast<int64_t>(lines.size()) < arguments.fuzz;
         ++seed) {
      std::string line = op.fuzz(seed);
      if (arguments.lines.empty() || std::regex_search(line, pattern)) {
        lines.push_back(std::move(line));
        passed_over = 0;
      } else if (++passed_over == kMostSeedsOfALine) {
        bad_input("--lines " + arguments.lines + ": no random case of " +
                  std::to_string(kMostSeedsOfALine) + " from seed " +
                  std::to_string(seed + 1 - kMostSeedsOfALine) + " on matches");
      }
    }
  } else if (arguments.cases_file.empty()) {
    lines = verify::case_lines(std::string(op.name) + ".txt", op.cases);
  } else {
    std::ifstream file(arguments.cases_file);
    std::ostringstream content;
    content << file.rdbuf();
    if (!file) bad_input("--cases " + arguments.cases_file + ": cannot be read");
    lines = verify::case_lines(arguments.cases_file, content.str());
  }
  return verify::select_cases(lines, arguments.fuzz > 0 ? "" : arguments.suite, arguments.only);
}

// All are read before any runs.
std::vector<Case> read_cases(const VerifyArguments &arguments,
                             const verify::AttentionOperator &op) {
  std::vector<Case> cases;
  try {
    for (const std::string &line : lines_of(arguments, op)) {
      cases.push_back({line, op.read(line, arguments.fuzz == 0 ? arguments.seed : 0)});
    }
  } catch (const verify::CaseError &error) {
    bad_input(error.what());
  } catch (const std::regex_error &error) {
    bad_input(
        (arguments.lines.empty() ? "--only " + arguments.only : "--lines " + arguments.lines) +
        ": " + error.what());
  }
  if (cases.empty()) bad_input("no case is called so");
  return cases;
}

verify::Outcome outcome_of(const LibraryHandle &library, const Case &one) {
  try {
    return one.read.run(library.get());
  } catch (const verify::DeviceError &error) {
    verify::Outcome outcome;
    outcome.fault = error.what();
    return outcome;
  }
}

// Of a random case.
const char *seed_of(const Case &one) {
  return one.read.name.c_str() + std::string("fuzz_").size();
}

}  // namespace

int command_verify(const VerifyArguments &arguments) {
  const verify::AttentionOperator *op = verify::find_attention_operator(arguments.op);
  if (!op) {
    bad_input("verify has no cases of '" + arguments.op + "'; there is " +
              verify::attention_operator_names());
  }
  const std::vector<Case> cases = read_cases(arguments, *op);
  // A line that names its kernel means the one that is taken without tuning rows.
  if (std::any_of(cases.begin(), cases.end(),
                  [](const Case &one) { return one.line.find(" kernel=") != std::string::npos; }))
    setenv("FLYDSL_AOT_TUNING", "off", 0);
  LibraryHandle library;
  library.open(arguments.open);
  const flydsl_aot_info info = library.info();
  if (info.device == FLYDSL_AOT_DEVICE_NONE) bad_input("verify needs a device, hip or emulator");
  std::printf("device     %s\n", describe_device(info).c_str());
  if (arguments.fuzz > 0)
    std::printf("fuzz       seeds %s to %s\n", seed_of(cases.front()), seed_of(cases.back()));
  // Of some backends, or of forced kernels, nobody expects that they compute everything.
  const bool restricted = !arguments.open.backends.empty() || !arguments.open.force_kernel.empty();
  // Memory of one case serves the next: asked for again, the kernel would clear every page.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  size_t passed = 0, failed = 0, without = 0;
  for (const Case &one : cases) {
    const verify::Outcome outcome = outcome_of(library, one);
    const bool good = outcome.fault.empty();
    if (restricted && outcome.fault.find("NO_KERNEL") != std::string::npos) {
      ++without;
      continue;
    }
    ++(good ? passed : failed);
    if (!good) {
      std::printf("FAILED %s: %s\n", one.read.name.c_str(), outcome.fault.c_str());
      const bool emulated = info.device == FLYDSL_AOT_DEVICE_EMULATOR;
      std::printf("  replay: flydsl-aot verify %s --device %s --case '%s'", arguments.op.c_str(),
                  emulated ? "emulator" : "hip", one.line.c_str());
      if (arguments.fuzz == 0 && arguments.seed != 0)
        std::printf(" --seed %llu", static_cast<unsigned long long>(arguments.seed));
      std::printf("\n");
    } else if (arguments.verbose) {
      std::printf("ok     %s: %s\n", one.read.name.c_str(), outcome.numbers.c_str());
    }
    std::fflush(stdout);
    if (outcome.device_failed) break;
  }
  const size_t left = cases.size() - passed - failed - without;
  std::printf("%zu passed, %zu failed", passed, failed);
  if (without > 0) std::printf(", %zu without a kernel that may run", without);
  if (left > 0)
    std::printf(", %zu not run: a kernel faulted, which ends the use of a device", left);
  std::printf("\n");
  return failed > 0 ? kExitCasesFailed : kExitOk;
}

}  // namespace flydsl::tools
