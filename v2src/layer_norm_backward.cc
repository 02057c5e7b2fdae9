// The gradients of layer norm of rows: its parameters; the rest is v2src/norm_backward. The contract is include/flydsl_aot/layer_norm_backward.h.
#include "flydsl_aot/layer_norm_backward.h"

#include "flydsl_aot_generated/layer_norm_backward_kernarg.h"
#include "v2src/norm_backward.h"

namespace flydsl::layer_norm_backward {
namespace {

struct Operator {
  using Params = flydsl_aot_layer_norm_backward_params;
  using Kernarg = flydsl_aot_layer_norm_backward_kernarg;
  static constexpr const char *kName = "layer_norm_backward";
  static constexpr module::KernargContract kContract = {
      FLYDSL_AOT_LAYER_NORM_BACKWARD_KERNARG_LAYOUT_ID, sizeof(Kernarg)};
#define FLYDSL_AOT_MOST_ROWS(rows) rows
  static constexpr uint32_t kMostRows =
      FLYDSL_AOT_LAYER_NORM_BACKWARD_MOST_ROWS(FLYDSL_AOT_MOST_ROWS);
#undef FLYDSL_AOT_MOST_ROWS

  static uint64_t functional_key(uint64_t dtype, uint64_t pass) {
    return flydsl_aot_layer_norm_backward_key(dtype, pass);
  }
  static int64_t columns(uint64_t dtype) {
#define FLYDSL_AOT_COLUMNS(number, columns) \
  if (dtype == (number)) return columns;
    FLYDSL_AOT_LAYER_NORM_BACKWARD_COLUMNS(FLYDSL_AOT_COLUMNS)
#undef FLYDSL_AOT_COLUMNS
    return 0;
  }
  static norm_backward::Params params_of(const Params &from) {
    norm_backward::Params params = norm_backward::common_params(from);
    params.centred = true;
    params.mean = &from.mean;
    params.dbias = &from.dbias;
    return params;
  }
};
using Calls = norm_backward::Calls<Operator>;

}  // namespace
}  // namespace flydsl::layer_norm_backward

extern "C" {

flydsl_aot_status flydsl_aot_layer_norm_backward_query(
    flydsl_aot_handle *handle, const flydsl_aot_layer_norm_backward_params *params,
    flydsl_aot_query_result *result) {
  return flydsl::guarded(
      __func__, [&] { return flydsl::layer_norm_backward::Calls::query(handle, params, result); });
}

flydsl_aot_status flydsl_aot_layer_norm_backward_explain(
    flydsl_aot_handle *handle, const flydsl_aot_layer_norm_backward_params *params,
    flydsl_aot_candidate_callback callback, void *user) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::layer_norm_backward::Calls::explain(handle, params, callback, user);
  });
}

flydsl_aot_status flydsl_aot_layer_norm_backward_prefetch(
    flydsl_aot_handle *handle, const flydsl_aot_layer_norm_backward_params *params) {
  return flydsl::guarded(
      __func__, [&] { return flydsl::layer_norm_backward::Calls::prefetch(handle, params); });
}

flydsl_aot_status flydsl_aot_layer_norm_backward(
    flydsl_aot_handle *handle, const flydsl_aot_layer_norm_backward_params *params, void *stream) {
  return flydsl::guarded(
      __func__, [&] { return flydsl::layer_norm_backward::Calls::call(handle, params, stream); });
}

}  // extern "C"
