// The flydsl-aot command: argument parsing only. Exit status: 0 ok, 1 cases of verify failed, 2 usage or bad input, 3
// unsupported by the library, 4 device or archive failure. An error is one line on stderr.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "tools/commands.h"
#include "tools/exit_status.h"
#include "tools/library_handle.h"
#include "tools/operators.h"

namespace {

using namespace flydsl::tools;

constexpr const char *kSettings =
    "PARAM=VALUE; or, for an input without a file, NAME=SHAPE (q=1x9x509x64: random values), "
    "NAME=LIST (seqused_k=5,9,1) or NAME=NUMBER (dropout_seed=7)";

int report(int exit_status, std::string message) {
  // One line, and nothing in a file name that a terminal would obey.
  std::replace_if(
      message.begin(), message.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  std::fflush(stdout);
  std::fprintf(stderr, "flydsl-aot: error: %s\n", message.c_str());
  return exit_status;
}

// `others`: devices of this command alone.
void add_open_options(CLI::App *command, OpenArguments &open, const std::string &default_device,
                      const std::vector<std::string> &others = {}) {
  std::vector<std::string> devices = {"hip", "emulator", "none"};
  devices.insert(devices.end(), others.begin(), others.end());
  std::string named;
  for (const std::string &device : others) named += ", or " + device;
  command
      ->add_option("--device", open.device,
                   "hip, emulator or none" + named + "; default: FLYDSL_AOT_DEVICE, else " + default_device)
      ->check(CLI::IsMember(devices));
  command->add_option("--arch", open.arch,
                      std::string("architecture, e.g. gfx950; must be the device's when there is "
                                  "one; default without a device: ") +
                          kDefaultArch);
  command->add_option("--archive", open.archive,
                      "archive file, or directory that holds flydsl_aot.<arch>.fda");
  const CLI::Validator not_empty(
      [](const std::string &text) { return std::string(text.empty() ? "is empty" : ""); }, "");
  command
      ->add_option("--force-kernel", open.force_kernel,
                   "kernels to run whatever else fits, with commas; default: FLYDSL_AOT_FORCE_KERNEL")
      ->check(not_empty);
  command
      ->add_option("--backend", open.backends,
                   "backends whose kernels may run, with commas; default: FLYDSL_AOT_BACKENDS, else all")
      ->check(not_empty);
  command
      ->add_option("--jit", open.jit,
                   "on: kernels that the archive lacks may be compiled (hipRTC); off; default: FLYDSL_AOT_JIT, else off")
      ->check(CLI::IsMember(std::vector<std::string>{"on", "off"}));
}

void add_list(CLI::App *command, const char *option, std::vector<std::string> &values,
              const char *help) {
  // One value an occurrence: `--in q=a k=b` is an error, not two inputs.
  command->add_option(option, values, help)->expected(1)->allow_extra_args(false)->take_all();
}

void add_problem_options(CLI::App *command, OpenArguments &open, ProblemArguments &problem,
                         const std::vector<std::string> &others = {}) {
  add_open_options(command, open, "hip (refused: there is no timing model of a real device)",
                   others);
  add_list(command, "--in", problem.inputs, "NAME=FILE.npy, in place of random values");
  add_list(command, "--set", problem.settings, kSettings);
  add_list(command, "--out", problem.outputs, "NAME of an optional output to compute as well");
}

std::string version_text() {
  const uint32_t version = flydsl_aot_version();
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

int run(int argc, char **argv) {
  CLI::App app("Runs and inspects ahead-of-time AMD GPU kernels, on a GPU or on the emulator.",
               "flydsl-aot");
  app.require_subcommand(1);
  app.set_version_flag("--version", "flydsl-aot " + version_text());
  std::string operators = "Operators\n";
  for (const Operator *op : all_operators()) operators += describe_operator(*op);
  const std::string exits =
      "Exit status: 0 ok, 2 usage or bad input, 3 unsupported by the library, 4 device or archive "
      "failure.";

  OpenArguments info_arguments;
  CLI::App *info = app.add_subcommand("info", "Library, device, archive and kernels");
  add_open_options(info, info_arguments, "hip, or none on a machine without a GPU");

  RunArguments run_arguments;
  CLI::App *run =
      app.add_subcommand("run", "Run an operator on arrays from .npy files, or on random ones");
  CLI::Option *run_operator = run->add_option("OP", run_arguments.op, "operator");
  add_open_options(run, run_arguments.open, "hip");
  add_list(run, "--in", run_arguments.inputs, "NAME=FILE.npy, once per input");
  add_list(run, "--out", run_arguments.outputs, "NAME=FILE.npy, once per output");
  add_list(run, "--set", run_arguments.settings, kSettings);
  run->add_option("--repeat", run_arguments.repeat, "timed calls after the first, default 1")
      ->check(CLI::Range(0, 1000000));
  std::string replay_file;
  CLI::Option *replay = run->add_option("--replay", replay_file,
                                        "calls that FLYDSL_AOT_VERBOSE wrote to this file, in place of OP")
                            ->excludes(run_operator);
  for (const char *option : {"--in", "--out", "--set", "--repeat"})
    replay->excludes(run->get_option(option));
  run->footer(operators + exits);

  RunArguments explain_arguments;
  CLI::App *explain =
      app.add_subcommand("explain", "Which kernel would run, and why the others would not");
  CLI::Option *explain_operator = explain->add_option("OP", explain_arguments.op, "operator");
  add_open_options(explain, explain_arguments.open, "none");
  add_list(explain, "--in", explain_arguments.inputs, "NAME=FILE.npy, once per input");
  add_list(explain, "--set", explain_arguments.settings, kSettings);
  std::string explain_file;
  CLI::Option *explain_calls =
      explain
          ->add_option("--replay", explain_file,
                       "each of the calls that FLYDSL_AOT_VERBOSE wrote to this file, in place of OP")
          ->excludes(explain_operator);
  for (const char *option : {"--in", "--set"}) explain_calls->excludes(explain->get_option(option));
  explain->footer(operators + "(explain takes no --out.)\n" + exits);

  CLI::App *archive = app.add_subcommand("archive", "Inspect a kernel archive");
  archive->require_subcommand(1);
  std::string archive_file;
  CLI::App *list = archive->add_subcommand("list", "List the kernels of an archive");
  list->add_option("FILE", archive_file, "archive")->required();
  CLI::App *verify =
      archive->add_subcommand("verify", "Read, check and inflate every kernel of an archive");
  verify->add_option("FILE", archive_file, "archive")->required();

  CLI::App *bench = app.add_subcommand(
      "bench",
      "What an operator would cost: the emulator's timing model, always labelled modelled");
  BenchArguments bench_arguments;
  const CLI::Validator not_empty(
      [](const std::string &text) { return std::string(text.empty() ? "is empty" : ""); }, "");
  bench->add_option("OP", bench_arguments.problem.op, "operator");
  bench->add_option("MORE", bench_arguments.more_operators,
                    "with --device cuda --peers torch, measured on an NVIDIA GPU: more operators");
  add_problem_options(bench, bench_arguments.open, bench_arguments.problem, {"cuda"});
  bench->add_flag("--json", bench_arguments.json, "one JSON object");
  bench
      ->add_option("--report", bench_arguments.report_folder,
                   "folder for report.html, report.json, annotated.txt and roofline.png")
      ->check(not_empty);
  bench
      ->add_option("--peers", bench_arguments.peers,
                   "others on the same problem under the same model: aiter, triton, flydsl, "
                   "comma-separated; FLYDSL_AOT_PEERS_DIR names test/emulator/peers of a checkout")
      ->check(not_empty);
  bench->footer(operators + exits);
  bench->require_subcommand(0, 1);
  bool bench_json = false;
  CLI::App *bench_emulator = bench->add_subcommand(
      "emulator", "The emulator on this host, one thread: host speed, never a GPU's");
  bench_emulator->add_flag("--json", bench_json, "one JSON object");

  CLI::App *bench_calibration = bench->add_subcommand(
      "calibration",
      "The timing model against published speeds of others' kernels (FLYDSL_AOT_PEERS_DIR as for "
      "--peers); minutes");
  CalibrationArguments calibration_arguments;
  add_open_options(bench_calibration, calibration_arguments.open, "emulator");
  bench_calibration->add_flag("--json", calibration_arguments.json, "one JSON object");
  bench_calibration->add_option("--only", calibration_arguments.only,
                                "regular expression on the names of cases");

  CLI::App *trace = app.add_subcommand(
      "trace", "The modelled timeline of a compute unit, for Perfetto and chrome://tracing");
  TraceArguments trace_arguments;
  trace->add_option("OP", trace_arguments.problem.op, "operator")->required();
  add_problem_options(trace, trace_arguments.open, trace_arguments.problem);
  trace->add_option("-o", trace_arguments.file, "the trace's JSON file")->required();
  trace->add_option("--events", trace_arguments.events, "most instructions to show, default 200000")
      ->check(CLI::Range(1, 10000000));
  trace->footer(operators + exits);

  CLI::App *tune = app.add_subcommand(
      "tune", "Times every kernel that could compute each of some problems; rows for tuning/");
  TuneArguments tune_arguments;
  tune->add_option("OP", tune_arguments.op, "operator")->required();
  add_open_options(tune, tune_arguments.open, "hip", {"cuda"});
  tune->add_option("--cases", tune_arguments.cases_file,
                   "file of problems, each a line of --set values: q=1x16x4096x128 ... causal=top-left")
      ->required();
  tune->add_option("--shard", tune_arguments.shard, "I/N: every N-th case from the I-th on, default 1/1");
  tune->add_option("--out", tune_arguments.out,
                   "file of rows, default tuning/ARCH/OP.jsonl, of a shard tuning/ARCH/OP.IofN.jsonl");
  tune->add_flag("--resume", tune_arguments.resume, "goes on with a file that is there");
  tune->add_option("--candidates", tune_arguments.most_candidates,
                   "most kernels a problem, in explain's order; default 16")
      ->check(CLI::Range(1, 64));
  tune->add_option("--kernels", tune_arguments.kernels,
                   "regular expression on their names: only such are timed, and the one taken without tuning");
  tune->footer(operators + exits);

  CLI::App *check = app.add_subcommand(
      "verify", "Cases of an operator on the device that is open, against float64");
  VerifyArguments verify_arguments;
  check->add_option("OP", verify_arguments.op, "operator")->required();
  add_open_options(check, verify_arguments.open, "hip");
  check->add_option("--suite", verify_arguments.suite, "smoke (default) or full: which cases")
      ->check(CLI::IsMember({"smoke", "full"}));
  check->add_option("--cases", verify_arguments.cases_file,
                    "file of cases, in place of those that came with the command");
  CLI::Option *one_case = check->add_option("--case", verify_arguments.line, "one case, as a line");
  check->add_option("--only", verify_arguments.only, "regular expression on the names of cases");
  CLI::Option *fuzz =
      check
          ->add_option("--fuzz", verify_arguments.fuzz,
                       "as many random cases instead; their seeds count from --seed")
          ->check(CLI::Range(1, 1000000000))
          ->excludes(one_case);
  check
      ->add_option("--lines", verify_arguments.lines,
                   "regular expression on the lines of random cases: only such")
      ->needs(fuzz);
  check->add_option("--seed", verify_arguments.seed, "added to the seed of every case");
  check->add_flag("--verbose", verify_arguments.verbose, "also a line for each case that passes");
  check->footer(
      "Prints 'N passed, N failed', and for each case that fails its worst element and a line that "
      "repeats it.\nExit status: 0 all passed, 1 some failed, 2 usage or bad input, 4 device or "
      "archive failure.");

  if (argc < 2 || argv[1][0] != '-') {  // CLI11 would only say that a command is required
    std::string known;
    bool found = false;
    for (const CLI::App *command : app.get_subcommands(nullptr)) {
      found = found || (argc > 1 && command->get_name() == argv[1]);
      known.append(known.empty() ? "" : ", ").append(command->get_name());
    }
    if (argc < 2)
      return report(kExitBadInput, "a command is missing: " + known + " (see flydsl-aot --help)");
    if (!found) {
      return report(kExitBadInput,
                    "command '" + std::string(argv[1]) + "' is unknown; there is " + known);
    }
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    return report(kExitBadInput, error.what());
  }
  if (*info) command_info(info_arguments);
  if (*run && !*replay && !*run_operator) bad_input("run needs an operator, or --replay FILE");
  if (*run && *replay) command_replay(run_arguments.open, replay_file);
  if (*run && !*replay) command_run(run_arguments);
  if (*explain && !*explain_calls && !*explain_operator)
    bad_input("explain needs an operator, or --replay FILE");
  if (*explain && *explain_calls) command_explain_calls(explain_arguments.open, explain_file);
  if (*explain && !*explain_calls) command_explain(explain_arguments);
  if (*bench_emulator) {
    command_bench_emulator(bench_json);
  } else if (*bench_calibration) {
    command_calibration(calibration_arguments);
  } else if (*bench) {
    if (bench_arguments.problem.op.empty())
      bad_input("bench needs an operator, calibration or emulator (see flydsl-aot bench --help)");
    if (bench_arguments.open.device == "cuda") {
      command_bench_cuda(bench_arguments);
    } else {
      if (!bench_arguments.more_operators.empty())
        bad_input("bench takes one operator; " + bench_arguments.more_operators.front() +
                  " is another (several are for --device cuda)");
      command_bench(bench_arguments);
    }
  }
  if (*trace) command_trace(trace_arguments);
  if (*tune) command_tune(tune_arguments);
  if (*list) command_archive_list(archive_file);
  if (*verify) command_archive_verify(archive_file);
  const int exit_status = *check ? command_verify(verify_arguments) : kExitOk;
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    return report(kExitFailure, "cannot write to stdout");
  return exit_status;
}

}  // namespace

int main(int argc, char **argv) {
  try {
    return run(argc, argv);
  } catch (const ToolError &error) {
    return report(error.exit_status(), error.what());
  } catch (const std::bad_alloc &) {
    return report(kExitFailure, "out of host memory");
  } catch (const std::exception &error) {
    return report(kExitFailure, error.what());
  }
}
