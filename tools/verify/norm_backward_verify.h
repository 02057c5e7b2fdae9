// One case of rms_norm_backward or layer_norm_backward from its line to its verdict.
#pragma once

#include "tools/verify/attention_forward_verify.h"
#include "tools/verify/norm_backward_case.h"

namespace flydsl::verify {

Outcome verify_norm_backward_case(flydsl_aot_handle *handle, const NormBackwardSpec &spec);

}  // namespace flydsl::verify
