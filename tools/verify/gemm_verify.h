// One case of gemm from its line to its verdict.
#pragma once

#include "tools/verify/attention_forward_verify.h"
#include "tools/verify/attention_result.h"
#include "tools/verify/gemm_case.h"

namespace flydsl::verify {

struct GemmResult : CallResult {
  Elements d, aux;  // dense
  Elements sums[std::size(kGemmSums)];
};
GemmResult call_gemm(flydsl_aot_handle *handle, const GemmSpec &spec, const GemmNumbers &numbers);

Outcome verify_gemm_case(flydsl_aot_handle *handle, const GemmSpec &spec);

}  // namespace flydsl::verify
