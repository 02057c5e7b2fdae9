// The gradients of fused multi-head attention: check -> describe -> plan -> launch. The contract is
// include/flydsl_aot/attention_backward.h.
#include "v2src/attention_backward.h"

#include <algorithm>
#include <array>
#include <optional>

#include "v2src/attention_backward_aiter.h"
#include "v2src/struct_size.h"
#include "v2src/tensor_check.h"

namespace flydsl::attention_backward {
namespace {

constexpr module::KernargContract kContract = {FLYDSL_AOT_ATTENTION_BACKWARD_KERNARG_LAYOUT_ID,
                                               sizeof(Kernarg), &aiter::kContract};
constexpr uint64_t kWorkspaceAlignment = 16;

const select::Problem &key_of(const Problem &problem, Pass pass) {
  return problem.keys[static_cast<size_t>(pass)];
}

// The passes that run, in their order.
struct Passes {
  Pass all[kPasses];
  size_t count;
};
Passes passes_of(const Problem &problem, Way way) {
  Passes passes{};
  const auto add = [&](Pass pass, bool runs) {
    if (runs) passes.all[passes.count++] = pass;
  };
  const auto wants = [&](Pass pass) { return problem.wants[static_cast<size_t>(pass)]; };
  add(Pass::prepare, way != Way::kInRows && wants(Pass::prepare));
  add(Pass::prepare_rows, way == Way::kInRows);
  add(Pass::fused, way != Way::kApart);
  add(Pass::convert, way == Way::kTogether);
  add(Pass::convert_rows, way == Way::kInRows);
  add(Pass::keys, way == Way::kApart && wants(Pass::keys));
  add(Pass::queries, way == Way::kApart && wants(Pass::queries));
  add(Pass::bias, wants(Pass::bias));
  add(Pass::sinks, wants(Pass::sinks));
  return passes;
}

bool holds(uint64_t room, const Problem &problem, Way way) {
  Workspace workspace;
  return workspace_of(problem, way, &workspace).ok() && workspace.bytes <= room;
}

// One kernel computes dq, dk and dv where a tuning row or the user says so, else where one of ours is thought to be faster; and if
// there is nothing else. Not if the workspace has room for separate passes only.
Way way_of(const flydsl_aot_handle *handle, const Problem &problem, const archive::TargetId &target,
           uint64_t room = kAnyRoom) {
  if (!problem.wants_together) return Way::kApart;
  if (!holds(room, problem, Way::kTogether) && holds(room, problem, Way::kApart))
    return Way::kApart;
  const select::Context context = handle->context(target);
  const std::optional<select::Choice> choice =
      select::select(context, key_of(problem, Pass::fused));
  if (!choice) return Way::kApart;
  const bool in_rows = aiter::kContract.is_of(handle->archive->entries()[choice->entry]);
  const bool asked_for = choice->row || context.policy.forces(choice->entry);
  const auto is_there = [&](Pass pass) {
    return select::select(context, key_of(problem, pass)).has_value();
  };
  if (!asked_for && (in_rows || !problem.faster_together) && is_there(Pass::keys) &&
      is_there(Pass::queries))
    return Way::kApart;
  return in_rows ? Way::kInRows : Way::kTogether;
}

Status grid_of(const Problem &problem, Pass pass, const archive::Entry &entry,
               const Workspace &workspace, uint32_t compute_units, LinearTiles *tiles) {
  const Params &params = *problem.params;
  switch (pass) {
    case Pass::prepare:
    case Pass::convert:
    case Pass::prepare_rows:
    case Pass::convert_rows:
      return linear_tiles(workspace.rows_stride, workspace.planes, 1, entry.tile[0], tiles);
    case Pass::sinks:
      return linear_tiles(problem.heads_q, 1, 1, entry.tile[0], tiles);
    case Pass::bias:
      return linear_tiles(int64_t{tiles_of(params.dbias.sizes[2], entry.tile[0])} *
                              tiles_of(params.dbias.sizes[3], entry.tile[1]),
                          params.dbias.sizes[0], params.dbias.sizes[1], 1, tiles);
    case Pass::queries:
      return attention_forward::tiles_of_sequences(
          {problem.seq_q, problem.total_q, problem.batches, problem.heads_q, entry.tile[0],
           present(params.cu_seqlens_q), problem.differing},
          tiles);
    case Pass::keys:
    case Pass::fused:
      break;
  }
  FLYDSL_RETURN_IF_ERROR(attention_forward::tiles_of_sequences(
      {problem.seq_k, problem.total_k, problem.batches, problem.heads_kv, entry.tile[1],
       present(params.cu_seqlens_k), problem.differing},
      tiles));
  if (entry.tile[2] == 0 || problem.differing) return {};
  tiles->grid_y = 1;  // each work-group has several tiles
  if (compute_units != 0) tiles->grid_x = std::min(tiles->grid_x, compute_units * entry.tile[2]);
  return {};
}

Status check_workspace(const Params &params, uint64_t needed) {
  if (needed == 0) return {};
  if (params.workspace_bytes < needed || !params.workspace) {
    return error(FLYDSL_AOT_INVALID_WORKSPACE,
                 "workspace is %s, workspace_bytes %llu; the problem needs %llu bytes (see "
                 "flydsl_aot_attention_backward_query)",
                 params.workspace ? "given" : "NULL",
                 static_cast<unsigned long long>(params.workspace_bytes),
                 static_cast<unsigned long long>(needed));
  }
  if (reinterpret_cast<uint64_t>(params.workspace) % kWorkspaceAlignment == 0) return {};
  return error(FLYDSL_AOT_INVALID_WORKSPACE, "workspace is at %p; it must be 16-byte aligned",
               params.workspace);
}

Status launch(flydsl_aot_handle *handle, const Problem &problem, void *stream) {
  int device = 0;
  FLYDSL_RETURN_IF_ERROR(call_device(handle, stream, &device));
  const archive::TargetId *target = nullptr;
  FLYDSL_RETURN_IF_ERROR(device_target(handle, device, &target));
  Plan plan;
  FLYDSL_RETURN_IF_ERROR(plan_of(handle, problem, *target, problem.params->workspace_bytes, &plan));
  FLYDSL_RETURN_IF_ERROR(check_workspace(*problem.params, plan.workspace.bytes));
  // All are loaded before one is launched: a refused call has launched nothing.
  std::array<std::optional<Launch>, kPasses> launches;
  for (size_t i = 0; i < plan.count; ++i) {
    launches[i].emplace(handle);
    FLYDSL_RETURN_IF_ERROR(
        launches[i]->begin(plan.steps[i].entry, plan.steps[i].row, kContract, stream));
  }
  Kernarg kernarg = kernarg_of(problem, plan.workspace);
  if (plan.way == Way::kInRows) kernarg.rows_stride = problem.seq_q;
  for (size_t i = 0; i < plan.count; ++i) {
    set_pass(problem, launches[i]->entry(), plan.steps[i], &kernarg);
    if (plan.way == Way::kInRows && plan.steps[i].pass == Pass::fused) {
      FLYDSL_RETURN_IF_ERROR(aiter::run(*launches[i], problem, kernarg));
      continue;
    }
    FLYDSL_RETURN_IF_ERROR(launches[i]->run(plan.steps[i].grid, &kernarg, sizeof kernarg));
  }
  return {};
}

// ---- the entry points

// Reads and checks the caller's parameters.
Status prepare(const flydsl_aot_handle *handle, const Params *caller, bool query, ReadStruct<Params> *room,
               Problem *problem) {
  if (!handle) return error(FLYDSL_AOT_INVALID_ARGUMENT, "handle is NULL");
  FLYDSL_RETURN_IF_ERROR(room->read("params", caller));
  const Params &params = room->get();
  FLYDSL_RETURN_IF_ERROR(check(params, query, handle->jit != nullptr));
  *problem = describe(params, handle->compute_units);
  return {};
}

Status query_kernels(const flydsl_aot_handle *handle, const Params *caller,
                     flydsl_aot_query_result *result) {
  ReadStruct<Params> params;
  Problem problem;
  FLYDSL_RETURN_IF_ERROR(prepare(handle, caller, true, &params, &problem));
  if (problem.empty) return {};
  const archive::TargetId *target = nullptr;
  FLYDSL_RETURN_IF_ERROR(query_target(handle, &target));
  Plan plan;
  FLYDSL_RETURN_IF_ERROR(plan_of(handle, problem, *target, kAnyRoom, &plan));
  result->workspace_bytes = plan.workspace.bytes;
  for (size_t i = 0; i < plan.count; ++i)
    if (plan.steps[i].pass == plan.main) describe_kernel(handle, plan.steps[i].entry, result);
  return {};
}

Status explain(const flydsl_aot_handle *handle, const Params *caller,
               flydsl_aot_candidate_callback callback, void *user) {
  if (!callback) return error(FLYDSL_AOT_INVALID_ARGUMENT, "callback is NULL");
  ReadStruct<Params> params;
  Problem problem;
  FLYDSL_RETURN_IF_ERROR(prepare(handle, caller, true, &params, &problem));
  if (problem.empty) return {};
  const archive::TargetId *target = nullptr;
  FLYDSL_RETURN_IF_ERROR(query_target(handle, &target));
  const Way way = way_of(handle, problem, *target);
  const auto explain_others = [&]() -> Status {
    if (!problem.wants_together) return {};
    if (way == Way::kApart)
      return explain_candidates(handle, key_of(problem, Pass::fused), *target, callback, user,
                                "several kernels compute dq, dk and dv");
    for (const Pass pass : {Pass::keys, Pass::queries})
      FLYDSL_RETURN_IF_ERROR(explain_candidates(handle, key_of(problem, pass), *target, callback,
                                                user, "one kernel computes dq, dk and dv"));
    return {};
  };
  // What would be taken without tuning and without the user's word stands first.
  const bool others_first = (way != Way::kApart) != problem.faster_together;
  if (others_first) FLYDSL_RETURN_IF_ERROR(explain_others());
  const Passes passes = passes_of(problem, way);
  for (size_t i = 0; i < passes.count; ++i)
    FLYDSL_RETURN_IF_ERROR(
        explain_candidates(handle, key_of(problem, passes.all[i]), *target, callback, user));
  return others_first ? Status() : explain_others();
}

Status prefetch_kernels(flydsl_aot_handle *handle, const Params *caller) {
  ReadStruct<Params> params;
  Problem problem;
  FLYDSL_RETURN_IF_ERROR(prepare(handle, caller, true, &params, &problem));
  FLYDSL_RETURN_IF_ERROR(require_runtime(handle));
  if (problem.empty) return {};
  int device = 0;
  FLYDSL_RETURN_IF_ERROR(handle->runtime->current_device(&device));
  const archive::TargetId *target = nullptr;
  FLYDSL_RETURN_IF_ERROR(device_target(handle, device, &target));
  const uint64_t room = problem.params->workspace_bytes ? problem.params->workspace_bytes : kAnyRoom;
  const Passes passes = passes_of(problem, way_of(handle, problem, *target, room));
  for (size_t i = 0; i < passes.count; ++i)
    FLYDSL_RETURN_IF_ERROR(prefetch(handle, key_of(problem, passes.all[i]), kContract));
  return {};
}

}  // namespace

uint32_t tiles_of(int64_t size, uint32_t tile) {
  return static_cast<uint32_t>((size + tile - 1) / tile);
}

Status plan_of(const flydsl_aot_handle *handle, const Problem &problem,
               const archive::TargetId &target, uint64_t room, Plan *plan) {
  *plan = {};
  plan->way = way_of(handle, problem, target, room);
  FLYDSL_RETURN_IF_ERROR(workspace_of(problem, plan->way, &plan->workspace));
  const Passes passes = passes_of(problem, plan->way);
  for (size_t i = 0; i < passes.count; ++i) {
    Step &step = plan->steps[plan->count++];
    step.pass = passes.all[i];
    FLYDSL_RETURN_IF_ERROR(
        choose(handle, key_of(problem, step.pass), target, &step.entry, &step.row));
    FLYDSL_RETURN_IF_ERROR(grid_of(problem, step.pass, handle->archive->entries()[step.entry],
                                   plan->workspace, handle->compute_units, &step.grid));
  }
  // The first after `prepare`, in their order: the one that has the most to do.
  if (plan->count > 0)
    plan->main = passes.all[plan->count > 1 && (passes.all[0] == Pass::prepare ||
                                                passes.all[0] == Pass::prepare_rows)
                                ? 1
                                : 0];
  return {};
}

}  // namespace flydsl::attention_backward

extern "C" {

flydsl_aot_status flydsl_aot_attention_backward_query(
    flydsl_aot_handle *handle, const flydsl_aot_attention_backward_params *params,
    flydsl_aot_query_result *result) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::answer_query(handle, params, result, flydsl::attention_backward::query_kernels);
  });
}

flydsl_aot_status flydsl_aot_attention_backward_explain(
    flydsl_aot_handle *handle, const flydsl_aot_attention_backward_params *params,
    flydsl_aot_candidate_callback callback, void *user) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::attention_backward::explain(handle, params, callback, user);
  });
}

flydsl_aot_status flydsl_aot_attention_backward_prefetch(
    flydsl_aot_handle *handle, const flydsl_aot_attention_backward_params *params) {
  return flydsl::guarded(
      __func__, [&] { return flydsl::attention_backward::prefetch_kernels(handle, params); });
}

flydsl_aot_status flydsl_aot_attention_backward(flydsl_aot_handle *handle,
                                                const flydsl_aot_attention_backward_params *params,
                                                void *stream) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::call_problem<flydsl::attention_backward::Problem>(
        handle, params, flydsl::attention_backward::prepare, flydsl::attention_backward::launch,
        stream);
  });
}

}  // extern "C"
