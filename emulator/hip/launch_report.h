// What the flydsl_emu_* functions tell about launches.
#pragma once

#include <string>

#include "emulator/engine/dispatch.h"

namespace flydsl::emu::hip {

// Keeps the result for the calling thread and, if it is a fault, prints it to stderr as one block
// and keeps its text for the process.
void report_dispatch(const DispatchResult &result);

}  // namespace flydsl::emu::hip
