#include "src/log/log.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
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

// Both signals are sent to the thread that writes, so that it can block and take them; how the process handles them stays as it is.
void write_at_once(int descriptor, const char *data, size_t bytes) noexcept {
  sigset_t sent, before, pending;
  sigemptyset(&sent);
  sigaddset(&sent, SIGPIPE);
  sigaddset(&sent, SIGXFSZ);
  if (pthread_sigmask(SIG_BLOCK, &sent, &before) != 0) return;
  // One that waits already is the process's own.
  sigpending(&pending);
  const ssize_t put = write(descriptor, data, bytes);
  const int number = put < 0 ? (errno == EPIPE ? SIGPIPE : errno == EFBIG ? SIGXFSZ : 0) : 0;
  if (number != 0 && !sigismember(&pending, number)) {
    sigset_t taken;
    sigemptyset(&taken);
    sigaddset(&taken, number);
    const timespec at_once{};
    while (sigtimedwait(&taken, nullptr, &at_once) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
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
  // One write keeps lines of several threads apart.
  write_at_once(STDERR_FILENO, line, static_cast<size_t>(used));
}

}  // namespace flydsl
