#include "src/log/log.h"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace flydsl {
namespace {

constexpr const char *kNames[] = {"off", "error", "warn", "info", "debug"};

}  // namespace

std::atomic<int> log_level{-1};

LogLevel parse_log_level(const char *value) noexcept {
  for (int i = 1; value && i <= 4; ++i) {
    if (std::strcmp(value, kNames[i]) == 0) return static_cast<LogLevel>(i);
  }
  return LogLevel::Off;
}

int read_log_level() noexcept {
  const char *value = std::getenv("FLYDSL_AOT_LOG");
  const int current = static_cast<int>(parse_log_level(value));
  log_level.store(current, std::memory_order_relaxed);
  if (current == 0 && value && *value && std::strcmp(value, kNames[0]) != 0)
    log_line(LogLevel::Warn, "FLYDSL_AOT_LOG is '%s'; allowed: off, error, warn, info, debug",
             value);
  return current;
}

void log_line(LogLevel level, const char *format, ...) noexcept {
  char line[4600];
  int used = std::snprintf(line, sizeof line, "flydsl_aot %s: ", kNames[static_cast<int>(level)]);
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(line + used, sizeof line - used - 1, format, arguments);
  va_end(arguments);
  if (length < 0) return;
  const int room = static_cast<int>(sizeof line) - used - 2;
  used += length < room ? length : room;
  line[used++] = '\n';
  // One write keeps lines of several threads apart; a failing stderr is not this library's concern.
  if (write(STDERR_FILENO, line, static_cast<size_t>(used)) < 0) return;
}

}  // namespace flydsl
