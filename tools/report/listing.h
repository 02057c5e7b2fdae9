// The kernel's disassembly with what each instruction cost.
#pragma once

#include <string>

#include "tools/report/timing_report.h"

namespace flydsl::tools {

// All stall clocks of the profile.
double total_stall_clocks(const TimingReport &report);

// The reasons of a stall with their shares of its clocks: "lds 80 %, barrier 20 %".
std::string stall_reasons(const ProfiledOperation &operation);

std::string annotated_listing(const TimingReport &report);

}  // namespace flydsl::tools
