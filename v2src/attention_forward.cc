// Fused multi-head attention, forward: check -> describe -> select -> launch. The contract is
// include/flydsl_aot/attention_forward.h.
#include "v2src/attention_forward.h"

#include <algorithm>
#include <cstddef>

#include "v2src/attention_forward_aiter.h"
#include "v2src/struct_size.h"

namespace flydsl::attention_forward {
namespace {

constexpr module::KernargContract kContract = {FLYDSL_AOT_ATTENTION_FORWARD_KERNARG_LAYOUT_ID,
                                               sizeof(Kernarg), &aiter::kContract};

// The grid of one archive entry (docs/archive-format.md). Sequences of different lengths are left to the hardware's
// order of work-groups, which goes on where one is free.
Status grid_of(const Problem &problem, const archive::Entry &entry, uint32_t compute_units,
               LinearTiles *tiles) {
  FLYDSL_RETURN_IF_ERROR(tiles_of(problem, entry.tile[0], tiles));
  if (entry.tile[2] == 0) return {};
  tiles->grid_y = 1;
  if (compute_units != 0 && !differing_lengths(*problem.params))
    tiles->grid_x = std::min(tiles->grid_x, compute_units * entry.tile[2]);
  return {};
}

Status launch(flydsl_aot_handle *handle, const Problem &problem, void *stream) {
  Launch launch(handle);
  FLYDSL_RETURN_IF_ERROR(launch.begin(problem.key, kContract, stream));
  if (aiter::kContract.is_of(launch.entry())) return aiter::run(launch, problem);
  LinearTiles tiles;
  FLYDSL_RETURN_IF_ERROR(grid_of(problem, launch.entry(), handle->compute_units, &tiles));
  Kernarg kernarg = kernarg_of(problem, tiles);
  return launch.run(tiles, &kernarg, sizeof kernarg);
}

// ---- the entry points

// Reads and checks the caller's parameters.
Status prepare(const flydsl_aot_handle *handle, const Params *caller, bool query, ReadStruct<Params> *room,
               Problem *problem) {
  if (!handle) return error(FLYDSL_AOT_INVALID_ARGUMENT, "handle is NULL");
  // The struct's first version ended before cu_seqlens_q.
  FLYDSL_RETURN_IF_ERROR(room->read("params", caller, offsetof(Params, cu_seqlens_q)));
  const Params &params = room->get();
  FLYDSL_RETURN_IF_ERROR(check(params, query, handle->jit != nullptr));
  *problem = describe(params, handle->has_aiter);
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
}  // namespace flydsl::attention_forward

extern "C" {

flydsl_aot_status flydsl_aot_attention_forward_query(
    flydsl_aot_handle *handle, const flydsl_aot_attention_forward_params *params,
    flydsl_aot_query_result *result) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::answer_query(handle, params, result, flydsl::attention_forward::query_kernel);
  });
}

flydsl_aot_status flydsl_aot_attention_forward_explain(
    flydsl_aot_handle *handle, const flydsl_aot_attention_forward_params *params,
    flydsl_aot_candidate_callback callback, void *user) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::explain_problem<flydsl::attention_forward::Problem>(
        handle, params, flydsl::attention_forward::prepare, callback, user);
  });
}

flydsl_aot_status flydsl_aot_attention_forward_prefetch(
    flydsl_aot_handle *handle, const flydsl_aot_attention_forward_params *params) {
  return flydsl::guarded(
      __func__, [&] { return flydsl::attention_forward::prefetch_kernel(handle, params); });
}

flydsl_aot_status flydsl_aot_attention_forward(flydsl_aot_handle *handle,
                                               const flydsl_aot_attention_forward_params *params,
                                               void *stream) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::call_problem<flydsl::attention_forward::Problem>(
        handle, params, flydsl::attention_forward::prepare, flydsl::attention_forward::launch, stream);
  });
}

}  // extern "C"
