// A call of an operator under the emulator's timing model.
#pragma once

#include "tools/emulator_library.h"
#include "tools/library_handle.h"
#include "tools/problem_arguments.h"
#include "tools/report/timing_report.h"

namespace flydsl::tools {

// The model's JSON, of several launches as join_launches() puts them together (report/launches.h), with what is known
// about the problem: "operator", "backend", "inputs", "settings", "data", "problem_flops", "problem_tflops",
// "host_seconds". With `detail` also "profile" and "timeline", of the longest launch. Only sampled work-groups run, so
// outputs are not results and are not read back.
Json model_launch(const LibraryHandle &library, const EmulatorLibrary &emulator,
                  BoundProblem &bound, bool detail);

}  // namespace flydsl::tools
