// The subcommands of flydsl-aot. Each prints its result on stdout and throws ToolError on failure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/arguments.h"
#include "tools/problem_arguments.h"

namespace flydsl::tools {

void command_info(const OpenArguments &open);

struct RunArguments {
  OpenArguments open;
  std::string op;
  std::vector<std::string> inputs;    // NAME=FILE
  std::vector<std::string> outputs;   // NAME=FILE
  std::vector<std::string> settings;  // PARAM=VALUE
  int repeat = 1;                     // timed calls after the first
};
void command_run(const RunArguments &arguments);

// Calls from a file that FLYDSL_AOT_VERBOSE wrote.
void command_replay(const OpenArguments &open, const std::string &file);

// As run, but nothing is executed; --set NAME=SHAPE may stand for --in NAME=FILE.
void command_explain(const RunArguments &arguments);
// Calls from a file that FLYDSL_AOT_VERBOSE wrote.
void command_explain_calls(const OpenArguments &open, const std::string &file);

// An operator under the emulator's timing model.
struct BenchArguments {
  OpenArguments open;
  ProblemArguments problem;
  bool json = false;
  std::string report_folder;  // "": none
  std::string peers;          // "aiter,triton"; "": none
  std::vector<std::string> more_operators;  // of command_bench_cuda
};
void command_bench(const BenchArguments &arguments);

// Operators beside PyTorch's on an NVIDIA GPU, measured: test/cuda.
void command_bench_cuda(const BenchArguments &arguments);

// The same, its timeline to a file.
struct TraceArguments {
  OpenArguments open;
  ProblemArguments problem;
  std::string file;
  size_t events = 200000;
};
void command_trace(const TraceArguments &arguments);

// The timing model against published speeds of kernels whose machine code is public.
struct CalibrationArguments {
  OpenArguments open;
  bool json = false;
  std::string only;  // regular expression on the cases' names; "": all
};
void command_calibration(const CalibrationArguments &arguments);

// The kernels that could compute each of some problems, timed: rows of tuning/<arch>/<op>.jsonl.
struct TuneArguments {
  OpenArguments open;
  std::string op;
  std::string cases_file;
  std::string shard = "1/1";
  std::string out;  // "": tuning/<arch>/<op>.jsonl, with the shard in its name if there are several
  bool resume = false;
  size_t most_candidates = 16;
  std::string kernels;  // regular expression on their names
};
void command_tune(const TuneArguments &arguments);

// How fast the emulator is on this host, one thread.
void command_bench_emulator(bool json);

// Cases of an operator against the oracle (tools/verify).
struct VerifyArguments {
  OpenArguments open;
  std::string op;
  std::string suite = "smoke";  // prefix of names
  std::string cases_file;       // "": test/cases/<op>.txt as it was when this was built
  std::string line;             // one case, in place of a list
  std::string only;             // regular expression on names; "": all
  int64_t fuzz = 0;             // random cases, in place of a list
  std::string lines;            // regular expression on their lines; "": all
  uint64_t seed = 0;            // the first of theirs, or added to that of every case
  bool verbose = false;
};
int command_verify(const VerifyArguments &arguments);  // returns the exit status

void command_archive_list(const std::string &path);
void command_archive_verify(const std::string &path);

}  // namespace flydsl::tools
