#include <cstdio>
#include <filesystem>

#include "tools/commands.h"
#include "tools/exit_status.h"
#include "tools/modelled_launch.h"
#include "tools/output_file.h"
#include "tools/peers.h"
#include "tools/report/chrome_trace.h"
#include "tools/report/html.h"
#include "tools/report/launches.h"
#include "tools/report/listing.h"
#include "tools/report/png.h"
#include "tools/report/roofline.h"
#include "tools/report/summary.h"

namespace flydsl::tools {
namespace {

void write_file(const std::string &option, const std::string &path, const std::string &content) {
  try {
    OutputFile file(path);
    file.write(content);
    file.commit();
  } catch (const std::runtime_error &error) {
    bad_input(option + " " + path + ": " + error.what());
  }
}

void make_folder(const std::string &folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (!std::filesystem::is_directory(folder))
    bad_input("--report " + folder + ": " + (failed ? failed.message() : "is no folder"));
}

void write_report(const std::string &folder, const Json &json, const TimingReport &report) {
  const std::string option = "--report";
  write_file(option, folder + "/report.json", json.dump(1) + "\n");
  write_file(option, folder + "/annotated.txt", annotated_listing(report));
  write_file(option, folder + "/report.html", html_report(report));
  const std::string picture = folder + "/roofline.png";
  std::string bytes;
  try {
    bytes = png(roofline(report));
  } catch (const std::runtime_error &error) {
    throw ToolError(kExitFailure, picture + ": " + error.what() + " (the other files are written)");
  }
  write_file(option, picture, bytes);
}

}  // namespace

void command_bench(const BenchArguments &arguments) {
  const std::vector<std::string> peers =
      arguments.peers.empty() ? std::vector<std::string>() : parse_peers(arguments.peers);
  BoundProblem bound = bind_problem(arguments.problem);
  if (!arguments.report_folder.empty()) make_folder(arguments.report_folder);
  LibraryHandle library;
  library.open(arguments.open);
  const EmulatorLibrary emulator(library);
  Json json = model_launch(library, emulator, bound, !arguments.report_folder.empty());
  if (!peers.empty()) {
    json["peers"] = model_peers(emulator, *bound.op, *bound.problem, peers, json["constants_hash"]);
  }
  const TimingReport report = parse_timing_report(json);
  if (!arguments.report_folder.empty()) write_report(arguments.report_folder, json, report);
  if (arguments.json) {
    json.erase("profile");
    json.erase("timeline");
    std::printf("%s\n", json.dump().c_str());
    return;
  }
  std::printf("%-11s%s\n%s%s%s", "device", describe_device(library.info()).c_str(),
              summary_text(report).c_str(), launches_text(report).c_str(),
              peers_text(report).c_str());
  if (!arguments.report_folder.empty())
    std::printf("%-11s%s/report.html\n", "report", arguments.report_folder.c_str());
}

void command_trace(const TraceArguments &arguments) {
  BoundProblem bound = bind_problem(arguments.problem);
  LibraryHandle library;
  library.open(arguments.open);
  const EmulatorLibrary emulator(library);
  const Json json = model_launch(library, emulator, bound, /*detail=*/true);
  const TimingReport report = parse_timing_report(only_longest_launch(json));
  const std::string which = which_launch(parse_timing_report(json));
  write_file("-o", arguments.file, chrome_trace(report, arguments.events));
  const bool all = !report.timeline_truncated && report.timeline.size() <= arguments.events;
  std::printf(
      "%-11s%s%s of one compute unit, %s\n%-11s%s\n%-11s%s (open with https://ui.perfetto.dev or "
      "chrome://tracing)\n",
      "timeline", report.kernel.c_str(), which.empty() ? "" : (" (" + which + ")").c_str(),
      all ? "whole" : ("the first " + std::to_string(arguments.events) + " instructions").c_str(),
      "label", provenance(report).c_str(), "trace", arguments.file.c_str());
}

}  // namespace flydsl::tools
