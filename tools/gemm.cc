#include "tools/gemm.h"

#include <algorithm>

#include "tools/arguments.h"
#include "tools/attention_arguments.h"
#include "tools/exit_status.h"

namespace flydsl::tools {
namespace {

// Exchanges the last two axes of a view: a file of (K, M) becomes (M, K).
void transpose(flydsl_aot_tensor *tensor) {
  const int last = tensor->rank - 1;
  std::swap(tensor->sizes[last], tensor->sizes[last - 1]);
  std::swap(tensor->strides[last], tensor->strides[last - 1]);
}

using GemmCalls = ProblemOf<flydsl_aot_gemm_params, flydsl_aot_gemm_query, flydsl_aot_gemm_explain,
                            flydsl_aot_gemm_prefetch, flydsl_aot_gemm>;

class GemmProblem final : public GemmCalls {
 public:
  bool transpose_a = false, transpose_b = false;

  // Products and their sums.
  double flops() const override {
    double elements = 2.0 * static_cast<double>(params.a.sizes[params.a.rank - 1]);
    for (int axis = 0; axis < params.d.rank; ++axis)
      elements *= static_cast<double>(params.d.sizes[axis]);
    return elements;
  }
  std::vector<std::pair<std::string, std::string>> description() const override {
    const flydsl_aot_tensor &d = params.d;
    return {{"dtype", flydsl_aot_dtype_name(params.a.dtype)},
            {"dtype_b", flydsl_aot_dtype_name(params.b.dtype)},
            {"dtype_out", flydsl_aot_dtype_name(d.dtype)},
            {"batch", std::to_string(d.rank == 3 ? d.sizes[0] : 1)},
            {"m", std::to_string(d.sizes[d.rank - 2])},
            {"n", std::to_string(d.sizes[d.rank - 1])},
            {"k", std::to_string(params.a.sizes[params.a.rank - 1])},
            {"transpose_a", transpose_a ? "1" : "0"},
            {"transpose_b", transpose_b ? "1" : "0"},
            {"features", features()}};
  }

 private:
  // What the description does not tell.
  std::string features() const {
    std::string names;
    const auto add = [&](bool there, const char *name) {
      if (!there) return;
      if (!names.empty()) names += ',';
      names += name;
    };
    const flydsl_aot_epilogue &epilogue = params.epilogue;
    add(params.alpha != 1, "alpha");
    add(params.beta != 0, "beta");
    add(params.a_descale.rank + params.b_descale.rank + params.d_scale.rank > 0, "scales");
    add(epilogue.bias_m.rank > 0, "bias_m");
    add(epilogue.bias_n.rank > 0, "bias_n");
    add(epilogue.activation != 0, "activation");
    add(epilogue.residual.rank > 0, "residual");
    add(epilogue.aux.rank > 0 && epilogue.gradient == 0, "aux");
    add(epilogue.gradient != 0, "gradient");
    return names.empty() ? "none" : names;
  }
};

bool is_yes(const Settings &settings, const char *name, std::vector<std::string> &used) {
  const auto found = settings.find(name);
  if (found == settings.end()) return false;
  used.push_back(std::string(name) + " = " + found->second);
  return parse_choice(name, found->second, {{"no", 0}, {"yes", 1}}) == 1;
}

std::unique_ptr<Problem> bind(const HostArrays &inputs, const std::vector<std::string> &outputs,
                              const Settings &settings) {
  auto problem = std::make_unique<GemmProblem>();
  flydsl_aot_gemm_params &params = problem->params;
  std::vector<std::string> &used = problem->settings;
  InputBinder binder(inputs, problem.get());
  binder.bind("a", &params.a, 2, 3, "M, K, or batch, M, K");
  binder.bind("b", &params.b, 2, 3, "K, N, or batch, K, N");
  binder.bind("c", &params.c, 2, 3, "M, N, or batch, M, N");
  binder.bind("residual", &params.epilogue.residual, 2, 3, "M, N, or batch, M, N");
  binder.bind("z", &params.epilogue.aux, 2, 3, "M, N, or batch, M, N");
  params.epilogue.gradient = params.epilogue.aux.rank != 0;
  binder.bind("bias_n", &params.epilogue.bias_n, 1, 2, "N, or batch, N");
  binder.bind("bias_m", &params.epilogue.bias_m, 1, 2, "M, or batch, M");
  binder.bind("a_descale", &params.a_descale, 1, 2, "1 or M, or batch, 1 or M");
  binder.bind("b_descale", &params.b_descale, 1, 2, "1 or N, or batch, 1 or N");
  binder.bind("d_scale", &params.d_scale, 1, 1, "1");
  problem->transpose_a = is_yes(settings, "transpose_a", used);
  problem->transpose_b = is_yes(settings, "transpose_b", used);
  if (problem->transpose_a) transpose(&params.a);
  if (problem->transpose_b) transpose(&params.b);

  const flydsl_aot_dtype dtype = params.a.dtype;
  const bool bytes = flydsl_aot_dtype_bytes(dtype) == 1;
  const flydsl_aot_dtype wide = bytes ? FLYDSL_AOT_BF16 : dtype;
  std::vector<int64_t> shape = {params.a.sizes[params.a.rank - 2],
                                params.b.sizes[params.b.rank - 1]};
  if (params.a.rank == 3 || params.b.rank == 3) {
    int64_t batches = params.a.rank == 3 ? params.a.sizes[0] : 1;
    if (params.b.rank == 3 && batches == 1) batches = params.b.sizes[0];
    shape.insert(shape.begin(), batches);
  }
  const auto add = [&](const char *name, flydsl_aot_tensor *tensor, flydsl_aot_dtype type) {
    *tensor = view_of(type, shape, kBhsd);
    problem->outputs.push_back({name, tensor, shape});
  };
  add("d", &params.d, dtype_setting("d_dtype", settings, wide));
  if (params.epilogue.gradient == 0 &&
      std::find(outputs.begin(), outputs.end(), "aux") != outputs.end())
    add("aux", &params.epilogue.aux, dtype_setting("aux_dtype", settings, wide));
  const size_t last = shape.size() - 1;
  const struct {
    const char *name;
    flydsl_aot_tensor *tensor;
    int64_t size;
  } sums[] = {{"d_sum_m", &params.d_sum_m, shape[last - 1]},
              {"d_sum_n", &params.d_sum_n, shape[last]},
              {"a_sum_m", &params.a_sum_m, shape[last - 1]},
              {"b_sum_n", &params.b_sum_n, shape[last]}};
  for (const auto &[name, tensor, size] : sums) {
    if (std::find(outputs.begin(), outputs.end(), name) == outputs.end()) continue;
    *tensor = flydsl_aot_tensor{nullptr, dtype_setting("sum_dtype", settings, FLYDSL_AOT_FP32), 1,
                                {size}, {1}};
    problem->outputs.push_back({name, tensor, {size}});
  }

  used.push_back(std::string("dtype = ") + flydsl_aot_dtype_name(dtype));
  params.alpha = number_of(settings, "alpha", 1, used);
  params.beta = number_of(settings, "beta", inputs.count("c") ? 1 : 0, used);
  if (const auto activation = settings.find("activation"); activation != settings.end()) {
    params.epilogue.activation = parse_choice("activation", activation->second,
                                              {{"none", FLYDSL_AOT_ACTIVATION_NONE},
                                               {"relu", FLYDSL_AOT_ACTIVATION_RELU},
                                               {"gelu", FLYDSL_AOT_ACTIVATION_GELU},
                                               {"gelu_tanh", FLYDSL_AOT_ACTIVATION_GELU_TANH},
                                               {"silu", FLYDSL_AOT_ACTIVATION_SILU}});
    used.push_back("activation = " + activation->second);
  }
  return problem;
}

}  // namespace

const Operator &gemm_operator() {
  static const Operator op = {
      "gemm",
      "activation(alpha A B + beta C + bias) + residual",
      {{"a", "(M, K) or (batch, M, K); (.., K, M) with transpose_a", true, "dtype"},
       {"b",
        "(K, N) or (batch, K, N); (.., N, K) with transpose_b, as the weight of a linear layer",
        true, "b_dtype"},
       {"c", "(M, N) or (batch, M, N)", false, "c_dtype"},
       {"residual", "(M, N) or (batch, M, N), added after the activation", false, "c_dtype"},
       {"z",
        "(M, N) or (batch, M, N), a forward call's aux: the activation's derivative there is a factor "
        "instead of the activation",
        false, "aux_dtype"},
       {"bias_n", "(N) or (batch, N)", false, "bias_dtype"},
       {"bias_m", "(M) or (batch, M)", false, "bias_dtype"},
       {"a_descale", "(1), (M), (batch, 1) or (batch, M), float32: what 8-bit a is multiplied by",
        false, nullptr, Content::kFactors},
       {"b_descale", "(1), (N), (batch, 1) or (batch, N), the same for b", false, nullptr,
        Content::kFactors},
       {"d_scale", "(1), float32: what 8-bit d is multiplied by before it is rounded", false,
        nullptr, Content::kFactors}},
      {{"d", "(M, N) or (batch, M, N)", true},
       {"aux", "as d: the sum before the activation", false},
       {"d_sum_m", "(M): sums of d over its columns and batches", false},
       {"d_sum_n", "(N): the same over its rows, the gradient of a bias where d is a gradient", false},
       {"a_sum_m", "(M): sums of a over K and its batches", false},
       {"b_sum_n", "(N): the same of b", false}},
      {{"dtype",
        "bf16 (default of shapes) | fp16 | fp32 | e4m3 | e5m2: what uint16 and uint8 arrays hold, "
        "and what shapes stand for"},
       {"b_dtype", "the same for b; default dtype"},
       {"c_dtype", "the same for c and residual; default dtype"},
       {"bias_dtype", "the same for biases; default fp32"},
       {"d_dtype", "type of d; default a's, or bf16 if that has 8 bits"},
       {"aux_dtype", "bf16 | fp16 | fp32: of aux and z; default a's, or bf16 if that has 8 bits"},
       {"sum_dtype", "fp32 (default) | bf16 | fp16: of sums"},
       {"transpose_a", "no (default) | yes: a's file has its axes (K, M)"},
       {"transpose_b", "no (default) | yes: b's file has its axes (N, K)"},
       {"alpha", "number; default 1"},
       {"beta", "number; default 1 with c, else 0"},
       {"activation", "none (default) | relu | gelu | gelu_tanh | silu"}},
      bind,
  };
  return op;
}

}  // namespace flydsl::tools
