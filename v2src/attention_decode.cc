// Fused attention of a few queries over a long key-value cache: check -> describe -> select -> launch.
// The contract is include/flydsl_aot/attention_decode.h.
#include "v2src/attention_decode.h"

#include <algorithm>
#include <cstddef>

#include "v2src/struct_size.h"

namespace flydsl::attention_decode {
namespace {

constexpr module::KernargContract kContract = {FLYDSL_AOT_ATTENTION_DECODE_KERNARG_LAYOUT_ID,
                                               sizeof(Kernarg)};
constexpr uint64_t kWorkspaceAlignment = 16;

uint64_t workspace_bytes(const Plan &plan) {
  return plan.head_bytes + plan.out_bytes;
}

Status check_workspace(const Params &params, uint64_t needed) {
  if (params.workspace_bytes < needed || !params.workspace) {
    return error(FLYDSL_AOT_INVALID_WORKSPACE,
                 "workspace is %s, workspace_bytes %llu; the problem needs %llu bytes (see "
                 "flydsl_aot_attention_decode_query)",
                 params.workspace ? "given" : "NULL",
                 static_cast<unsigned long long>(params.workspace_bytes),
                 static_cast<unsigned long long>(needed));
  }
  if (reinterpret_cast<uint64_t>(params.workspace) % kWorkspaceAlignment == 0) return {};
  return error(FLYDSL_AOT_INVALID_WORKSPACE, "workspace is at %p; it must be 16-byte aligned",
               params.workspace);
}

Status launch(flydsl_aot_handle *handle, const Problem &problem, void *stream) {
  // Both are loaded before one is launched: a refused call has launched nothing.
  Launch pass(handle), reduce(handle);
  FLYDSL_RETURN_IF_ERROR(pass.begin(problem.key, kContract, stream));
  FLYDSL_RETURN_IF_ERROR(reduce.begin(problem.reduce_key, kContract, stream));
  Plan plan;
  FLYDSL_RETURN_IF_ERROR(plan_of(problem, pass.entry(), handle->compute_units, &plan));
  FLYDSL_RETURN_IF_ERROR(check_workspace(*problem.params, workspace_bytes(plan)));
  Kernarg kernarg = kernarg_of(problem, plan);
  FLYDSL_RETURN_IF_ERROR(pass.run(plan.grid, &kernarg, sizeof kernarg));
  return reduce.run(plan.reduce_grid, &kernarg, sizeof kernarg);
}

// ---- the entry points

// Reads and checks the caller's parameters.
Status prepare(const flydsl_aot_handle *handle, const Params *caller, bool query, ReadStruct<Params> *room,
               Problem *problem) {
  if (!handle) return error(FLYDSL_AOT_INVALID_ARGUMENT, "handle is NULL");
  FLYDSL_RETURN_IF_ERROR(room->read("params", caller, offsetof(Params, k_descale)));
  const Params &params = room->get();
  FLYDSL_RETURN_IF_ERROR(check(params, query, handle->jit != nullptr));
  // A query without pointers is about v apart from k if a kernel of an archive reads them so.
  const bool apart =
      query && !shares_values(params, false) && find_class(sizes_of(params), false, false);
  *problem = describe(params, !apart && shares_values(params, query));
  return {};
}

// The kernel for the pass over the keys, and what it needs.
Status workspace_of(const flydsl_aot_handle *handle, const Problem &problem,
                    const archive::TargetId &target, uint32_t *entry, uint64_t *bytes) {
  FLYDSL_RETURN_IF_ERROR(choose(handle, problem.key, target, entry));
  Plan plan;
  FLYDSL_RETURN_IF_ERROR(
      plan_of(problem, handle->archive->entries()[*entry], handle->compute_units, &plan));
  *bytes = workspace_bytes(plan);
  return {};
}

Status query_kernel(const flydsl_aot_handle *handle, const Params *caller,
                    flydsl_aot_query_result *result) {
  ReadStruct<Params> params;
  Problem problem;
  FLYDSL_RETURN_IF_ERROR(prepare(handle, caller, true, &params, &problem));
  if (problem.empty) return {};
  const archive::TargetId *target = nullptr;
  FLYDSL_RETURN_IF_ERROR(query_target(handle, &target));
  uint32_t entry = 0, reduce = 0;
  FLYDSL_RETURN_IF_ERROR(choose(handle, problem.reduce_key, *target, &reduce));
  FLYDSL_RETURN_IF_ERROR(workspace_of(handle, problem, *target, &entry, &result->workspace_bytes));
  if (shares_values(params.get(), true) && !shares_values(params.get(), false)) {
    // Without pointers either may be what the call finds; but not a kernel that cannot be compiled here.
    for (const bool shared : {false, true}) {
      if (!find_class(problem, shared, handle->jit != nullptr)) continue;
      uint32_t other = 0;
      uint64_t bytes = 0;
      const Status status =
          workspace_of(handle, describe(params.get(), shared), *target, &other, &bytes);
      if (!status.ok() && status.code() != FLYDSL_AOT_COMPILER_NOT_FOUND) return status;
      result->workspace_bytes = std::max(result->workspace_bytes, bytes);
    }
  }
  describe_kernel(handle, entry, result);
  return {};
}

Status prefetch_kernels(flydsl_aot_handle *handle, const Params *caller) {
  ReadStruct<Params> params;
  Problem problem;
  FLYDSL_RETURN_IF_ERROR(prepare(handle, caller, true, &params, &problem));
  FLYDSL_RETURN_IF_ERROR(require_runtime(handle));
  if (problem.empty) return {};
  FLYDSL_RETURN_IF_ERROR(prefetch(handle, problem.key, kContract));
  return prefetch(handle, problem.reduce_key, kContract);
}

}  // namespace
}  // namespace flydsl::attention_decode

extern "C" {

flydsl_aot_status flydsl_aot_attention_decode_query(
    flydsl_aot_handle *handle, const flydsl_aot_attention_decode_params *params,
    flydsl_aot_query_result *result) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::answer_query(handle, params, result, flydsl::attention_decode::query_kernel);
  });
}

flydsl_aot_status flydsl_aot_attention_decode_explain(
    flydsl_aot_handle *handle, const flydsl_aot_attention_decode_params *params,
    flydsl_aot_candidate_callback callback, void *user) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::explain_problem<flydsl::attention_decode::Problem>(
        handle, params, flydsl::attention_decode::prepare, callback, user,
        [](const flydsl_aot_handle *, const flydsl::attention_decode::Problem &problem,
           const flydsl::archive::TargetId &,
           auto explain) { return explain(problem.reduce_key); });
  });
}

flydsl_aot_status flydsl_aot_attention_decode_prefetch(
    flydsl_aot_handle *handle, const flydsl_aot_attention_decode_params *params) {
  return flydsl::guarded(
      __func__, [&] { return flydsl::attention_decode::prefetch_kernels(handle, params); });
}

flydsl_aot_status flydsl_aot_attention_decode(flydsl_aot_handle *handle,
                                              const flydsl_aot_attention_decode_params *params,
                                              void *stream) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::call_problem<flydsl::attention_decode::Problem>(
        handle, params, flydsl::attention_decode::prepare, flydsl::attention_decode::launch, stream);
  });
}

}  // extern "C"
