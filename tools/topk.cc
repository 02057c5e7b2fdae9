#include "tools/topk.h"

#include "tools/arguments.h"
#include "tools/attention_arguments.h"
#include "tools/exit_status.h"

namespace flydsl::tools {
namespace {

using TopkCalls = ProblemOf<flydsl_aot_topk_params, flydsl_aot_topk_query, flydsl_aot_topk_explain,
                            flydsl_aot_topk_prefetch, flydsl_aot_topk>;

class TopkProblem final : public TopkCalls {
 public:
  // What the parts of a row left is counted and sorted by a second launch.
  bool launches_depend_on_data() const override { return true; }
  // A comparison an element.
  double flops() const override {
    double elements = 1;
    for (int axis = 0; axis < params.x.rank; ++axis)
      elements *= static_cast<double>(params.x.sizes[axis]);
    return elements;
  }
  std::vector<std::pair<std::string, std::string>> description() const override {
    const int axis = params.axis < 0 ? params.axis + params.x.rank : params.axis;
    int64_t rows = 1;
    for (int other = 0; other < params.x.rank; ++other)
      if (other != axis) rows *= params.x.sizes[other];
    return {{"dtype", flydsl_aot_dtype_name(params.x.dtype)},
            {"rows", std::to_string(rows)},
            {"row_length", std::to_string(params.x.sizes[axis])},
            {"k", std::to_string(params.values.sizes[axis])},
            {"smallest", params.smallest ? "yes" : "no"}};
  }
};

std::unique_ptr<Problem> bind(const HostArrays &inputs, const std::vector<std::string> &,
                              const Settings &settings) {
  auto problem = std::make_unique<TopkProblem>();
  flydsl_aot_topk_params &params = problem->params;
  std::vector<std::string> &used = problem->settings;
  InputBinder(inputs, problem.get()).bind("x", &params.x, 1, FLYDSL_AOT_MAX_RANK, "any axes");
  const int64_t asked_axis = integer_of(settings, "axis", -1, used);
  const int64_t k = integer_of(settings, "k", 1, used);
  const auto choice = [&](const char *name,
                          const std::vector<std::pair<std::string, int>> &choices) {
    const auto found = settings.find(name);
    const std::string text = found == settings.end() ? choices.front().first : found->second;
    used.push_back(name + (" = " + text));
    return parse_choice(name, text, choices);
  };
  params.smallest = choice("smallest", {{"no", 0}, {"yes", 1}}) == 1;
  const flydsl_aot_dtype index =
      choice("index_dtype", {{"int64", FLYDSL_AOT_INT64}, {"int32", FLYDSL_AOT_INT32}});
  std::vector<int64_t> shape = inputs.at("x").shape;
  const int64_t rank = static_cast<int64_t>(shape.size());
  const int64_t axis = asked_axis < 0 ? asked_axis + rank : asked_axis;
  if (axis < 0 || axis >= rank)
    bad_input("--set axis=" + std::to_string(asked_axis) + ": x has " + std::to_string(rank) +
              " axes");
  params.axis = static_cast<int32_t>(asked_axis);
  if (k < 0) bad_input("--set k=" + std::to_string(k) + ": must be 0 or more");
  shape[static_cast<size_t>(axis)] = k;
  params.values = view_of(params.x.dtype, shape, kBhsd);
  params.indices = view_of(index, shape, kBhsd);
  problem->outputs.push_back({"values", &params.values, shape});
  problem->outputs.push_back({"indices", &params.indices, shape});
  return problem;
}

}  // namespace

const Operator &topk_operator() {
  static const Operator op = {
      "topk",
      "the K largest or smallest elements along an axis, with their indices",
      {{"x", "any shape; fp32, fp16, bf16 or int32", true, "dtype"}},
      {{"values", "x's shape with K along the axis", true},
       {"indices", "the same, int64 or int32", true}},
      {{"dtype",
        "bf16 (default of shapes) | fp16 | fp32: what uint16 arrays hold, and what shapes stand "
        "for"},
       {"k", "number of results; default 1"},
       {"axis", "default -1, the last one"},
       {"smallest", "no (default) | yes"},
       {"index_dtype", "int64 (default) | int32"}},
      bind,
  };
  return op;
}

}  // namespace flydsl::tools
