// Host signals (SIGSEGV, SIGBUS, SIGILL, SIGFPE) while emulated code runs: a mistake of the emulator,
// or memory that its owner unmapped meanwhile, ends the launch and not the process.
#pragma once

#include <functional>
#include <string>

namespace flydsl::emu {

// Calls body(). False, with what happened in *what, when a signal of this thread ended it; what body()
// had constructed on its stack is then lost. FLYDSL_EMU_CATCH_CRASHES=0 leaves signals alone.
bool run_guarded(const std::function<void()> &body, std::string *what);

}  // namespace flydsl::emu
