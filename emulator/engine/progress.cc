#include "emulator/engine/progress.h"

#include <unistd.h>

#include <cinttypes>
#include <cstdio>

#include "emulator/engine/environment.h"

namespace flydsl::emu {
namespace {

constexpr auto kQuiet = std::chrono::seconds(1), kAtOnce = std::chrono::seconds(0);
constexpr auto kPause = std::chrono::milliseconds(200);

}  // namespace

Progress::Progress(const std::string &kernel, uint64_t groups) : kernel_(kernel), groups_(groups) {
  constexpr char kVariable[] = "FLYDSL_EMU_PROGRESS";
  const bool at_once = flag_variable(kVariable, false);
  enabled_ = flag_variable(kVariable, isatty(STDERR_FILENO) != 0);
  start_ = Clock::now();
  next_ = start_ + (at_once ? kAtOnce : kQuiet);
}

void Progress::group_done() {
  if (!enabled_) return;
  std::lock_guard lock(mutex_);
  ++done_;
  const auto now = Clock::now();
  if (now < next_) return;
  next_ = now + kPause;
  shown_ = true;
  std::fprintf(stderr, "\rflydsl_emu: %.60s: %" PRIu64 " of %" PRIu64 " work-groups, %.0f s\033[K",
               kernel_.c_str(), done_, groups_,
               std::chrono::duration<double>(now - start_).count());
  std::fflush(stderr);
}

Progress::~Progress() {
  if (!shown_) return;
  std::fprintf(stderr, "\r\033[K");
  std::fflush(stderr);
}

}  // namespace flydsl::emu
