#include "emulator/checks/all_checks.h"

#include <algorithm>

#include "emulator/checks/check.h"

namespace flydsl::emu::checks {

const Entry kAllChecks[] = {
    {"limits", nullptr, make_limits},
    {"align", nullptr, make_align},
    {"waitcnt", nullptr, make_waitcnt},
    {"defined", nullptr, make_defined},
    {"race", make_race_state, make_race},
    {"hazard", make_hazard_state, make_hazard},
    {"barrier", make_barrier_state, make_barrier},
};
const uint32_t kAllChecksCount = sizeof kAllChecks / sizeof *kAllChecks;

bool parse_checks(const std::string &text, uint32_t &mask) {
  mask = 0;
  if (text.empty() || text == "0") return true;
  if (text == "all") return mask = (1u << kAllChecksCount) - 1, true;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string name = text.substr(at, comma - at);
    uint32_t n = 0;
    while (n < kAllChecksCount && name != kAllChecks[n].name) ++n;
    if (n == kAllChecksCount) return false;
    mask |= 1u << n;
    at = comma + 1;
  }
  return true;
}

std::string check_names() {
  std::string names;
  for (const Entry &e : kAllChecks) names += std::string(" ") + e.name;
  return names;
}

}  // namespace flydsl::emu::checks
