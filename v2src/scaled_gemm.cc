// Matrix products of MX operands: check -> describe -> select -> launch. The contract is include/flydsl_aot/scaled_gemm.h.
#include "v2src/scaled_gemm.h"

#include "v2src/struct_size.h"

namespace flydsl::scaled_gemm {
namespace {

constexpr module::KernargContract kContract = {FLYDSL_AOT_SCALED_GEMM_KERNARG_LAYOUT_ID,
                                               sizeof(Kernarg)};
constexpr uint64_t kWorkspaceAlignment = 16;

Status check_workspace(const Params &params, uint64_t needed) {
  if (needed == 0) return {};
  if (params.workspace_bytes < needed || !params.workspace) {
    return error(FLYDSL_AOT_INVALID_WORKSPACE,
                 "workspace is %s, workspace_bytes %llu; the problem needs %llu bytes (see "
                 "flydsl_aot_scaled_gemm_query)",
                 params.workspace ? "given" : "NULL",
                 static_cast<unsigned long long>(params.workspace_bytes),
                 static_cast<unsigned long long>(needed));
  }
  if (reinterpret_cast<uint64_t>(params.workspace) % kWorkspaceAlignment == 0) return {};
  return error(FLYDSL_AOT_INVALID_WORKSPACE, "workspace is at %p; it must be 16-byte aligned",
               params.workspace);
}

Status launch(flydsl_aot_handle *handle, const Problem &problem, void *stream) {
  Launch products(handle);
  FLYDSL_RETURN_IF_ERROR(products.begin(problem.key, kContract, stream));
  Plan plan;
  FLYDSL_RETURN_IF_ERROR(plan_of(problem, products.entry(), &plan));
  FLYDSL_RETURN_IF_ERROR(check_workspace(*problem.params, plan.workspace_bytes));
  Kernarg kernarg = kernarg_of(problem, plan);
  if (plan.splits == 1) return products.run(plan.grid, &kernarg, sizeof kernarg);
  // Both are loaded before one is launched: a refused call has launched nothing.
  Launch sums(handle);
  FLYDSL_RETURN_IF_ERROR(sums.begin(problem.second_pass_key, kContract, stream));
  Kernarg of_sums = kernarg;
  LinearTiles grid;
  FLYDSL_RETURN_IF_ERROR(set_second_pass(problem, sums.entry(), &of_sums, &grid));
  FLYDSL_RETURN_IF_ERROR(products.run(plan.grid, &kernarg, sizeof kernarg));
  return sums.run(grid, &of_sums, sizeof of_sums);
}

// ---- the entry points

// Reads and checks the caller's parameters.
Status prepare(const flydsl_aot_handle *handle, const Params *caller, bool query, Params *params,
               Problem *problem) {
  if (!handle) return error(FLYDSL_AOT_INVALID_ARGUMENT, "handle is NULL");
  FLYDSL_RETURN_IF_ERROR(read_struct("params", caller, params));
  FLYDSL_RETURN_IF_ERROR(check(*params, query));
  *problem = describe(*params, handle->compute_units);
  return {};
}

// The instance for the products on a target, and its plan.
Status plan_on(const flydsl_aot_handle *handle, const Problem &problem,
               const archive::TargetId &target, uint32_t *entry, Plan *plan) {
  FLYDSL_RETURN_IF_ERROR(choose(handle, problem.key, target, entry));
  FLYDSL_RETURN_IF_ERROR(plan_of(problem, handle->archive->entries()[*entry], plan));
  uint32_t second = 0;
  return plan->splits == 1 ? Status() : choose(handle, problem.second_pass_key, target, &second);
}

Status query_kernel(const flydsl_aot_handle *handle, const Params *caller,
                    flydsl_aot_query_result *result) {
  Params params;
  Problem problem;
  FLYDSL_RETURN_IF_ERROR(prepare(handle, caller, true, &params, &problem));
  if (problem.empty) return {};
  const archive::TargetId *target = nullptr;
  FLYDSL_RETURN_IF_ERROR(query_target(handle, &target));
  uint32_t entry = 0;
  Plan plan;
  FLYDSL_RETURN_IF_ERROR(plan_on(handle, problem, *target, &entry, &plan));
  result->workspace_bytes = plan.workspace_bytes;
  describe_kernel(handle, entry, result);
  return {};
}

Status prefetch_kernels(flydsl_aot_handle *handle, const Params *caller) {
  Params params;
  Problem problem;
  FLYDSL_RETURN_IF_ERROR(prepare(handle, caller, true, &params, &problem));
  FLYDSL_RETURN_IF_ERROR(require_runtime(handle));
  if (problem.empty) return {};
  int device = 0;
  FLYDSL_RETURN_IF_ERROR(handle->runtime->current_device(&device));
  const archive::TargetId *target = nullptr;
  FLYDSL_RETURN_IF_ERROR(device_target(handle, device, &target));
  uint32_t entry = 0;
  Plan plan;
  FLYDSL_RETURN_IF_ERROR(plan_on(handle, problem, *target, &entry, &plan));
  FLYDSL_RETURN_IF_ERROR(prefetch(handle, problem.key, kContract));
  return plan.splits == 1 ? Status() : prefetch(handle, problem.second_pass_key, kContract);
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
        handle, params, flydsl::scaled_gemm::prepare, callback, user);
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
