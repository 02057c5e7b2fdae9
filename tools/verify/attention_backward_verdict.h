// Whether the result of a call of attention_backward is right.
#pragma once

#include <array>
#include <string>

#include "tools/verify/attention_backward_call.h"
#include "tools/verify/attention_backward_reference.h"

namespace flydsl::verify {

// What a call of attention_forward gives whose only error is to round its outputs.
ForwardOutputs exact_forward(const BackwardCase &c);

struct BackwardReference {
  std::array<GradientReference, kGradients> gradients;  // of those that are wanted
};

// The oracle on the case's dense arrays, sequence by sequence. `forward`: what the call is given, for the rounded formulas.
BackwardReference backward_reference_of(const BackwardCase &c, const ForwardOutputs &forward);

struct BackwardVerdict {
  std::string fault;  // empty: right
  std::array<GradientJudgement, kGradients> judgements;
};

// A call that succeeded: every gradient within the judge's bounds, nothing else written, rows past a sequence's length
// untouched. The relative norm of the error is at most 1e-2 (bf16), 2e-3 (fp16), with the allowance that judge_gradient says.
BackwardVerdict judge_backward(const BackwardCase &c, const BackwardResult &result,
                               const BackwardReference &reference);

// Of BackwardResult::bits.
double gradient_value(flydsl_aot_dtype dtype, uint32_t bits);

// What the formulas give as a result would have it: for tests of the judge.
BackwardResult as_result(const BackwardCase &c, const BackwardReference &reference);

}  // namespace flydsl::verify
