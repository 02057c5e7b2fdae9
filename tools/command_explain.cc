#include <cstdio>
#include <cstdlib>

#include "tools/call_rows.h"
#include "tools/call_text.h"
#include "tools/commands.h"
#include "tools/exit_status.h"
#include "tools/library_handle.h"
#include "tools/problem_arguments.h"

namespace flydsl::tools {
namespace {

// The candidates of a call, with what was looked up above those of each of its kernels.
class Printer {
 public:
  static void print(void *user, const flydsl_aot_candidate *candidate) {
    static_cast<Printer *>(user)->print(*candidate);
  }
  // What the call ended with.
  void finish(flydsl_aot_status status, const std::string &what) const {
    if (status != FLYDSL_AOT_OK) fail_with_status(status, what, flydsl_aot_last_error());
    if (problem_.empty()) std::printf("no kernel is needed: the output is empty\n");
  }

 private:
  void print(const flydsl_aot_candidate &candidate) {
    if (problem_ != candidate.problem) std::printf("problem  %s\n", candidate.problem);
    problem_ = candidate.problem;
    std::printf("%-9s %s (%s): %s\n", candidate.taken ? "taken" : "not-taken", candidate.kernel,
                candidate.backend, candidate.reason);
  }

  std::string problem_;
};

flydsl_aot_info open_library(OpenArguments open, LibraryHandle *library) {
  if (open.device.empty() && !std::getenv("FLYDSL_AOT_DEVICE")) open.device = "none";
  library->open(open);
  return library->info();
}

// Addresses as the call had them, as far as they say anything: apart, of the same alignment, the same where they were the same.
// Nothing is there.
void place_nowhere(RecordedCall *call) {
  constexpr uint64_t kStep = 256;
  uint64_t next = uint64_t{1} << 32;
  for (CallBuffer &buffer : call->buffers()) {
    if (!buffer.alias.empty()) {
      for (const CallBuffer &before : call->buffers())
        if (before.member == buffer.alias) *buffer.pointer = *before.pointer;
      continue;
    }
    const uint64_t address = next + buffer.alignment % kStep;
    *buffer.pointer = reinterpret_cast<void *>(address);
    next = (address + buffer.bytes + kStep) / kStep * kStep;
  }
}

}  // namespace

void command_explain(const RunArguments &arguments) {
  const BoundProblem bound = bind_problem({arguments.op, arguments.inputs, arguments.settings, {}});
  const Operator &op = *bound.op;
  const std::unique_ptr<Problem> &problem = bound.problem;

  LibraryHandle library;
  const flydsl_aot_info info = open_library(arguments.open, &library);
  std::printf("operator %s\ndevice   %s\narchive  %s\n", op.name, describe_device(info).c_str(),
              info.archive_path);
  for (const BoundTensor &input : problem->inputs) {
    std::printf("input    %s %s %s\n", input.name.c_str(), format_shape(input.file_shape).c_str(),
                flydsl_aot_dtype_name(input.tensor->dtype));
  }
  for (const std::string &setting : problem->settings)
    std::printf("setting  %s\n", setting.c_str());
  Printer printer;
  const flydsl_aot_status status = problem->explain(library.get(), Printer::print, &printer);
  printer.finish(status, op.name);
}

void command_explain_calls(const OpenArguments &open, const std::string &file) {
  CallRows calls(file);
  LibraryHandle library;
  const flydsl_aot_info info = open_library(open, &library);
  std::printf("device   %s\narchive  %s\n", describe_device(info).c_str(), info.archive_path);
  for (CallRow row; calls.next(&row);) {
    RecordedCall call(row.where, row.op, row.problem);
    std::printf("line %-4zu %s %s\nrecorded %s\n", row.line, row.op.c_str(), row.problem.c_str(),
                row.kernels.c_str());
    place_nowhere(&call);
    Printer printer;
    const flydsl_aot_status status = call.explain(library.get(), Printer::print, &printer);
    printer.finish(status, row.where + ": " + row.op);
  }
}

}  // namespace flydsl::tools
