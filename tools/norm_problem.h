// rms_norm and layer_norm for the commands: what they share.
#pragma once

#include <algorithm>

#include "tools/arguments.h"
#include "tools/attention_arguments.h"
#include "tools/exit_status.h"
#include "tools/operators.h"

namespace flydsl::tools {

// `Api` has Params, kCentred (bias in, mean out), the functions query, explain, prefetch and call, and kDefaultEps.
template <class Api>
class NormProblem final
    : public ProblemOf<typename Api::Params, Api::query, Api::explain, Api::prefetch, Api::call> {
 public:
  using ProblemOf<typename Api::Params, Api::query, Api::explain, Api::prefetch, Api::call>::params;

  // A square, its sum and two products an element; of deviations three more sums.
  double flops() const override {
    double elements = Api::kCentred ? 7 : 4;
    for (int axis = 0; axis < params.x.rank; ++axis)
      elements *= static_cast<double>(params.x.sizes[axis]);
    return elements;
  }
  std::vector<std::pair<std::string, std::string>> description() const override {
    int64_t rows = 1;
    for (int axis = 0; axis + 1 < params.x.rank; ++axis) rows *= params.x.sizes[axis];
    std::vector<std::pair<std::string, std::string>> lines = {
        {"dtype", flydsl_aot_dtype_name(params.x.dtype)},
        {"rows", std::to_string(rows)},
        {"row_length", std::to_string(params.x.sizes[params.x.rank - 1])},
        {"weight", params.weight.rank ? flydsl_aot_dtype_name(params.weight.dtype) : "none"},
        {"residual", params.residual.rank ? "yes" : "no"},
        {"out_dtype", flydsl_aot_dtype_name(params.out.dtype)}};
    if constexpr (Api::kCentred) {
      const flydsl_aot_tensor &bias = params.bias;
      lines.emplace_back("bias", bias.rank ? flydsl_aot_dtype_name(bias.dtype) : "none");
    }
    return lines;
  }
};

template <class Api>
std::unique_ptr<Problem> bind_norm(const HostArrays &inputs,
                                   const std::vector<std::string> &outputs,
                                   const Settings &settings) {
  auto problem = std::make_unique<NormProblem<Api>>();
  typename Api::Params &params = problem->params;
  std::vector<std::string> &used = problem->settings;
  InputBinder binder(inputs, problem.get());
  binder.bind("x", &params.x, 2, 3, "row, or two axes of rows, and column");
  binder.bind("weight", &params.weight, 1, 1, "column");
  if constexpr (Api::kCentred) binder.bind("bias", &params.bias, 1, 1, "column");
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
  if constexpr (Api::kCentred)
    if (wanted("mean")) add("mean", &params.mean, FLYDSL_AOT_FP32, per_row);
  if (wanted("rstd")) add("rstd", &params.rstd, FLYDSL_AOT_FP32, per_row);

  used.push_back(std::string("dtype = ") + flydsl_aot_dtype_name(params.x.dtype));
  params.eps = number_of(settings, "eps", Api::kDefaultEps, used);
  params.weight_offset = number_of(settings, "weight_offset", 0, used);
  return problem;
}

}  // namespace flydsl::tools
