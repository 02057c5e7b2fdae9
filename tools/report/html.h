// The whole report as one page: no scripts, no links, nothing loaded from anywhere.
#pragma once

#include <string>

#include "tools/report/timing_report.h"

namespace flydsl::tools {

std::string html_report(const TimingReport &report);

}  // namespace flydsl::tools
