// Many matrix products in one launch: check -> describe -> select -> launch. The contract is
// include/flydsl_aot/grouped_gemm.h.
#include "v2src/grouped_gemm.h"

#include <cstddef>

#include "v2src/struct_size.h"

namespace flydsl::grouped_gemm {
namespace {

constexpr module::KernargContract kContract = {FLYDSL_AOT_GROUPED_GEMM_KERNARG_LAYOUT_ID,
                                               sizeof(Kernarg)};

Status launch(flydsl_aot_handle *handle, const Problem &problem, void *stream) {
  Launch launch(handle);
  FLYDSL_RETURN_IF_ERROR(launch.begin(problem.key, kContract, stream));
  const uint32_t workers = workers_of(problem, launch.entry(), handle->compute_units);
  Kernarg kernarg = kernarg_of(problem, workers);
  return launch.run({workers, 1, 0}, &kernarg, sizeof kernarg);
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
  return query_problem<Problem>(handle, caller, prepare, result);
}

Status prefetch_kernel(flydsl_aot_handle *handle, const Params *caller) {
  return prefetch_problem<Problem>(handle, caller, prepare, kContract);
}

}  // namespace
}  // namespace flydsl::grouped_gemm

extern "C" {

flydsl_aot_status flydsl_aot_grouped_gemm_query(flydsl_aot_handle *handle,
                                                const flydsl_aot_grouped_gemm_params *params,
                                                flydsl_aot_query_result *result) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::answer_query(handle, params, result, flydsl::grouped_gemm::query_kernel);
  });
}

flydsl_aot_status flydsl_aot_grouped_gemm_explain(flydsl_aot_handle *handle,
                                                  const flydsl_aot_grouped_gemm_params *params,
                                                  flydsl_aot_candidate_callback callback,
                                                  void *user) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::explain_problem<flydsl::grouped_gemm::Problem>(
        handle, params, flydsl::grouped_gemm::prepare, callback, user);
  });
}

flydsl_aot_status flydsl_aot_grouped_gemm_prefetch(flydsl_aot_handle *handle,
                                                   const flydsl_aot_grouped_gemm_params *params) {
  return flydsl::guarded(__func__,
                         [&] { return flydsl::grouped_gemm::prefetch_kernel(handle, params); });
}

flydsl_aot_status flydsl_aot_grouped_gemm(flydsl_aot_handle *handle,
                                          const flydsl_aot_grouped_gemm_params *params,
                                          void *stream) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::call_problem<flydsl::grouped_gemm::Problem>(
        handle, params, flydsl::grouped_gemm::prepare, flydsl::grouped_gemm::launch, stream);
  });
}

}  // extern "C"
