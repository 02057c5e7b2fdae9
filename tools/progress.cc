#include "tools/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <sstream>

namespace flydsl::tools {
namespace {

// Of the terminal, as it is now. A line of all of them would go on to the next one.
size_t columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u : 79;
}

}  // namespace

Progress::Progress(size_t all) : all_(all), bar_(isatty(STDERR_FILENO) != 0) {
  draw("");
}

Progress::~Progress() {
  if (bar_) std::fputs("\n", stderr);
}

void Progress::skip() {
  ++done_;
  draw("");
}

void Progress::step(const std::string &text) {
  ++done_;
  ++worked_;
  if (bar_) {
    draw(text);
  } else {
    std::fprintf(stderr, "%zu/%zu, %s left: %s\n", done_, all_, left().c_str(), text.c_str());
  }
}

void Progress::note(const std::string &line) {
  std::fprintf(stderr, "%s%s\n", bar_ ? "\r\x1b[K" : "", line.c_str());
  draw("");
}

std::string Progress::left() const {
  if (done_ >= all_) return "0:00:00";
  if (worked_ == 0) return "?";
  const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
  const auto all = static_cast<long long>(seconds / static_cast<double>(worked_) *
                                          static_cast<double>(all_ - done_));
  char text[48];
  std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", all / 3600, all / 60 % 60, all % 60);
  return text;
}

void Progress::draw(const std::string &text) const {
  if (!bar_) return;
  constexpr size_t kWidth = 30;
  const size_t full = all_ ? kWidth * done_ / all_ : kWidth;
  std::ostringstream bar;
  bar << '[' << std::string(full, '#') << std::string(kWidth - full, '-') << "] " << done_ << '/'
      << all_ << ", " << left() << " left";
  if (!text.empty()) bar << ": " << text;
  const std::string line = bar.str().substr(0, columns());
  std::fprintf(stderr, "\r%s\x1b[K", line.c_str());
}

}  // namespace flydsl::tools
