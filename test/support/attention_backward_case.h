// Cases of attention_backward (tools/verify) as tests call them: on the emulator, faults as failures.
#pragma once

#include <string>

#include "tools/verify/attention_backward_verify.h"

namespace flydsl::test {

using namespace verify;

// The case of a line, with the oracle's out and lse.
struct PreparedBackward {
  BackwardCase problem;
  ForwardOutputs forward;

  explicit PreparedBackward(const std::string &line)
      : PreparedBackward(build_backward_case(parse_backward_spec(line))) {}
  explicit PreparedBackward(const BackwardCase &c) : problem(c), forward(exact_forward(c)) {}
};

// Calls on the shared handle; expects that query and call agree and the device finishes.
BackwardResult run_backward(const PreparedBackward &p);

// run_backward, and expects success and a right result. Returns it; *judgements, if given, receives the judge's numbers.
BackwardResult check_backward(const PreparedBackward &p,
                              std::array<GradientJudgement, kGradients> *judgements = nullptr);

// A gradient's numbers.
std::vector<double> numbers(const PreparedBackward &p, const BackwardResult &result,
                            size_t gradient);

}  // namespace flydsl::test
