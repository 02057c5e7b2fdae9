// The library opened on the emulator, once per test program.
#pragma once

#include "flydsl_aot/flydsl_aot.h"

namespace flydsl::test {

// Never null: ends the program with the library's message if it cannot be opened, since no test
// could then say anything.
flydsl_aot_handle *emulator();

// A handle of its own (empty kernel cache); the caller closes it.
flydsl_aot_handle *open_emulator();

}  // namespace flydsl::test
