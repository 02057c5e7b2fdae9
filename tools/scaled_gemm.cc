#include "tools/scaled_gemm.h"

#include <utility>

#include "tools/arguments.h"
#include "tools/attention_arguments.h"
#include "tools/exit_status.h"

namespace flydsl::tools {
namespace {

using ScaledGemmCalls = ProblemOf<flydsl_aot_scaled_gemm_params, flydsl_aot_scaled_gemm_query,
                                  flydsl_aot_scaled_gemm_explain, flydsl_aot_scaled_gemm_prefetch,
                                  flydsl_aot_scaled_gemm>;

class ScaledGemmProblem final : public ScaledGemmCalls {
 public:
  int64_t m() const { return params.a.sizes[params.a.rank - 2]; }
  int64_t n() const { return params.b.sizes[params.b.rank - 1]; }
  int64_t k() const { return params.a.sizes[params.a.rank - 1]; }
  int64_t batches() const { return params.d.rank == 3 ? params.d.sizes[0] : 1; }
  double flops() const override {
    return 2.0 * static_cast<double>(batches()) * static_cast<double>(m()) *
           static_cast<double>(n()) * static_cast<double>(k());
  }
  std::vector<std::pair<std::string, std::string>> description() const override {
    const auto name = [](flydsl_aot_dtype dtype) {
      return std::string(dtype == FLYDSL_AOT_E2M1X2 ? "e2m1" : flydsl_aot_dtype_name(dtype));
    };
    const bool shuffled = params.scale_layout == FLYDSL_AOT_SCALES_SHUFFLED_32_8;
    std::string features = batches() == 1 ? "" : "batch";
    if (params.bias.rank) features += features.empty() ? "bias" : ",bias";
    return {{"m", std::to_string(m())},
            {"n", std::to_string(n())},
            {"k", std::to_string(k())},
            {"dtype_a", name(params.a.dtype)},
            {"dtype_b", name(params.b.dtype)},
            {"dtype_out", name(params.d.dtype)},
            {"scales", shuffled ? "shuffled" : "plain"},
            {"features", features.empty() ? "none" : features}};
  }
};

// A file of packed elements has half as many bytes as the last axis has elements.
void unpack(const char *name, flydsl_aot_tensor *tensor) {
  int64_t &size = tensor->sizes[tensor->rank - 1];
  if (tensor->dtype == FLYDSL_AOT_E2M1X2 && __builtin_mul_overflow(size, 2, &size))
    bad_input(std::string(name) + " has more than 2^63 elements on its last axis, k");
}

std::unique_ptr<Problem> bind(const HostArrays &inputs, const std::vector<std::string> &,
                              const Settings &settings) {
  auto problem = std::make_unique<ScaledGemmProblem>();
  flydsl_aot_scaled_gemm_params &params = problem->params;
  InputBinder binder(inputs, problem.get());
  binder.bind("a", &params.a, 2, 3, "row, k, or batch, row, k");
  binder.bind("b", &params.b, 2, 3, "column, k, or batch, column, k");
  binder.bind("a_scale", &params.a_scale, 2, 3, "row, block of k, or batch, row, block of k");
  binder.bind("b_scale", &params.b_scale, 2, 3, "column, block of k, or batch, column, block of k");
  binder.bind("bias", &params.bias, 1, 2, "column, or batch, column");
  unpack("a", &params.a);
  unpack("b", &params.b);
  const int last = params.b.rank - 1;
  std::swap(params.b.sizes[last - 1], params.b.sizes[last]);
  std::swap(params.b.strides[last - 1], params.b.strides[last]);

  std::vector<int64_t> shape = {problem->m(), problem->n()};
  if (params.a.rank == 3 || params.b.rank == 3)
    shape.insert(shape.begin(), params.a.rank == 3 ? params.a.sizes[0] : params.b.sizes[0]);
  params.d = view_of(dtype_setting("out_dtype", settings, FLYDSL_AOT_BF16), shape, kBhsd);
  problem->outputs.push_back({"d", &params.d, shape});
  const auto layout = settings.find("scales");
  if (layout != settings.end())
    params.scale_layout = parse_choice(
        "scales", layout->second,
        {{"plain", FLYDSL_AOT_SCALES_PLAIN}, {"shuffled", FLYDSL_AOT_SCALES_SHUFFLED_32_8}});
  const bool shuffled = params.scale_layout == FLYDSL_AOT_SCALES_SHUFFLED_32_8;
  problem->settings = {std::string("dtype_a = ") + flydsl_aot_dtype_name(params.a.dtype),
                       std::string("dtype_b = ") + flydsl_aot_dtype_name(params.b.dtype),
                       std::string("out_dtype = ") + flydsl_aot_dtype_name(params.d.dtype),
                       std::string("scales = ") + (shuffled ? "shuffled" : "plain")};
  return problem;
}

}  // namespace

const Operator &scaled_gemm_operator() {
  static const Operator op = {
      "scaled_gemm",
      "A B^T of MX operands, whose elements share a scale by 32 along K",
      {{"a", "(M, K) or (batch, M, K), of e2m1 as (M, K / 2) bytes", true, "dtype_a"},
       {"b", "(N, K) or (batch, N, K), of e2m1 as (N, K / 2) bytes", true, "dtype_b"},
       {"a_scale", "(M, K / 32) or (batch, M, K / 32), E8M0 as uint8; shuffled: both padded", true,
        nullptr, Content::kScales},
       {"b_scale", "the same for b, with N rows", true, nullptr, Content::kScales},
       {"bias", "(N) or (batch, N)", false, "bias_dtype"}},
      {{"d", "(M, N) or (batch, M, N)", true}},
      {{"dtype", "e4m3 | e5m2 | e2m1: of a and b"},
       {"dtype_a", "the same for a; default dtype"},
       {"dtype_b", "the same for b; default dtype"},
       {"out_dtype", "bf16 (default) | fp16 | fp32"},
       {"bias_dtype", "bf16 | fp16 | fp32; default of shapes fp32"},
       {"scales", "plain (default) | shuffled: in blocks of 32 rows and 8 columns"}},
      bind,
  };
  return op;
}

}  // namespace flydsl::tools
