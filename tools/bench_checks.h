// What the emulator's checks cost: attention with FLYDSL_EMU_CHECKS=all against the same without.
#pragma once

namespace flydsl::tools {

// bf16, one batch, 2 heads, 1024 rows and keys, head dim 128, no mask.
inline constexpr const char *kChecksWorkload = "attention_forward bf16 2x1024x128";

// Processor time with all checks over processor time without, one host thread, the least of several runs each.
// To be called before the process has the emulator open: it reads at its first allocation whether to track undefined memory.
double checks_all_slowdown();

}  // namespace flydsl::tools
