// One case of scaled_gemm from its line to its verdict.
#pragma once

#include "tools/verify/attention_forward_verify.h"
#include "tools/verify/scaled_gemm_case.h"

namespace flydsl::verify {

Outcome verify_scaled_gemm_case(flydsl_aot_handle *handle, const ScaledGemmSpec &spec);

}  // namespace flydsl::verify
