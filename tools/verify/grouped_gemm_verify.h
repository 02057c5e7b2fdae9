// Cases of grouped_gemm from their lines to their verdicts.
#pragma once

#include "tools/verify/attention_forward_verify.h"
#include "tools/verify/grouped_gemm_case.h"

namespace flydsl::verify {

// Whether each element of d is as near to the float64 one as include/flydsl_aot/grouped_gemm.h says, and those that no group has
// are what they were. The first fault, or "".
std::string judge_grouped_gemm(const GroupedGemmSpec &spec, const GroupedGemmNumbers &numbers,
                               const Elements &d, std::string *figures);

Outcome verify_grouped_gemm_case(flydsl_aot_handle *handle, const GroupedGemmSpec &spec);

std::string fuzz_grouped_gemm_line(uint64_t seed);

}  // namespace flydsl::verify
