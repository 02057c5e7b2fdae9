// Calls of operators that launch several kernels, one after the other.
#pragma once

#include <string>
#include <vector>

#include "tools/report/timing_report.h"

namespace flydsl::tools {

// Index of the first one with the most seconds.
size_t longest_launch(const std::vector<Json> &launches);

// One launch: `longest` as it is. Several: of all together are "seconds", "clocks", "matrix_flops", "hbm_bytes", "l2_bytes",
// "lds_hypotheses" and the rates from them, with "peak" of the launch that has most matrix flops; the rest, as
// "kernel", "grid", "utilisation", "stalls" and "profile", is `longest`'s. Added: "launches", each one's JSON, and
// "longest_launch", its index.
Json join_launches(const std::vector<Json> &launches, const Json &longest);

// What join_launches() made, back to the longest launch alone.
Json only_longest_launch(Json call);

// A line a launch, and what the lines of summary_text() are of; empty for one launch.
std::string launches_text(const TimingReport &report);
// "launch 1 of 2, the longest"; empty for one launch.
std::string which_launch(const TimingReport &report);
// All kernels, in order.
std::string kernel_names(const TimingReport &report);

}  // namespace flydsl::tools
