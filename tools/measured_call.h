// A call of an operator on a GPU.
#pragma once

#include "tools/library_handle.h"
#include "tools/problem_arguments.h"

namespace flydsl::tools {

// Microseconds that the device takes for one call: the median of replays of a graph of calls, between two events. Calls take
// turns on copies of the operands that no cache holds together. Not for the emulator, whose events tell host times.
double measured_call_us(const LibraryHandle &library, BoundProblem &bound);

}  // namespace flydsl::tools
