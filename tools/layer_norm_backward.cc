#include "tools/layer_norm_backward.h"

#include "tools/norm_backward_problem.h"

namespace flydsl::tools {
namespace {

struct Api {
  using Params = flydsl_aot_layer_norm_backward_params;
  static constexpr bool kCentred = true;
  static constexpr auto *query = flydsl_aot_layer_norm_backward_query;
  static constexpr auto *explain = flydsl_aot_layer_norm_backward_explain;
  static constexpr auto *prefetch = flydsl_aot_layer_norm_backward_prefetch;
  static constexpr auto *call = flydsl_aot_layer_norm_backward;
};

}  // namespace

const Operator &layer_norm_backward_operator() {
  static const Operator op = {
      "layer_norm_backward",
      "the gradients of layer_norm",
      {{"x", "(M, N) or (M0, M1, N): what was normalised, of a call with a residual its sum", true,
        "dtype"},
       {"dout", "as x", true, "dtype"},
       {"rstd", "one a row, float32: that call's", true, nullptr, Content::kFactors},
       {"mean", "one a row, float32: that call's", true},
       {"weight", "(N), default 1", false, "weight_dtype"},
       {"dsum", "as x: the gradient of the sum, added to dx", false, "dtype"}},
      {{"dx", "as x", false}, {"dweight", "(N)", false}, {"dbias", "(N)", false}},
      {{"dtype",
        "bf16 (default of shapes) | fp16 | fp32: what uint16 arrays hold, and what shapes stand "
        "for"},
       {"weight_dtype", "the same for weight; default dtype"},
       {"dweight_dtype", "the same for dweight; default weight's, without one x's"},
       {"dbias_dtype", "the same for dbias; default dweight's"},
       {"weight_offset", "0 (default) | 1: weights are stored less 1"}},
      bind_norm_backward<Api>,
  };
  return op;
}

}  // namespace flydsl::tools
