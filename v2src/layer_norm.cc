// Layer norm of rows: its parameters; the rest is v2src/norm.h. The contract is include/flydsl_aot/layer_norm.h.
#include "flydsl_aot/layer_norm.h"

#include "flydsl_aot_generated/layer_norm_kernarg.h"
#include "v2src/norm.h"

namespace flydsl::layer_norm {
namespace {

struct Operator {
  using Params = flydsl_aot_layer_norm_params;
  using Kernarg = flydsl_aot_layer_norm_kernarg;
  static constexpr const char *kName = "layer_norm";
  static constexpr module::KernargContract kContract = {FLYDSL_AOT_LAYER_NORM_KERNARG_LAYOUT_ID,
                                                        sizeof(Kernarg)};

  static uint64_t functional_key(uint64_t dtype, bool quantised) {
    return flydsl_aot_layer_norm_key(dtype, quantised);
  }
  static norm::Params params_of(const Params &from) {
    norm::Params params = norm::common_params(from);
    params.bias = &from.bias;
    params.mean = &from.mean;
    return params;
  }
  static Kernarg kernarg_of(const norm::Params &params) {
    auto kernarg = norm::common_kernarg<Kernarg>(params);
    if (present(*params.bias)) {
      kernarg.bias = params.bias->data;
      kernarg.bias_dtype = static_cast<uint32_t>(params.bias->dtype);
    }
    norm::place_per_row(*params.mean, *params.x, &kernarg.mean, &kernarg.mean_stride_o,
                        &kernarg.mean_stride_i);
    return kernarg;
  }
};
using Calls = norm::Calls<Operator>;

}  // namespace
}  // namespace flydsl::layer_norm

extern "C" {

flydsl_aot_status flydsl_aot_layer_norm_query(flydsl_aot_handle *handle,
                                              const flydsl_aot_layer_norm_params *params,
                                              flydsl_aot_query_result *result) {
  return flydsl::guarded(__func__,
                         [&] { return flydsl::layer_norm::Calls::query(handle, params, result); });
}

flydsl_aot_status flydsl_aot_layer_norm_explain(flydsl_aot_handle *handle,
                                                const flydsl_aot_layer_norm_params *params,
                                                flydsl_aot_candidate_callback callback,
                                                void *user) {
  return flydsl::guarded(
      __func__, [&] { return flydsl::layer_norm::Calls::explain(handle, params, callback, user); });
}

flydsl_aot_status flydsl_aot_layer_norm_prefetch(flydsl_aot_handle *handle,
                                                 const flydsl_aot_layer_norm_params *params) {
  return flydsl::guarded(__func__,
                         [&] { return flydsl::layer_norm::Calls::prefetch(handle, params); });
}

flydsl_aot_status flydsl_aot_layer_norm(flydsl_aot_handle *handle,
                                        const flydsl_aot_layer_norm_params *params, void *stream) {
  return flydsl::guarded(__func__,
                         [&] { return flydsl::layer_norm::Calls::call(handle, params, stream); });
}

}  // extern "C"
