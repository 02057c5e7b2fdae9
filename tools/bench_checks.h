// What the emulator's checks cost: attention with FLYDSL_EMU_CHECKS=all against the same without.
#pragma once

#include "tools/library_handle.h"

namespace flydsl::tools {

// bf16, one batch, 2 heads, 1024 rows and keys, head dim 128, no mask.
inline constexpr const char *kChecksWorkload = "attention_forward bf16 2x1024x128";

// Processor time with all checks over processor time without, one host thread, the least of several runs each.
double checks_all_slowdown(const LibraryHandle &library);

}  // namespace flydsl::tools
