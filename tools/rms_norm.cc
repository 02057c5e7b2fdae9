#include "tools/rms_norm.h"

#include "tools/norm_problem.h"

namespace flydsl::tools {
namespace {

struct Api {
  using Params = flydsl_aot_rms_norm_params;
  static constexpr bool kCentred = false;
  static constexpr float kDefaultEps = FLYDSL_AOT_NORM_DEFAULT_EPS;
  static constexpr auto *query = flydsl_aot_rms_norm_query;
  static constexpr auto *explain = flydsl_aot_rms_norm_explain;
  static constexpr auto *prefetch = flydsl_aot_rms_norm_prefetch;
  static constexpr auto *call = flydsl_aot_rms_norm;
};

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
      bind_norm<Api>,
  };
  return op;
}

}  // namespace flydsl::tools
