// What a modelled launch comes to, as lines for a terminal.
#pragma once

#include <string>

#include "tools/report/timing_report.h"

namespace flydsl::tools {

std::string summary_text(const TimingReport &report);
// Ours and each peer's on the same problem; empty without peers.
std::string peers_text(const TimingReport &report);
// "constants 0123456789abcdef, modelled: no GPU was asked"
std::string provenance(const TimingReport &report);

}  // namespace flydsl::tools
