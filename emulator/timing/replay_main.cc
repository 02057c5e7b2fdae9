// flydsl_timing_replay: models recorded launches (FLYDSL_EMU_TIMING_SAVE) again, with other
// constants; for fits, which try hundreds. One JSON line for each file, in their order.
//
//   flydsl_timing_replay [--constants FILE] [--set NAME=VALUE]... [--detail] FILE...
//   flydsl_timing_replay --fit [--detail] FILE...     reads sets of constants from stdin, one a line:
//                                        "NAME=VALUE NAME=VALUE ..."; a JSON array of all files for each
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "emulator/timing/launch_model.h"
#include "emulator/timing/report.h"
#include "emulator/timing/trace_store.h"

namespace flydsl::emu::timing {
namespace {

constexpr int kUsage = 2, kFailed = 1;

bool assign(const std::string &assignment, Constants &constants) {
  const size_t equals = assignment.find('=');
  std::string wrong = "a constant's name, '=' and a number is expected";
  if (equals != std::string::npos)
    wrong = set_constant(assignment.substr(0, equals), assignment.substr(equals + 1), &constants);
  if (wrong.empty()) return true;
  std::fprintf(stderr, "flydsl_timing_replay: %s: %s\n", assignment.c_str(), wrong.c_str());
  return false;
}

std::string model_of(const RecordedLaunch &launch, const Constants &constants, bool detail,
                     const MemoryProfile *memory = nullptr) {
  ModelOptions options;
  options.memory = memory;
  options.profile = options.timeline = detail;
  return launch_json(model_launch(launch, constants, options), *launch.program, detail);
}

int fit(const std::vector<RecordedLaunch> &launches, const Constants &base, bool detail) {
  // Most sets leave the caches as they are.
  std::vector<MemoryProfile> profiles(launches.size());
  std::vector<double> key;
  std::string line;
  while (std::getline(std::cin, line)) {
    Constants constants = base;
    std::istringstream words(line);
    for (std::string word; words >> word;)
      if (!assign(word, constants)) return kUsage;
    if (memory_profile_key(constants) != key) {
      key = memory_profile_key(constants);
      for (size_t n = 0; n < launches.size(); ++n)
        profiles[n] = memory_profile(launches[n], constants);
    }
    std::string all;
    for (size_t n = 0; n < launches.size(); ++n)
      all += (all.empty() ? "[" : ", ") + model_of(launches[n], constants, detail, &profiles[n]);
    std::printf("%s]\n", all.c_str());
    std::fflush(stdout);
  }
  return 0;
}

int run(int argc, char **argv) {
  Constants constants;
  bool detail = false, fitting = false;
  std::vector<std::string> files;
  for (int n = 1; n < argc; ++n) {
    const std::string word = argv[n];
    const bool more = n + 1 < argc;
    if (word == "--detail") {
      detail = true;
    } else if (word == "--fit") {
      fitting = true;
    } else if (word == "--constants" && more) {
      std::string error;
      constants = constants_with_changes(argv[++n], &error);
      if (!error.empty()) {
        std::fprintf(stderr, "flydsl_timing_replay: %s\n", error.c_str());
        return kUsage;
      }
    } else if (word == "--set" && more) {
      if (!assign(argv[++n], constants)) return kUsage;
    } else if (word[0] == '-') {
      std::fprintf(stderr, "flydsl_timing_replay: %s is no option, or lacks its value\n", argv[n]);
      return kUsage;
    } else {
      files.push_back(word);
    }
  }
  if (files.empty()) {
    std::fprintf(stderr,
                 "usage: flydsl_timing_replay [--constants FILE] [--set NAME=VALUE]... [--fit] "
                 "[--detail] FILE...\n");
    return kUsage;
  }
  std::vector<RecordedLaunch> launches(files.size());
  for (size_t n = 0; n < files.size(); ++n) {
    std::string error;
    if (load_launch(files[n], &launches[n], &error)) continue;
    std::fprintf(stderr, "flydsl_timing_replay: %s\n", error.c_str());
    return kFailed;
  }
  if (fitting) return fit(launches, constants, detail);
  for (const RecordedLaunch &launch : launches)
    std::printf("%s\n", model_of(launch, constants, detail).c_str());
  return 0;
}

}  // namespace
}  // namespace flydsl::emu::timing

int main(int argc, char **argv) {
  try {
    return flydsl::emu::timing::run(argc, argv);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "flydsl_timing_replay: %s\n", error.what());
    return 1;
  }
}
