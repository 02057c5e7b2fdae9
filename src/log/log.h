// Logging to stderr, off unless FLYDSL_AOT_LOG=error|warn|info|debug asks for it (each level
// includes those before it). The level is read once, at the first message.
#pragma once

#include <atomic>
#include <cstddef>

namespace flydsl {

enum class LogLevel { Off = 0, Error = 1, Warn = 2, Info = 3, Debug = 4 };

// The level a value of FLYDSL_AOT_LOG stands for; Off for null and for anything unknown.
LogLevel parse_log_level(const char *value) noexcept;

// -1: FLYDSL_AOT_LOG was not looked at yet.
extern std::atomic<int> log_level;
int read_log_level() noexcept;

inline bool log_enabled(LogLevel level) noexcept {
  const int current = log_level.load(std::memory_order_relaxed);
  return static_cast<int>(level) <= (current < 0 ? read_log_level() : current);
}

// One write, whose failure is nobody's concern; nor do the signals that the system sends for some failures reach the process: SIGPIPE
// (nobody reads the pipe any more), SIGXFSZ (the file is at the process's limit).
void write_at_once(int descriptor, const char *data, size_t bytes) noexcept;

// One line: "flydsl_aot <level>: <message>", written with a single write.
__attribute__((format(printf, 2, 3))) void log_line(LogLevel level, const char *format,
                                                    ...) noexcept;

}  // namespace flydsl

// The arguments are not evaluated when the level is off.
#define FLYDSL_LOG(level, ...)                                    \
  do {                                                            \
    if (::flydsl::log_enabled(::flydsl::LogLevel::level))         \
      ::flydsl::log_line(::flydsl::LogLevel::level, __VA_ARGS__); \
  } while (0)
