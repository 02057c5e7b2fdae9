// One case of rms_norm from its line to its verdict.
#pragma once

#include "tools/verify/attention_forward_verify.h"
#include "tools/verify/rms_norm_case.h"

namespace flydsl::verify {

Outcome verify_rms_norm_case(flydsl_aot_handle *handle, const RmsNormSpec &spec);

}  // namespace flydsl::verify
