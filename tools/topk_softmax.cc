#include "tools/topk_softmax.h"

#include "tools/arguments.h"
#include "tools/attention_arguments.h"
#include "tools/exit_status.h"

namespace flydsl::tools {
namespace {

using TopkSoftmaxCalls = ProblemOf<flydsl_aot_topk_softmax_params, flydsl_aot_topk_softmax_query,
                                   flydsl_aot_topk_softmax_explain,
                                   flydsl_aot_topk_softmax_prefetch, flydsl_aot_topk_softmax>;

class TopkSoftmaxProblem final : public TopkSoftmaxCalls {
 public:
  // An exponential, a sum and a comparison an element.
  double flops() const override {
    double elements = 3;
    for (int axis = 0; axis < params.x.rank; ++axis)
      elements *= static_cast<double>(params.x.sizes[axis]);
    return elements;
  }
};

std::unique_ptr<Problem> bind(const HostArrays &inputs, const std::vector<std::string> &,
                              const Settings &settings) {
  auto problem = std::make_unique<TopkSoftmaxProblem>();
  flydsl_aot_topk_softmax_params &params = problem->params;
  std::vector<std::string> &used = problem->settings;
  InputBinder(inputs, problem.get()).bind("x", &params.x, 2, 3, "rows of N, or of two axes");
  const int64_t k = integer_of(settings, "k", 1, used);
  if (k < 0) bad_input("--set k=" + std::to_string(k) + ": must be 0 or more");
  const auto choice = [&](const char *name,
                          const std::vector<std::pair<std::string, int>> &choices) {
    const auto found = settings.find(name);
    const std::string text = found == settings.end() ? choices.front().first : found->second;
    used.push_back(name + (" = " + text));
    return parse_choice(name, text, choices);
  };
  params.chosen_only = choice("sum", {{"all", 0}, {"chosen", 1}}) == 1;
  const flydsl_aot_dtype index =
      choice("index_dtype", {{"int32", FLYDSL_AOT_INT32}, {"int64", FLYDSL_AOT_INT64}});
  const bool same = choice("weights_dtype", {{"fp32", 0}, {"same", 1}}) == 1;
  std::vector<int64_t> shape = inputs.at("x").shape;
  shape.back() = k;
  params.weights = view_of(same ? params.x.dtype : FLYDSL_AOT_FP32, shape, kBhsd);
  params.indices = view_of(index, shape, kBhsd);
  problem->outputs.push_back({"weights", &params.weights, shape});
  problem->outputs.push_back({"indices", &params.indices, shape});
  return problem;
}

}  // namespace

const Operator &topk_softmax_operator() {
  static const Operator op = {
      "topk_softmax",
      "the K largest of each row of logits and their softmax: the gate of a mixture of experts",
      {{"x", "(M, N) or (M0, M1, N); fp32, fp16 or bf16, N up to 512", true, "dtype"}},
      {{"weights", "x's shape with K in place of N", true},
       {"indices", "the same, int32 or int64", true}},
      {{"dtype",
        "bf16 (default of shapes) | fp16 | fp32: what uint16 arrays hold, and what shapes stand "
        "for"},
       {"k", "number of results, up to 16; default 1"},
       {"sum", "all (default): softmax of the row | chosen: of the K chosen"},
       {"weights_dtype", "fp32 (default) | same, as x's"},
       {"index_dtype", "int32 (default) | int64"}},
      bind,
  };
  return op;
}

}  // namespace flydsl::tools
