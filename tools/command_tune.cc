// tune: every kernel that could compute a problem is timed, problem by problem.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "tools/commands.h"
#include "tools/exit_status.h"
#include "tools/input_data.h"
#include "tools/modelled_launch.h"
#include "tools/tuning_file.h"

namespace flydsl::tools {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Shard {
  size_t index = 0, count = 1;
};

Shard parse_shard(const std::string &text) {
  std::istringstream stream(text);
  Shard shard;
  char slash = 0;
  long long index = 0, count = 0;
  stream >> index >> slash >> count;
  if (!stream || slash != '/' || stream.peek() != EOF || index < 1 || count < index ||
      count > 1000000)
    bad_input("--shard " + text + ": must be I/N with I from 1 to N");
  shard.index = static_cast<size_t>(index - 1);
  shard.count = static_cast<size_t>(count);
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

// The time of a call on a device, of as many as take a quarter of a second: host time, which launches and waiting are part of.
double measured_us(const LibraryHandle &library, BoundProblem &bound) {
  constexpr double kSeconds = 0.25;
  constexpr int kMostCalls = 1000;
  Problem &problem = *bound.problem;
  std::deque<DeviceMemory> memory;
  for (const auto *tensors : {&problem.inputs, &problem.outputs}) {
    for (const BoundTensor &tensor : *tensors)
      tensor.tensor->data = memory.emplace_back(library, bytes_of(tensor), tensor.name).data();
  }
  flydsl_aot_query_result result{};
  result.struct_size = sizeof result;
  check(problem.query(library.get(), &result), bound.op->name);
  if (result.workspace_bytes > 0) {
    problem.set_workspace(
        memory.emplace_back(library, result.workspace_bytes, "the workspace").data(),
        result.workspace_bytes);
  }
  upload_inputs(library, bound);
  const auto run = [&](int calls) {
    const auto begin = Clock::now();
    for (int i = 0; i < calls; ++i) check(problem.launch(library.get()), bound.op->name);
    check(flydsl_aot_device_synchronize(library.get()), bound.op->name);
    return seconds_since(begin) / calls;
  };
  run(3);  // loads the kernel, raises clocks
  const double once = run(3);
  const int calls = std::clamp(static_cast<int>(kSeconds / once), 1, kMostCalls);
  double best = run(calls);
  for (int i = 0; i < 2; ++i) best = std::min(best, run(calls));
  return best * 1e6;
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
    *origin = std::string("hip:") + info.device_name;
    return measured_us(library, bound);
  }
  const EmulatorLibrary emulator(library);
  const Json json = model_launch(library, emulator, bound, false);
  *origin = "model:" + json.at("constants_hash").get<std::string>();
  return json.at("seconds").get<double>() * 1e6;
}

// Of the kernels that fit, those whose names match `wanted` are timed, and the one that is taken without tuning.
TunedCase tuned_case(const TuneArguments &arguments, const std::regex &wanted,
                     const LibraryHandle &library, const std::string &text) {
  Candidates candidates;
  const BoundProblem bound = bind_case(arguments.op, text);
  check(bound.problem->explain(library.get(), note_candidate, &candidates), arguments.op);
  if (candidates.kernels.empty()) bad_input("no kernel is needed for this");
  TunedCase tuned{text, candidates.problem, candidates.kernels[0], {}, {}};
  size_t timed = 0;
  for (const std::string &kernel : candidates.kernels) {
    if (kernel != tuned.first && !std::regex_search(kernel, wanted)) continue;
    if (timed++ == arguments.most_candidates) break;
    tuned.figures[kernel] = figure_of(arguments, kernel, text, &tuned.origin);
  }
  return tuned;
}

class Progress {
 public:
  explicit Progress(size_t all) : all_(all), bar_(isatty(STDERR_FILENO) != 0) {}

  void skip() { ++done_; }
  void step(const std::string &text) {
    ++done_;
    ++worked_;
    const double left =
        seconds_since(begin_) / static_cast<double>(worked_) * static_cast<double>(all_ - done_);
    const std::string count = std::to_string(done_) + "/" + std::to_string(all_);
    char eta[32];
    std::snprintf(eta, sizeof eta, "%d:%02d:%02d", static_cast<int>(left) / 3600,
                  static_cast<int>(left) / 60 % 60, static_cast<int>(left) % 60);
    if (!bar_) {
      std::fprintf(stderr, "%s, %s left: %s\n", count.c_str(), eta, text.c_str());
      return;
    }
    constexpr size_t kWidth = 30;
    const size_t full = all_ ? kWidth * done_ / all_ : kWidth;
    const std::string shown = std::string(full, '#') + std::string(kWidth - full, '-');
    std::fprintf(stderr, "\r[%s] %s, %s left: %.60s\x1b[K%s", shown.c_str(), count.c_str(), eta,
                 text.c_str(), done_ == all_ ? "\n" : "");
  }

 private:
  size_t all_, done_ = 0, worked_ = 0;
  bool bar_;
  Clock::time_point begin_ = Clock::now();
};

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

void command_tune(const TuneArguments &arguments) {
  find_operator(arguments.op);
  const Shard shard = parse_shard(arguments.shard);
  const std::regex wanted = parse_names(arguments.kernels);
  const std::vector<std::string> cases = read_cases(arguments.cases_file, shard);
  LibraryHandle library;
  library.open(arguments.open);
  const flydsl_aot_info info = library.info();
  if (info.device == FLYDSL_AOT_DEVICE_NONE)
    bad_input("tune needs a device: --device emulator or hip");
  const std::string path =
      arguments.out.empty() ? default_file(arguments, info.arch, shard) : arguments.out;
  std::printf("device     %s\nshard      %zu of %zu, %zu cases\nrows       %s\n",
              describe_device(info).c_str(), shard.index + 1, shard.count, cases.size(),
              path.c_str());
  std::fflush(stdout);
  TuningFile file(path, arguments.resume);
  Progress progress(cases.size());
  size_t added = 0, there = 0, failed = 0;
  for (const std::string &text : cases) {
    if (file.has(text)) {
      ++there;
      progress.skip();
      continue;
    }
    try {
      file.add(row_of(tuned_case(arguments, wanted, library, text)));
      ++added;
      progress.step(text);
    } catch (const ToolError &error) {
      ++failed;
      progress.skip();
      std::fprintf(stderr, "flydsl-aot: case %s: %s\n", text.c_str(), error.what());
    }
  }
  file.finish();
  std::printf("tuned      %zu problems, %zu were there, %zu failed\n", added, there, failed);
  if (failed > 0) throw ToolError(kExitFailure, std::to_string(failed) + " cases have no row");
}

}  // namespace flydsl::tools
