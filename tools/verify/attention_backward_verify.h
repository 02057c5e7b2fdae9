// One case of attention_backward from its spec to its verdict.
#pragma once

#include "tools/verify/attention_backward_spec.h"
#include "tools/verify/attention_backward_verdict.h"
#include "tools/verify/attention_forward_verify.h"

namespace flydsl::verify {

Outcome verify_backward_case(flydsl_aot_handle *handle, const BackwardSpec &spec);

// The oracle against the values that the spec says; "" or the first difference.
std::string check_wanted(const BackwardSpec &spec, const BackwardCase &c,
                         const BackwardReference &reference);

// Bit-for-bit equality of all gradients.
bool same_bits(const BackwardResult &a, const BackwardResult &b);

}  // namespace flydsl::verify
