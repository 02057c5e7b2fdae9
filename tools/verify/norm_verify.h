// One case of rms_norm or layer_norm from its line to its verdict.
#pragma once

#include "tools/verify/attention_forward_verify.h"
#include "tools/verify/norm_case.h"

namespace flydsl::verify {

Outcome verify_norm_case(flydsl_aot_handle *handle, const NormSpec &spec);

}  // namespace flydsl::verify
