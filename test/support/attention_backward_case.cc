#include "test/support/attention_backward_case.h"

#include <gtest/gtest.h>

#include "test/support/library.h"

namespace flydsl::test {

BackwardResult run_backward(const PreparedBackward &p) {
  BackwardResult result = call_attention_backward(emulator(), p.problem, p.forward);
  EXPECT_EQ(result.contradiction, "") << describe(p.problem.forward);
  return result;
}

BackwardResult check_backward(const PreparedBackward &p,
                              std::array<GradientJudgement, kGradients> *judgements) {
  BackwardResult result = run_backward(p);
  EXPECT_EQ(result.status, FLYDSL_AOT_OK) << describe(p.problem.forward) << ": " << result.message;
  if (result.status != FLYDSL_AOT_OK) return result;
  const BackwardVerdict verdict =
      judge_backward(p.problem, result, backward_reference_of(p.problem, p.forward));
  EXPECT_EQ(verdict.fault, "") << describe(p.problem.forward);
  if (judgements) *judgements = verdict.judgements;
  return result;
}

std::vector<double> numbers(const PreparedBackward &p, const BackwardResult &result,
                            size_t gradient) {
  std::vector<double> values;
  for (const uint32_t bits : result.bits[gradient])
    values.push_back(gradient_value(p.problem.dtype_of(gradient), bits));
  return values;
}

}  // namespace flydsl::test
