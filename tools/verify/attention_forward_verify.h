// One case of an attention operator from its line to its verdict.
#pragma once

#include <string>

#include "flydsl_aot/flydsl_aot.h"
#include "tools/verify/attention_forward_call.h"
#include "tools/verify/attention_forward_reference.h"
#include "tools/verify/attention_forward_spec.h"

namespace flydsl::verify {

struct Outcome {
  std::string fault;           // empty: passed
  std::string numbers;         // error over bound, the kernel; of a call that ran
  bool device_failed = false;  // a kernel faulted: what runs after it proves nothing
};

// `call`: of the operator that the case is for.
Outcome verify_attention_case(flydsl_aot_handle *handle, const AttentionSpec &spec,
                              AttentionResult (*call)(flydsl_aot_handle *, const AttentionCase &));

// The oracle against the values that the spec says; "" or the first difference.
std::string check_wanted(const AttentionSpec &spec, const AttentionCase &c,
                         const AttentionReference &reference);

// Of any attention operator. Whether a number worked out by hand is another one.
bool differs(double got, double wanted);
// Whether the call is one to judge: it succeeded, and was to. Else *outcome says the fault, none if it was refused as the
// spec says.
bool call_succeeded(const AttentionSpec &spec, const CallResult &result, Outcome *outcome);

}  // namespace flydsl::verify
