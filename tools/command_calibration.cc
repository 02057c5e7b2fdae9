#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tools/commands.h"
#include "tools/exit_status.h"
#include "tools/peers.h"

namespace flydsl::tools {
namespace {

// Errors of some of the cases.
struct Errors {
  int count = 0;
  double sum = 0, worst = 0;

  void add(double error) {
    ++count;
    sum += std::abs(error);
    worst = std::max(worst, std::abs(error));
  }
  Json json() const {
    if (count == 0) return {{"cases", 0}, {"mean", nullptr}, {"worst", nullptr}};
    return {{"cases", count}, {"mean", sum / count}, {"worst", worst}};
  }
  std::string text() const {
    if (count == 0) return "  0 cases";
    char line[80];
    std::snprintf(line, sizeof line, "%3d cases, mean %4.1f %%, worst %4.1f %%", count,
                  100 * sum / count, 100 * worst);
    return line;
  }
};

}  // namespace

void command_calibration(const CalibrationArguments &arguments) {
  OpenArguments open = arguments.open;
  if (open.device.empty()) open.device = "emulator";  // nothing else has a model
  LibraryHandle library;
  library.open(open);
  const EmulatorLibrary emulator(library);
  std::vector<std::string> options = {"--calibration"};
  if (!arguments.only.empty()) options.insert(options.end(), {"--only", arguments.only});
  Json cases = run_timing_script("calibration", emulator, options);
  if (cases.empty()) bad_input("--only " + arguments.only + ": no case has such a name");

  const std::string hash = cases[0].at("constants_hash");
  Errors fitted, held_out, others;
  for (Json &one : cases) {
    if (one.at("constants_hash") != hash)
      throw ToolError(kExitFailure, "calibration: cases were modelled with different constants");
    one.erase("launches");
    one.erase("constants_hash");
    (one.at("fitted") ? fitted : one.at("judged") ? held_out : others).add(one.at("error"));
  }
  if (arguments.json) {
    std::printf("%s\n", Json({{"modelled", true},
                              {"constants_hash", hash},
                              {"cases", cases},
                              {"errors",
                               {{"fitted", fitted.json()},
                                {"held_out", held_out.json()},
                                {"held_out_short", others.json()}}}})
                            .dump()
                            .c_str());
    return;
  }
  std::printf("%-42s %9s %9s %7s  %s\n", "TFLOP/s", "published", "modelled", "error", "");
  for (const Json &one : cases)
    std::printf("%-42s %9.0f %9.0f %6.1f%%  %s\n", one.at("name").get<std::string>().c_str(),
                one.at("published").get<double>(), one.at("modelled").get<double>(),
                100 * one.at("error").get<double>(),
                one.at("fitted")   ? "fitted"
                : one.at("judged") ? ""
                                   : "short, not judged");
  std::printf("%-13s%s\n%-13s%s\n%-13s%s\n%-13smodelled; constants %s (docs/timing-model.md)\n",
              "fitted", fitted.text().c_str(), "held out", held_out.text().c_str(), "short",
              others.text().c_str(), "label", hash.c_str());
}

}  // namespace flydsl::tools
