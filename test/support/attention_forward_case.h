// Cases of attention_forward (tools/verify) as tests call them: on the emulator, faults as failures.
#pragma once

#include <string>

#include "test/support/seed.h"
#include "tools/verify/attention_forward_verdict.h"
#include "tools/verify/random.h"

namespace flydsl::test {

using namespace verify;

// Calls, on the shared handle unless another is given; expects that query and call agree and the device
// finishes.
AttentionResult run_attention(const AttentionCase &c, flydsl_aot_handle *handle = nullptr);

// run_attention, and expects success and a right result (verify::judge). Returns the result;
// *reference_out, if given, receives the oracle's answer.
AttentionResult check_attention(const AttentionCase &c, AttentionReference *reference_out = nullptr,
                                flydsl_aot_handle *handle = nullptr);

// Name of the instance that must serve a case: `staged` when something is not aligned to 16 bytes.
// A bound that hides nothing is no bound; head dims that are no multiple of 8 or above 256, and features other than
// bounds and lengths, take the general instance of their class.
std::string instance_name(const AttentionCase &c, bool staged);

}  // namespace flydsl::test
