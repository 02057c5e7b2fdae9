#include "emulator/engine/crash_guard.h"

#include <setjmp.h>
#include <signal.h>
#include <xmmintrin.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <iterator>

#include "emulator/engine/environment.h"

namespace flydsl::emu {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
constexpr uint32_t kHostControl = 0x1f80;  // MXCSR as step.h's kHostDefault

// Plain data: a thread-local object with a destructor would keep the library loaded after dlclose.
thread_local sigjmp_buf t_return;
thread_local volatile bool t_armed = false;
thread_local volatile uint64_t t_address = 0;

struct sigaction g_before[std::size(kSignals)];

void on_signal(int signal, siginfo_t *info, void *context) {
  // Only what the processor raised: a signal that somebody sent is not ours.
  if (t_armed && info->si_code > 0) {
    t_armed = false;
    t_address = reinterpret_cast<uint64_t>(info->si_addr);
    siglongjmp(t_return, signal);
  }
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    if (kSignals[i] != signal) continue;
    const struct sigaction &before = g_before[i];
    if (before.sa_flags & SA_SIGINFO) return before.sa_sigaction(signal, info, context);
    if (before.sa_handler == SIG_IGN) return;
    if (before.sa_handler != SIG_DFL) return before.sa_handler(signal);
    // The instruction runs again and now ends the process as it would have.
    sigaction(signal, &before, nullptr);
    if (info->si_code <= 0) raise(signal);
  }
}

// Puts the handlers in place for as long as the library is loaded.
class Handlers {
 public:
  static bool installed() {
    static Handlers handlers;
    return handlers.installed_;
  }
  ~Handlers() {
    for (size_t i = 0; installed_ && i < std::size(kSignals); ++i) {
      struct sigaction now = {};
      sigaction(kSignals[i], nullptr, &now);
      if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_signal)
        sigaction(kSignals[i], &g_before[i], nullptr);
    }
  }

 private:
  Handlers() {
    installed_ = flag_variable("FLYDSL_EMU_CATCH_CRASHES", true);
    for (size_t i = 0; installed_ && i < std::size(kSignals); ++i) {
      struct sigaction action = {};
      action.sa_sigaction = on_signal;
      action.sa_flags = SA_SIGINFO | SA_ONSTACK;
      sigaction(kSignals[i], &action, &g_before[i]);
    }
  }
  bool installed_ = false;
};

const char *name_of(int signal) {
  return signal == SIGSEGV  ? "SIGSEGV"
         : signal == SIGBUS ? "SIGBUS"
         : signal == SIGILL ? "SIGILL"
                            : "SIGFPE";
}

}  // namespace

bool run_guarded(const std::function<void()> &body, std::string *what) {
  if (!Handlers::installed()) {
    body();
    return true;
  }
  const int signal = sigsetjmp(t_return, 1);
  if (signal != 0) {
    _mm_setcsr(kHostControl);
    char text[64];
    std::snprintf(text, sizeof text, "%s at host address 0x%" PRIx64, name_of(signal), t_address);
    *what = text;
    return false;
  }
  t_armed = true;
  struct Disarm {
    ~Disarm() { t_armed = false; }
  } disarm;
  body();
  return true;
}

}  // namespace flydsl::emu
