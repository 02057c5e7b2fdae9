// Matrix products that parts of K may share: a launch makes the sums of each part, a second one adds them. What an operator's query,
// prefetch and call do then. Its Problem has `params`, `empty`, `key` and `second_pass_key`, its Plan `splits`, `workspace_bytes` and `grid`, and its
// namespace
//   Status plan_of(const Problem &, const archive::Entry &, Plan *)
//   Kernarg kernarg_of(const Problem &, const Plan &)
//   Status set_second_pass(const Plan &, const archive::Entry &, Kernarg *, LinearTiles *)
#pragma once

#include "v2src/launch.h"

namespace flydsl {

constexpr int64_t kMostParts = 64;
constexpr uint64_t kMostWorkspaceBytes = uint64_t{1} << 29;
constexpr int64_t kElementsOfBlock = 8;  // of the second pass: a lane's, in a row

constexpr int64_t divided_up(int64_t value, int64_t by) {
  return value / by + (value % by != 0);
}
// K of a part, a multiple of `granule` where there are several.
constexpr int64_t part_of_k(int64_t k, int64_t splits, int64_t granule) {
  return splits == 1 ? k : divided_up(divided_up(k, splits), granule) * granule;
}
// The sums of all parts.
template <class Problem>
uint64_t bytes_of_parts(const Problem &problem, int64_t splits) {
  if (splits == 1) return 0;
  return static_cast<uint64_t>(problem.m) * static_cast<uint64_t>(problem.n) *
         static_cast<uint64_t>(problem.batches) * static_cast<uint64_t>(splits) * sizeof(float);
}
// Of the second pass.
template <class Problem>
int64_t blocks_of(const Problem &problem) {
  return problem.batches * problem.m * divided_up(problem.n, kElementsOfBlock);
}

// `query`: the function that says how large it must be.
Status check_workspace_of_parts(const void *workspace, uint64_t bytes, uint64_t needed,
                                const char *query);

template <class Plan, class Problem>
Status launch_parts_of_k(flydsl_aot_handle *handle, const Problem &problem,
                         const module::KernargContract &contract, const char *query, void *stream) {
  Launch products(handle);
  FLYDSL_RETURN_IF_ERROR(products.begin(problem.key, contract, stream));
  Plan plan;
  FLYDSL_RETURN_IF_ERROR(plan_of(problem, products.entry(), &plan));
  FLYDSL_RETURN_IF_ERROR(check_workspace_of_parts(
      problem.params->workspace, problem.params->workspace_bytes, plan.workspace_bytes, query));
  auto kernarg = kernarg_of(problem, plan);
  if (plan.splits == 1) return products.run(plan.grid, &kernarg, sizeof kernarg);
  // Both are loaded before one is launched: a refused call has launched nothing.
  Launch sums(handle);
  FLYDSL_RETURN_IF_ERROR(sums.begin(problem.second_pass_key, contract, stream));
  auto of_sums = kernarg;
  LinearTiles grid;
  FLYDSL_RETURN_IF_ERROR(set_second_pass(plan, sums.entry(), &of_sums, &grid));
  FLYDSL_RETURN_IF_ERROR(products.run(plan.grid, &kernarg, sizeof kernarg));
  return sums.run(grid, &of_sums, sizeof of_sums);
}

// The instance for the products on a target, and its plan.
template <class Plan, class Problem>
Status plan_parts_of_k(const flydsl_aot_handle *handle, const Problem &problem,
                       const archive::TargetId &target, uint32_t *entry, Plan *plan) {
  FLYDSL_RETURN_IF_ERROR(choose(handle, problem.key, target, entry));
  FLYDSL_RETURN_IF_ERROR(plan_of(problem, handle->archive->entries()[*entry], plan));
  uint32_t second = 0;
  return plan->splits == 1 ? Status() : choose(handle, problem.second_pass_key, target, &second);
}

// For explain_problem(): the kernel that adds the parts, where there are several.
template <class Plan>
struct ExplainSecondPass {
  template <class Problem, class Explain>
  Status operator()(const flydsl_aot_handle *handle, const Problem &problem,
                    const archive::TargetId &target, Explain explain) const {
    uint32_t entry = 0;
    Plan plan;
    FLYDSL_RETURN_IF_ERROR(plan_parts_of_k(handle, problem, target, &entry, &plan));
    return plan.splits == 1 ? Status() : explain(problem.second_pass_key);
  }
};

template <class Problem, class Plan, class Params, class Prepare>
Status query_parts_of_k(const flydsl_aot_handle *handle, const Params *caller, Prepare prepare,
                        flydsl_aot_query_result *result) {
  ReadStruct<Params> params;
  Problem problem;
  FLYDSL_RETURN_IF_ERROR(prepare(handle, caller, true, &params, &problem));
  if (problem.empty) return {};
  const archive::TargetId *target = nullptr;
  FLYDSL_RETURN_IF_ERROR(query_target(handle, &target));
  uint32_t entry = 0;
  Plan plan;
  FLYDSL_RETURN_IF_ERROR(plan_parts_of_k(handle, problem, *target, &entry, &plan));
  result->workspace_bytes = plan.workspace_bytes;
  describe_kernel(handle, entry, result);
  return {};
}

template <class Problem, class Plan, class Params, class Prepare>
Status prefetch_parts_of_k(flydsl_aot_handle *handle, const Params *caller, Prepare prepare,
                           const module::KernargContract &contract) {
  ReadStruct<Params> params;
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
  FLYDSL_RETURN_IF_ERROR(plan_parts_of_k(handle, problem, *target, &entry, &plan));
  FLYDSL_RETURN_IF_ERROR(prefetch(handle, problem.key, contract));
  return plan.splits == 1 ? Status() : prefetch(handle, problem.second_pass_key, contract);
}

}  // namespace flydsl
