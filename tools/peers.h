// The kernels of others on the same problem under the same model, through test/emulator/peers.
#pragma once

#include <string>
#include <vector>

#include "tools/emulator_library.h"
#include "tools/operators.h"
#include "tools/report/timing_report.h"

namespace flydsl::tools {

// "aiter,triton" as a list; refuses unknown, empty and repeated names.
std::vector<std::string> parse_peers(const std::string &text);

// Runs timing.py of test/emulator/peers on this emulator: its lines of JSON. Throws ToolError if the launcher or
// the kernels are not there, saying where they were looked for and how to get them, or if it fails; `option` is what
// asked for it, for the message.
Json run_timing_script(const std::string &option, const EmulatorLibrary &emulator,
                       const std::vector<std::string> &arguments);

// An object for each of `peers` in their order, for TimingReport::peers, under the same constants.
Json model_peers(const EmulatorLibrary &emulator, const Operator &op, const Problem &problem,
                 const std::vector<std::string> &peers, const std::string &constants_hash);

}  // namespace flydsl::tools
