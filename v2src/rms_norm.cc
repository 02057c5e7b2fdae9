// Root-mean-square norm of rows: its parameters; the rest is v2src/norm.h. The contract is include/flydsl_aot/rms_norm.h.
#include "flydsl_aot/rms_norm.h"

#include "flydsl_aot_generated/rms_norm_kernarg.h"
#include "v2src/norm.h"

namespace flydsl::rms_norm {
namespace {

struct Operator {
  using Params = flydsl_aot_rms_norm_params;
  using Kernarg = flydsl_aot_rms_norm_kernarg;
  static constexpr const char *kName = "rms_norm";
  static constexpr module::KernargContract kContract = {FLYDSL_AOT_RMS_NORM_KERNARG_LAYOUT_ID,
                                                        sizeof(Kernarg)};

  static uint64_t functional_key(uint64_t dtype, bool quantised) {
    return flydsl_aot_rms_norm_key(dtype, quantised);
  }
  static norm::Params params_of(const Params &from) { return norm::common_params(from); }
  static Kernarg kernarg_of(const norm::Params &params) {
    return norm::common_kernarg<Kernarg>(params);
  }
};
using Calls = norm::Calls<Operator>;

}  // namespace
}  // namespace flydsl::rms_norm

extern "C" {

flydsl_aot_status flydsl_aot_rms_norm_query(flydsl_aot_handle *handle,
                                            const flydsl_aot_rms_norm_params *params,
                                            flydsl_aot_query_result *result) {
  return flydsl::guarded(__func__,
                         [&] { return flydsl::rms_norm::Calls::query(handle, params, result); });
}

flydsl_aot_status flydsl_aot_rms_norm_explain(flydsl_aot_handle *handle,
                                              const flydsl_aot_rms_norm_params *params,
                                              flydsl_aot_candidate_callback callback, void *user) {
  return flydsl::guarded(
      __func__, [&] { return flydsl::rms_norm::Calls::explain(handle, params, callback, user); });
}

flydsl_aot_status flydsl_aot_rms_norm_prefetch(flydsl_aot_handle *handle,
                                               const flydsl_aot_rms_norm_params *params) {
  return flydsl::guarded(__func__,
                         [&] { return flydsl::rms_norm::Calls::prefetch(handle, params); });
}

flydsl_aot_status flydsl_aot_rms_norm(flydsl_aot_handle *handle,
                                      const flydsl_aot_rms_norm_params *params, void *stream) {
  return flydsl::guarded(__func__,
                         [&] { return flydsl::rms_norm::Calls::call(handle, params, stream); });
}

}  // extern "C"
