// tune: every kernel that could compute a problem is timed, problem by problem.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>
#include <sstream>

#include "tools/commands.h"
#include "tools/cuda_device.h"
#include "tools/exit_status.h"
#include "tools/measured_call.h"
#include "tools/modelled_launch.h"
#include "tools/progress.h"
#include "tools/tuning_file.h"

namespace flydsl::tools {
namespace {

struct Shard {
  size_t index = 0, count = 1;
};

Shard parse_shard(const std::string &text) {
  constexpr size_t kMost = 1000000;
  Shard shard;
  const char *const end = text.data() + text.size();
  const auto [slash, first] = std::from_chars(text.data(), end, shard.index);
  bool right = first == std::errc() && slash != end && *slash == '/';
  if (right) {
    const auto [rest, second] = std::from_chars(slash + 1, end, shard.count);
    right = second == std::errc() && rest == end && shard.index >= 1 &&
            shard.index <= shard.count && shard.count <= kMost;
  }
  if (!right)
    bad_input("--shard " + text + ": must be I/N with I from 1 to N, N up to " +
              std::to_string(kMost));
  --shard.index;
  return shard;
}

std::regex parse_names(const std::string &text) {
  try {
    return std::regex(text);
  } catch (const std::regex_error &error) {
    bad_input("--kernels " + text + ": " + error.what());
  }
}

// The cases of a file: a line each, settings with spaces between; of a shard every n-th.
std::vector<std::string> read_cases(const std::string &path, const Shard &shard) {
  std::ifstream stream(path);
  if (!stream) bad_input("--cases " + path + ": " + std::strerror(errno));
  std::vector<std::string> all, mine;
  for (std::string line; std::getline(stream, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string text;
    for (std::string word; words >> word;) text += (text.empty() ? "" : " ") + word;
    if (!text.empty()) all.push_back(text);
  }
  if (all.empty()) bad_input("--cases " + path + ": holds no case");
  for (size_t i = shard.index; i < all.size(); i += shard.count) mine.push_back(all[i]);
  return mine;
}

BoundProblem bind_case(const std::string &op, const std::string &text) {
  std::istringstream words(text);
  ProblemArguments arguments{op, {}, {}, {}};
  for (std::string word; words >> word;) arguments.settings.push_back(word);
  return bind_problem(arguments);
}

struct Candidates {
  std::vector<std::string>
      kernels;  // that can compute it, the one that is taken without tuning first
  std::string problem;
};

void note_candidate(void *user, const flydsl_aot_candidate *candidate) {
  auto &candidates = *static_cast<Candidates *>(user);
  if (!candidate->main || !candidate->fits) return;
  if (candidates.kernels.empty()) candidates.problem = candidate->problem;
  candidates.kernels.push_back(candidate->kernel);
}

Candidates candidates_of(const TuneArguments &arguments, const LibraryHandle &library,
                         const std::string &text) {
  Candidates candidates;
  const BoundProblem bound = bind_case(arguments.op, text);
  check(bound.problem->explain(library.get(), note_candidate, &candidates), arguments.op);
  if (candidates.kernels.empty()) bad_input("no kernel is needed for this");
  return candidates;
}

// Microseconds of one kernel, and where they come from.
double figure_of(const TuneArguments &arguments, const std::string &kernel, const std::string &text,
                 std::string *origin) {
  OpenArguments open = arguments.open;
  open.force_kernel = kernel;
  LibraryHandle library;
  library.open(open);
  BoundProblem bound = bind_case(arguments.op, text);
  const flydsl_aot_info info = library.info();
  if (info.device != FLYDSL_AOT_DEVICE_EMULATOR) {
    // NVIDIA's are reached through HIP's functions, too.
    const bool nvidia = std::string_view(info.arch).substr(0, 3) == "sm_";
    *origin = std::string(nvidia ? "cuda:" : "hip:") + info.device_name;
    return measured_call_us(library, bound);
  }
  const EmulatorLibrary emulator(library);
  const Json json = model_launch(library, emulator, bound, false);
  *origin = "model:" + json.at("constants_hash").get<std::string>();
  return json.at("seconds").get<double>() * 1e6;
}

// Of the kernels that fit, those whose names match `wanted` are timed, and the one that is taken without tuning. Nothing if
// `row`, the case's row if there is one, still holds.
std::optional<TunedCase> tuned_case(const TuneArguments &arguments, const std::regex &wanted,
                                    const LibraryHandle &library, const std::string &text,
                                    const std::string *row) {
  const Candidates candidates = candidates_of(arguments, library, text);
  TunedCase tuned{text, candidates.problem, candidates.kernels[0], {}, {}};
  if (row && is_current(*row, tuned, {candidates.kernels.begin(), candidates.kernels.end()}))
    return std::nullopt;
  size_t timed = 0;
  for (const std::string &kernel : candidates.kernels) {
    if (kernel != tuned.first && !std::regex_search(kernel, wanted)) continue;
    if (timed++ == arguments.most_candidates) break;
    tuned.figures[kernel] = figure_of(arguments, kernel, text, &tuned.origin);
  }
  return tuned;
}

// tuning/gfx950/gemm.jsonl, or of a shard tuning/gfx950/gemm.3of8.jsonl
std::string default_file(const TuneArguments &arguments, const std::string &arch,
                         const Shard &shard) {
  std::string name = "tuning/" + arch + "/" + arguments.op;
  if (shard.count > 1)
    name.append(".")
        .append(std::to_string(shard.index + 1))
        .append("of")
        .append(std::to_string(shard.count));
  const std::string path = name + ".jsonl";
  std::error_code ignored;  // what cannot be written says so below
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  return path;
}

}  // namespace

void command_tune(const TuneArguments &given) {
  TuneArguments arguments = given;
  find_operator(arguments.op);
  const Shard shard = parse_shard(arguments.shard);
  const std::regex wanted = parse_names(arguments.kernels);
  const std::vector<std::string> cases = read_cases(arguments.cases_file, shard);
  if (arguments.open.device == "cuda") {
    require_cuda_operators({arguments.op});
    arguments.open.device = "hip";
    arguments.open.device_library = cuda_device_library();
  }
  LibraryHandle library;
  library.open(arguments.open);
  const flydsl_aot_info info = library.info();
  if (info.device == FLYDSL_AOT_DEVICE_NONE)
    bad_input("tune needs a device: --device emulator, hip or cuda");
  const std::string path =
      arguments.out.empty() ? default_file(arguments, info.arch, shard) : arguments.out;
  std::printf("device     %s\nshard      %zu of %zu, %zu cases\nrows       %s\n",
              describe_device(info).c_str(), shard.index + 1, shard.count, cases.size(),
              path.c_str());
  std::fflush(stdout);
  TuningFile file(path, arguments.resume);
  size_t added = 0, stale = 0, there = 0, failed = 0;
  {
    Progress progress(cases.size());
    for (const std::string &text : cases) {
      const std::string *const row = file.find(text);
      std::optional<TunedCase> tuned;
      try {
        tuned = tuned_case(arguments, wanted, library, text, row);
      } catch (const ToolError &error) {
        ++failed;
        progress.skip();
        progress.note("flydsl-aot: case " + text + ": " + error.what());
        continue;
      }
      if (!tuned) {
        ++there;
        progress.skip();
        continue;
      }
      if (row) {
        ++stale;
        progress.note("flydsl-aot: case " + text + ": its row was stale");
      }
      file.add(*tuned);
      ++added;
      progress.step(text);
    }
  }
  file.finish();
  std::printf("tuned      %zu problems, %zu were there, %zu failed\n", added, there, failed);
  if (stale > 0) std::printf("stale      %zu rows, made anew\n", stale);
  if (failed > 0) throw ToolError(kExitFailure, std::to_string(failed) + " cases have no row");
}

}  // namespace flydsl::tools
