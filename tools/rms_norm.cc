#include "tools/rms_norm.h"

#include <algorithm>

#include "tools/arguments.h"
#include "tools/attention_arguments.h"
#include "tools/exit_status.h"

namespace flydsl::tools {
namespace {

class RmsNormProblem final : public Problem {
 public:
  flydsl_aot_rms_norm_params params{};

  RmsNormProblem() { params.struct_size = sizeof params; }

  flydsl_aot_status query(flydsl_aot_handle *handle,
                          flydsl_aot_query_result *result) const override {
    return flydsl_aot_rms_norm_query(handle, &params, result);
  }
  flydsl_aot_status explain(flydsl_aot_handle *handle, flydsl_aot_candidate_callback callback,
                            void *user) const override {
    return flydsl_aot_rms_norm_explain(handle, &params, callback, user);
  }
  flydsl_aot_status launch(flydsl_aot_handle *handle) const override {
    return flydsl_aot_rms_norm(handle, &params, nullptr);
  }
  void set_workspace(void *, uint64_t) override {}
  // A square, its sum and two products an element.
  double flops() const override {
    double elements = 4;
    for (int axis = 0; axis < params.x.rank; ++axis)
      elements *= static_cast<double>(params.x.sizes[axis]);
    return elements;
  }
  std::vector<std::pair<std::string, std::string>> description() const override {
    int64_t rows = 1;
    for (int axis = 0; axis + 1 < params.x.rank; ++axis) rows *= params.x.sizes[axis];
    return {{"dtype", flydsl_aot_dtype_name(params.x.dtype)},
            {"rows", std::to_string(rows)},
            {"row_length", std::to_string(params.x.sizes[params.x.rank - 1])},
            {"weight", params.weight.rank ? flydsl_aot_dtype_name(params.weight.dtype) : "none"},
            {"residual", params.residual.rank ? "yes" : "no"},
            {"out_dtype", flydsl_aot_dtype_name(params.out.dtype)}};
  }
};

std::unique_ptr<Problem> bind(const HostArrays &inputs, const std::vector<std::string> &outputs,
                              const Settings &settings) {
  auto problem = std::make_unique<RmsNormProblem>();
  flydsl_aot_rms_norm_params &params = problem->params;
  std::vector<std::string> &used = problem->settings;
  InputBinder binder(inputs, problem.get());
  binder.bind("x", &params.x, 2, 3, "row, or two axes of rows, and column");
  binder.bind("weight", &params.weight, 1, 1, "column");
  binder.bind("residual", &params.residual, 2, 3, "as x");

  const std::vector<int64_t> shape = inputs.at("x").shape;
  std::vector<int64_t> per_row(shape.begin(), shape.end() - 1);
  const auto wanted = [&](const char *name) {
    return std::find(outputs.begin(), outputs.end(), name) != outputs.end();
  };
  const auto add = [&](const char *name, flydsl_aot_tensor *tensor, flydsl_aot_dtype dtype,
                       const std::vector<int64_t> &sizes) {
    *tensor = view_of(dtype, sizes, kBhsd);
    problem->outputs.push_back({name, tensor, sizes});
  };
  const flydsl_aot_dtype out = dtype_setting("out_dtype", settings, params.x.dtype);
  add("out", &params.out, out, shape);
  const auto scales = settings.find("scales");
  const bool blocks = scales != settings.end() &&
                      parse_choice("scales", scales->second, {{"row", 0}, {"block", 1}});
  if (out == FLYDSL_AOT_E4M3 || out == FLYDSL_AOT_E5M2) {
    std::vector<int64_t> of_blocks = shape;
    of_blocks.back() = shape.back() / 32 + (shape.back() % 32 != 0);
    add("out_scale", &params.out_scale, blocks ? FLYDSL_AOT_E8M0 : FLYDSL_AOT_FP32,
        blocks ? of_blocks : per_row);
    used.push_back(std::string("scales = ") + (blocks ? "block" : "row"));
  } else if (blocks) {
    bad_input("--set scales=block: goes with out_dtype=e4m3 or e5m2");
  }
  if (wanted("sum")) add("sum", &params.sum, params.x.dtype, shape);
  if (wanted("rstd")) add("rstd", &params.rstd, FLYDSL_AOT_FP32, per_row);

  used.push_back(std::string("dtype = ") + flydsl_aot_dtype_name(params.x.dtype));
  params.eps = number_of(settings, "eps", FLYDSL_AOT_NORM_DEFAULT_EPS, used);
  params.weight_offset = number_of(settings, "weight_offset", 0, used);
  return problem;
}

}  // namespace

const Operator &rms_norm_operator() {
  static const Operator op = {
      "rms_norm",
      "x / sqrt(mean(x^2) + eps) * weight of each row",
      {{"x", "(M, N) or (M0, M1, N)", true, "dtype"},
       {"weight", "(N), default 1", false, "weight_dtype"},
       {"residual", "as x: x + residual is normalised", false, "dtype"}},
      {{"out", "as x, dtype as x or out_dtype", true},
       {"out_scale",
        "with 8-bit out: float32, one a row; or with scales=block E8M0 as uint8, one for 32 "
        "neighbours",
        false},
       {"sum", "as x: x + residual", false},
       {"rstd", "one a row, float32", false}},
      {{"dtype",
        "bf16 (default of shapes) | fp16 | fp32: what uint16 arrays hold, and what shapes stand "
        "for"},
       {"weight_dtype", "the same for weight; default dtype"},
       {"out_dtype", "e4m3 | e5m2: quantised; default x's"},
       {"scales", "row (default) | block: of 8-bit out"},
       {"eps", "number; default 2^-23"},
       {"weight_offset", "0 (default) | 1: weights are stored less 1"}},
      bind,
  };
  return op;
}

}  // namespace flydsl::tools
