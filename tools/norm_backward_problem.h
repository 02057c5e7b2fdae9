// rms_norm_backward and layer_norm_backward for the commands: what they share.
#pragma once

#include <algorithm>

#include "tools/arguments.h"
#include "tools/attention_arguments.h"
#include "tools/operators.h"

namespace flydsl::tools {

// `Api` has Params, kCentred (mean in, dbias out) and the functions query, explain, prefetch and call.
template <class Api>
class NormBackwardProblem final
    : public ProblemOf<typename Api::Params, Api::query, Api::explain, Api::prefetch, Api::call> {
 public:
  using ProblemOf<typename Api::Params, Api::query, Api::explain, Api::prefetch, Api::call>::params;

  // An element's z is one product, dweight two operations, dx eight; of a centred one two, one (of dbias) and two more.
  double flops() const override {
    double each = Api::kCentred ? 2 : 1;
    if (params.dx.rank) each += Api::kCentred ? 10 : 8;
    if (params.dweight.rank) each += 2;
    if constexpr (Api::kCentred) each += params.dbias.rank ? 1 : 0;
    for (int axis = 0; axis < params.x.rank; ++axis)
      each *= static_cast<double>(params.x.sizes[axis]);
    return each;
  }
  std::vector<std::pair<std::string, std::string>> description() const override {
    int64_t rows = 1;
    for (int axis = 0; axis + 1 < params.x.rank; ++axis) rows *= params.x.sizes[axis];
    const auto dtype = [](const flydsl_aot_tensor &tensor) {
      return tensor.rank ? flydsl_aot_dtype_name(tensor.dtype) : "none";
    };
    std::vector<std::pair<std::string, std::string>> lines = {
        {"dtype", dtype(params.x)},
        {"rows", std::to_string(rows)},
        {"row_length", std::to_string(params.x.sizes[params.x.rank - 1])},
        {"weight", dtype(params.weight)},
        {"dsum", params.dsum.rank ? "yes" : "no"},
        {"dx", params.dx.rank ? "yes" : "no"},
        {"dweight", dtype(params.dweight)}};
    if constexpr (Api::kCentred) lines.emplace_back("dbias", dtype(params.dbias));
    return lines;
  }
};

template <class Api>
std::unique_ptr<Problem> bind_norm_backward(const HostArrays &inputs,
                                            const std::vector<std::string> &outputs,
                                            const Settings &settings) {
  auto problem = std::make_unique<NormBackwardProblem<Api>>();
  typename Api::Params &params = problem->params;
  std::vector<std::string> &used = problem->settings;
  InputBinder binder(inputs, problem.get());
  binder.bind("x", &params.x, 2, 3, "row, or two axes of rows, and column");
  binder.bind("dout", &params.dout, 2, 3, "as x");
  binder.bind("rstd", &params.rstd, 1, 2, "as x without its last axis");
  if constexpr (Api::kCentred) binder.bind("mean", &params.mean, 1, 2, "as rstd");
  binder.bind("weight", &params.weight, 1, 1, "column");
  binder.bind("dsum", &params.dsum, 2, 3, "as x");

  const std::vector<int64_t> shape = inputs.at("x").shape;
  const auto add = [&](const char *name, flydsl_aot_tensor *tensor, flydsl_aot_dtype dtype,
                       const std::vector<int64_t> &sizes) {
    if (!outputs.empty() && std::find(outputs.begin(), outputs.end(), name) == outputs.end())
      return;
    *tensor = view_of(dtype, sizes, kBhsd);
    problem->outputs.push_back({name, tensor, sizes});
  };
  const flydsl_aot_dtype dtype = params.x.dtype;
  used.push_back(std::string("dtype = ") + flydsl_aot_dtype_name(dtype));
  add("dx", &params.dx, dtype, shape);
  add("dweight", &params.dweight,
      dtype_setting("dweight_dtype", settings, params.weight.rank ? params.weight.dtype : dtype),
      {shape.back()});
  if constexpr (Api::kCentred) {
    add("dbias", &params.dbias,
        dtype_setting("dbias_dtype", settings, params.dweight.rank ? params.dweight.dtype : dtype),
        {shape.back()});
  }
  params.weight_offset = number_of(settings, "weight_offset", 0, used);
  return problem;
}

}  // namespace flydsl::tools
