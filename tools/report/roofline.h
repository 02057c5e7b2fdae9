// The roofline plot (Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009): speed of the matrix units over
// arithmetic intensity, flops executed per byte of HBM traffic.
#pragma once

#include "tools/report/drawing.h"
#include "tools/report/timing_report.h"

namespace flydsl::tools {

Drawing roofline(const TimingReport &report);

}  // namespace flydsl::tools
