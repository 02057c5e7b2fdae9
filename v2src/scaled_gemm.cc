// Matrix products of MX operands: check -> describe -> select -> launch. The contract is include/flydsl_aot/scaled_gemm.h.
#include "v2src/scaled_gemm.h"

#include "v2src/parts_of_k.h"
#include "v2src/struct_size.h"

namespace flydsl::scaled_gemm {
namespace {

constexpr module::KernargContract kContract = {FLYDSL_AOT_SCALED_GEMM_KERNARG_LAYOUT_ID,
                                               sizeof(Kernarg)};

Status launch(flydsl_aot_handle *handle, const Problem &problem, void *stream) {
  return launch_parts_of_k<Plan>(handle, problem, kContract, "flydsl_aot_scaled_gemm_query",
                                 stream);
}

// ---- the entry points

// Reads and checks the caller's parameters.
Status prepare(const flydsl_aot_handle *handle, const Params *caller, bool query, ReadStruct<Params> *room,
               Problem *problem) {
  if (!handle) return error(FLYDSL_AOT_INVALID_ARGUMENT, "handle is NULL");
  FLYDSL_RETURN_IF_ERROR(room->read("params", caller));
  const Params &params = room->get();
  FLYDSL_RETURN_IF_ERROR(check(params, query));
  *problem = describe(params, handle->compute_units);
  return {};
}

Status query_kernel(const flydsl_aot_handle *handle, const Params *caller,
                    flydsl_aot_query_result *result) {
  return query_parts_of_k<Problem, Plan>(handle, caller, prepare, result);
}

Status prefetch_kernels(flydsl_aot_handle *handle, const Params *caller) {
  return prefetch_parts_of_k<Problem, Plan>(handle, caller, prepare, kContract);
}

}  // namespace
}  // namespace flydsl::scaled_gemm

extern "C" {

flydsl_aot_status flydsl_aot_scaled_gemm_query(flydsl_aot_handle *handle,
                                               const flydsl_aot_scaled_gemm_params *params,
                                               flydsl_aot_query_result *result) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::answer_query(handle, params, result, flydsl::scaled_gemm::query_kernel);
  });
}

flydsl_aot_status flydsl_aot_scaled_gemm_explain(flydsl_aot_handle *handle,
                                                 const flydsl_aot_scaled_gemm_params *params,
                                                 flydsl_aot_candidate_callback callback,
                                                 void *user) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::explain_problem<flydsl::scaled_gemm::Problem>(
        handle, params, flydsl::scaled_gemm::prepare, callback, user,
        flydsl::ExplainSecondPass<flydsl::scaled_gemm::Plan>());
  });
}

flydsl_aot_status flydsl_aot_scaled_gemm_prefetch(flydsl_aot_handle *handle,
                                                  const flydsl_aot_scaled_gemm_params *params) {
  return flydsl::guarded(__func__,
                         [&] { return flydsl::scaled_gemm::prefetch_kernels(handle, params); });
}

flydsl_aot_status flydsl_aot_scaled_gemm(flydsl_aot_handle *handle,
                                         const flydsl_aot_scaled_gemm_params *params,
                                         void *stream) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::call_problem<flydsl::scaled_gemm::Problem>(
        handle, params, flydsl::scaled_gemm::prepare, flydsl::scaled_gemm::launch, stream);
  });
}

}  // extern "C"
