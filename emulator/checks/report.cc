#include <cinttypes>
#include <cstdio>

#include "emulator/checks/check.h"

namespace flydsl::emu::checks {

std::string hex(uint64_t x) {
  char s[24];
  std::snprintf(s, sizeof s, "0x%" PRIx64, x);
  return s;
}

void report(const char *check, Wave &wave, const Op &op, int lane, const std::string &what) {
  if (wave.stop == Stop::kFault) return;
  const auto line = [&] { return place_of(wave, op, lane) + ": " + check + ": " + what; };
  Reports &reports = *wave.memory->group->reports;
  if (!reports.warn) {
    wave.memory->group->fault = line();
    wave.stop = Stop::kFault;
    return;
  }
  std::lock_guard<std::mutex> lock(reports.mutex);
  if (!reports.seen.insert({check, uint64_t(&op - wave.ops)}).second) return;
  reports.lines.push_back(line());
  std::fprintf(stderr, "flydsl_emu: %s\n", reports.lines.back().c_str());
}

}  // namespace flydsl::emu::checks
