#include <cstdio>

#include "tools/commands.h"
#include "tools/cuda_device.h"
#include "tools/exit_status.h"
#include "tools/subprocess.h"

namespace flydsl::tools {
namespace {

namespace fs = std::filesystem;

// Both sides have to be in one process, PyTorch's: the script calls the library beside this program.
std::vector<std::string> script_command(const std::vector<std::string> &operators) {
  // build/bin/flydsl-aot lies two folders below the sources, as the presets put it.
  const fs::path build = program_folder().parent_path();
  const fs::path script = build.parent_path() / "test/cuda/bench_torch.py";
  if (!fs::exists(script))
    bad_input("--device cuda: no " + script.string() + "; it is for a build in a checkout");
  const fs::path library = cuda_library_folder();
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
  require_cuda_operators(operators);
  const ProgramResult result = run_program(script_command(operators));
  if (result.exit_status != 0)
    throw ToolError(
        kExitFailure,
        "bench_torch.py: " + last_line(result.errors.empty() ? result.output : result.errors));
  std::printf("%s", result.output.c_str());
}

}  // namespace flydsl::tools
