// The timeline of the simulated compute unit in the Trace Event Format, which Perfetto
// (https://ui.perfetto.dev) and chrome://tracing load.
#pragma once

#include <string>

#include "tools/report/timing_report.h"

namespace flydsl::tools {

// A process a SIMD with a track for each of its waves, and a process a unit; a clock is shown as a
// microsecond. Of the events at most `limit`, the earliest.
std::string chrome_trace(const TimingReport &report, size_t limit);

}  // namespace flydsl::tools
