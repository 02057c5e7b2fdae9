#include <cstdio>
#include <cstdlib>

#include "tools/commands.h"
#include "tools/exit_status.h"
#include "tools/library_handle.h"
#include "tools/problem_arguments.h"

namespace flydsl::tools {
namespace {

void print_candidate(void *user, const flydsl_aot_candidate *candidate) {
  ++*static_cast<int *>(user);
  std::printf("%-9s %s (%s): %s\n", candidate->taken ? "taken" : "not-taken", candidate->kernel,
              candidate->backend, candidate->reason);
}

}  // namespace

void command_explain(const RunArguments &arguments) {
  const BoundProblem bound = bind_problem({arguments.op, arguments.inputs, arguments.settings, {}});
  const Operator &op = *bound.op;
  const std::unique_ptr<Problem> &problem = bound.problem;

  OpenArguments open = arguments.open;
  if (open.device.empty() && !std::getenv("FLYDSL_AOT_DEVICE")) open.device = "none";
  LibraryHandle library;
  library.open(open);
  const flydsl_aot_info info = library.info();
  std::printf("operator %s\ndevice   %s\narchive  %s\n", op.name, describe_device(info).c_str(),
              info.archive_path);
  for (const BoundTensor &input : problem->inputs) {
    std::printf("input    %s %s %s\n", input.name.c_str(), format_shape(input.file_shape).c_str(),
                flydsl_aot_dtype_name(input.tensor->dtype));
  }
  for (const std::string &setting : problem->settings)
    std::printf("setting  %s\n", setting.c_str());

  int candidates = 0;
  const flydsl_aot_status status = problem->explain(library.get(), print_candidate, &candidates);
  if (status != FLYDSL_AOT_OK) fail_with_status(status, op.name, flydsl_aot_last_error());
  if (candidates == 0) std::printf("no kernel is needed: the output is empty\n");
}

}  // namespace flydsl::tools
