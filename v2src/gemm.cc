// Matrix products with an epilogue: check -> describe -> select -> plan -> launch. The contract is include/flydsl_aot/gemm.h.
#include "v2src/gemm.h"

#include "v2src/parts_of_k.h"
#include "v2src/struct_size.h"

namespace flydsl::gemm {
namespace {

constexpr module::KernargContract kContract = {FLYDSL_AOT_GEMM_KERNARG_LAYOUT_ID, sizeof(Kernarg)};

Status launch_products(flydsl_aot_handle *handle, const Problem &problem, void *stream) {
  return launch_parts_of_k<Plan>(handle, problem, kContract, "flydsl_aot_gemm_query", stream);
}

Status launch(flydsl_aot_handle *handle, const Problem &problem, void *stream) {
  if (problem.sums_wanted == 0) return launch_products(handle, problem, stream);
  // Loaded before anything is launched: a refused call has launched nothing.
  Launch sums(handle);
  FLYDSL_RETURN_IF_ERROR(sums.begin(problem.sums_key, kContract, stream));
  std::array<Kernarg, kMostSums> kernargs;
  std::array<LinearTiles, kMostSums> grids;
  for (size_t i = 0; i < problem.sums_wanted; ++i)
    FLYDSL_RETURN_IF_ERROR(set_sum(problem.sums[i], sums.entry(), &kernargs[i], &grids[i]));
  if (problem.products) FLYDSL_RETURN_IF_ERROR(launch_products(handle, problem, stream));
  for (size_t i = 0; i < problem.sums_wanted; ++i)
    FLYDSL_RETURN_IF_ERROR(sums.run(grids[i], &kernargs[i], sizeof kernargs[i]));
  return {};
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
  ReadStruct<Params> params;
  Problem problem;
  FLYDSL_RETURN_IF_ERROR(prepare(handle, caller, true, &params, &problem));
  if (problem.sums_wanted > 0) {
    const archive::TargetId *target = nullptr;
    uint32_t entry = 0;
    FLYDSL_RETURN_IF_ERROR(query_target(handle, &target));
    FLYDSL_RETURN_IF_ERROR(choose(handle, problem.sums_key, *target, &entry));
    describe_kernel(handle, entry, result);
  }
  return problem.products ? query_parts_of_k<Problem, Plan>(handle, caller, prepare, result)
                          : Status();
}

constexpr auto explain_others = [](const flydsl_aot_handle *handle, const Problem &problem,
                                  const archive::TargetId &target, auto explain) -> Status {
  if (!problem.products) return {};  // sums are all there is
  FLYDSL_RETURN_IF_ERROR(ExplainSecondPass<Plan>()(handle, problem, target, explain));
  return problem.sums_wanted > 0 ? explain(problem.sums_key) : Status();
};

Status prefetch_kernels(flydsl_aot_handle *handle, const Params *caller) {
  ReadStruct<Params> params;
  Problem problem;
  FLYDSL_RETURN_IF_ERROR(prepare(handle, caller, true, &params, &problem));
  FLYDSL_RETURN_IF_ERROR(require_runtime(handle));
  if (problem.sums_wanted > 0)
    FLYDSL_RETURN_IF_ERROR(prefetch(handle, problem.sums_key, kContract));
  return problem.products ? prefetch_parts_of_k<Problem, Plan>(handle, caller, prepare, kContract)
                          : Status();
}

}  // namespace
}  // namespace flydsl::gemm

extern "C" {

flydsl_aot_status flydsl_aot_gemm_query(flydsl_aot_handle *handle,
                                        const flydsl_aot_gemm_params *params,
                                        flydsl_aot_query_result *result) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::answer_query(handle, params, result, flydsl::gemm::query_kernel);
  });
}

flydsl_aot_status flydsl_aot_gemm_explain(flydsl_aot_handle *handle,
                                          const flydsl_aot_gemm_params *params,
                                          flydsl_aot_candidate_callback callback, void *user) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::explain_problem<flydsl::gemm::Problem>(handle, params, flydsl::gemm::prepare,
                                                          callback, user, flydsl::gemm::explain_others);
  });
}

flydsl_aot_status flydsl_aot_gemm_prefetch(flydsl_aot_handle *handle,
                                           const flydsl_aot_gemm_params *params) {
  return flydsl::guarded(__func__, [&] { return flydsl::gemm::prefetch_kernels(handle, params); });
}

flydsl_aot_status flydsl_aot_gemm(flydsl_aot_handle *handle, const flydsl_aot_gemm_params *params,
                                  void *stream) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::call_problem<flydsl::gemm::Problem>(handle, params, flydsl::gemm::prepare,
                                                       flydsl::gemm::launch, stream);
  });
}

}  // extern "C"
