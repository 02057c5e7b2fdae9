// Cases of attention_forward with few queries, as attention_decode computes them: the same definition, so
// the same oracle and bounds.
#pragma once

#include "test/support/attention_forward_case.h"

namespace flydsl::test {

// Calls attention_decode on the emulator; expects that query and call agree and that nothing but the outputs and
// the workspace is written. The case's keys are dense, or have lengths as kUsed or kPaged.
AttentionResult run_decode(const AttentionCase &c);

// run_decode, and expects success and a right result (verify::judge).
AttentionResult check_decode(const AttentionCase &c);

}  // namespace flydsl::test
