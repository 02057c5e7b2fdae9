#include <algorithm>
#include <cstdio>

#include "tools/commands.h"
#include "tools/exit_status.h"
#include "tools/subprocess.h"

namespace flydsl::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char *kOperators[] = {
    "rms_norm", "layer_norm", "rms_norm_backward", "layer_norm_backward", "topk", "topk_softmax"};

// Both sides have to be in one process, PyTorch's: the script calls the library beside this program.
std::vector<std::string> script_command(const std::vector<std::string> &operators) {
  // build/bin/flydsl-aot lies two folders below the sources, as the presets put it.
  const fs::path build = program_folder().parent_path();
  const fs::path script = build.parent_path() / "test/cuda/bench_torch.py", library = build / "lib";
  if (!fs::exists(script))
    bad_input("--device cuda: no " + script.string() + "; it is for a build in a checkout");
  if (!fs::exists(library / "libflydsl_aot_cuda.so")) {
    bad_input("--device cuda: no libflydsl_aot_cuda.so in " + library.string() +
              "; configure with -DFLYDSL_AOT_CUDA=ON");
  }
  std::vector<std::string> command = {"python3", script.string(), "--library", library.string()};
  command.insert(command.end(), operators.begin(), operators.end());
  return command;
}

}  // namespace

void command_bench_cuda(const BenchArguments &arguments) {
  if (arguments.peers != "torch")
    bad_input("--device cuda times beside PyTorch only: give --peers torch");
  const ProblemArguments &problem = arguments.problem;
  if (!problem.inputs.empty() || !problem.settings.empty() || !problem.outputs.empty() ||
      arguments.json || !arguments.report_folder.empty())
    bad_input("--device cuda has problems of its own and one table: give operators only");
  std::vector<std::string> operators = {problem.op};
  operators.insert(operators.end(), arguments.more_operators.begin(),
                   arguments.more_operators.end());
  for (const std::string &op : operators) {
    if (std::find(std::begin(kOperators), std::end(kOperators), op) == std::end(kOperators))
      bad_input("--device cuda: '" + op +
                "' is not one of rms_norm, layer_norm, their backwards, topk, topk_softmax");
  }
  const ProgramResult result = run_program(script_command(operators));
  if (result.exit_status != 0)
    throw ToolError(
        kExitFailure,
        "bench_torch.py: " + last_line(result.errors.empty() ? result.output : result.errors));
  std::printf("%s", result.output.c_str());
}

}  // namespace flydsl::tools
