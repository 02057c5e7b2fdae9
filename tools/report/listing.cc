#include "tools/report/listing.h"

#include <algorithm>

#include "tools/report/format.h"
#include "tools/report/launches.h"
#include "tools/report/summary.h"

namespace flydsl::tools {

double total_stall_clocks(const TimingReport &report) {
  double total = 0;
  for (const ProfiledOperation &operation : report.profile) total += operation.stall_clocks;
  return total;
}

std::string stall_reasons(const ProfiledOperation &operation) {
  constexpr size_t kMost = 3;
  constexpr double kLeast = 0.005;  // what would print as 0 %
  std::string text;
  for (size_t i = 0; i < operation.stalls.size() && i < kMost; ++i) {
    const auto &[reason, clocks] = operation.stalls[i];
    const double share = clocks / operation.stall_clocks;
    if (share < kLeast) break;
    text += format("%s%s %.0f %%", i ? ", " : "", reason.c_str(), share * 100);
  }
  return text;
}

std::string annotated_listing(const TimingReport &report) {
  const double total = total_stall_clocks(report);
  const std::string which = which_launch(report);
  std::string text =
      "; " + report.kernel + (which.empty() ? "" : ", " + which) + "\n; " + provenance(report) +
      "\n; of one compute unit, all its waves: how often each instruction issued, the "
      "clocks that waves waited at it,\n; their share of all waiting, and why\n";
  text += format("; %8s %12s %7s  %-8s %-56s %s\n", "issued", "stall clocks", "share", "offset",
                 "instruction", "reasons");
  if (std::all_of(report.profile.begin(), report.profile.end(),
                  [](const ProfiledOperation &operation) { return operation.source.empty(); }))
    text +=
        "; the kernel has no line tables: no source lines (build with "
        "FLYDSL_AOT_KERNEL_LINES=ON)\n";
  std::string source;
  for (const ProfiledOperation &operation : report.profile) {
    if (!operation.source.empty() && operation.source != source) {
      source = operation.source;
      text += "; " + source + "\n";
    }
    std::string line = format(
        "%10llu %12.0f %7s  %08llx %-56s %s", static_cast<unsigned long long>(operation.issued),
        operation.stall_clocks, total > 0 ? percent(operation.stall_clocks / total).c_str() : "-",
        static_cast<unsigned long long>(operation.offset), operation.text.c_str(),
        stall_reasons(operation).c_str());
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace flydsl::tools
