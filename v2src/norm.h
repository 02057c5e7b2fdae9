// What rms_norm and layer_norm share on the host: check -> describe -> select -> launch, of either's parameters.
#pragma once

#include <algorithm>

#include "flydsl_aot/types.h"
#include "src/select/select.h"
#include "v2src/launch.h"
#include "v2src/rows.h"
#include "v2src/struct_size.h"
#include "v2src/types.h"

namespace flydsl::norm {

inline constexpr flydsl_aot_tensor kAbsent{};

// Both operators' parameters, whose tensors are the caller's; what one does not have is absent.
struct Params {
  float eps = 0, weight_offset = 0;
  uint32_t reserved = 0;
  const flydsl_aot_tensor *x = &kAbsent, *weight = &kAbsent, *bias = &kAbsent, *residual = &kAbsent,
                          *sum = &kAbsent, *out = &kAbsent, *out_scale = &kAbsent, *mean = &kAbsent,
                          *rstd = &kAbsent;
};

inline bool quantised(const Params &params) {
  return params.out->dtype == FLYDSL_AOT_E4M3 || params.out->dtype == FLYDSL_AOT_E5M2;
}
inline bool block_scaled(const Params &params) {
  return present(*params.out_scale) && params.out_scale->dtype == FLYDSL_AOT_E8M0;
}

Status check(const Params &params, bool query);
// But for the operator and its functional key.
select::Problem key_of(const Params &params);

struct Problem {
  Params params;
  bool empty;
  select::Problem key;
};

// The fields that both have.
template <class OperatorParams>
Params common_params(const OperatorParams &from) {
  Params params;
  params.eps = from.eps;
  params.weight_offset = from.weight_offset;
  params.reserved = from.reserved;
  params.x = &from.x;
  params.weight = &from.weight;
  params.residual = &from.residual;
  params.sum = &from.sum;
  params.out = &from.out;
  params.out_scale = &from.out_scale;
  params.rstd = &from.rstd;
  return params;
}

template <class Pointer>
void place_per_row(const flydsl_aot_tensor &tensor, const flydsl_aot_tensor &x, Pointer *data,
                   int64_t *outer, int64_t *inner) {
  if (!present(tensor)) return;
  *data = static_cast<Pointer>(tensor.data);
  const RowStrides strides = row_strides(tensor, x, 1);
  *outer = strides.outer;
  *inner = strides.inner;
}

template <class Kernarg>
Kernarg common_kernarg(const Params &params) {
  Kernarg kernarg{};
  const flydsl_aot_tensor &x = *params.x;
  const Rows rows = rows_of(x);
  const auto place = [&](const flydsl_aot_tensor &tensor, auto *data, int64_t *outer,
                         int64_t *inner) {
    if (!present(tensor)) return;
    *data = tensor.data;
    const RowStrides strides = row_stride_bytes(tensor, x);
    *outer = strides.outer;
    *inner = strides.inner;
  };
  place(x, &kernarg.x, &kernarg.x_stride_o, &kernarg.x_stride_i);
  place(*params.residual, &kernarg.residual, &kernarg.residual_stride_o,
        &kernarg.residual_stride_i);
  place(*params.sum, &kernarg.sum, &kernarg.sum_stride_o, &kernarg.sum_stride_i);
  place(*params.out, &kernarg.out, &kernarg.out_stride_o, &kernarg.out_stride_i);
  if (present(*params.weight)) {
    kernarg.weight = params.weight->data;
    kernarg.weight_dtype = static_cast<uint32_t>(params.weight->dtype);
    kernarg.weight_offset = params.weight_offset;
  }
  place_per_row(*params.rstd, x, &kernarg.rstd, &kernarg.rstd_stride_o, &kernarg.rstd_stride_i);
  if (present(*params.out_scale)) {
    kernarg.out_scale = params.out_scale->data;
    const RowStrides strides = row_strides(*params.out_scale, x, 1);
    kernarg.out_scale_stride_o = strides.outer;
    kernarg.out_scale_stride_i = strides.inner;
    if (block_scaled(params))
      kernarg.out_scale_stride_g = walked_stride(*params.out_scale, params.out_scale->rank - 1);
  }
  kernarg.rows = rows.count();
  kernarg.rows_inner = static_cast<uint64_t>(rows.inner);
  kernarg.row_length = static_cast<uint32_t>(rows.length);
  kernarg.eps = params.eps;
  kernarg.out_dtype = static_cast<uint32_t>(params.out->dtype);
  kernarg.block_scales = block_scaled(params);
  return kernarg;
}

// `Operator` has Params and Kernarg, kName and kContract, functional_key(dtype, quantised), and
// params_of(its parameters), kernarg_of(Params).
template <class Operator>
struct Calls {
  using Caller = typename Operator::Params;

  static Status launch(flydsl_aot_handle *handle, const Problem &problem, void *stream) {
    Launch kernel(handle);
    FLYDSL_RETURN_IF_ERROR(kernel.begin(problem.key, Operator::kContract, stream));
    typename Operator::Kernarg kernarg = Operator::kernarg_of(problem.params);
    const uint32_t rows_of_group = kernel.entry().tile[0];
    kernarg.tiles = (kernarg.rows - 1) / rows_of_group + 1;
    kernarg.groups = groups_for(kernarg.tiles);
    // Those of a kernel that keeps weights for the rows of a work-group are at most so many.
    const uint32_t most_groups = kernel.entry().tile[1];
    if (most_groups != 0) kernarg.groups = std::min(kernarg.groups, most_groups);
    return kernel.run({kernarg.groups, 1, 0}, &kernarg, sizeof kernarg);
  }

  // Reads and checks the caller's parameters.
  static Status prepare(const flydsl_aot_handle *handle, const Caller *caller, bool query,
                        ReadStruct<Caller> *room, Problem *problem) {
    if (!handle) return error(FLYDSL_AOT_INVALID_ARGUMENT, "handle is NULL");
    FLYDSL_RETURN_IF_ERROR(room->read("params", caller));
    const Caller &params = room->get();
    *problem = {};
    problem->params = Operator::params_of(params);
    FLYDSL_RETURN_IF_ERROR(check(problem->params, query));
    const flydsl_aot_tensor &x = *problem->params.x;
    problem->empty = empty(x);
    if (problem->empty) return {};
    problem->key = key_of(problem->params);
    problem->key.op = Operator::kName;
    problem->key.functional_key =
        Operator::functional_key(static_cast<uint64_t>(x.dtype), quantised(problem->params));
    return {};
  }

  static Status query(flydsl_aot_handle *handle, const Caller *caller,
                      flydsl_aot_query_result *result) {
    return answer_query(
        handle, caller, result,
        [](const flydsl_aot_handle *library, const Caller *given, flydsl_aot_query_result *filled) {
          return query_problem<Problem>(library, given, prepare, filled);
        });
  }

  static Status explain(flydsl_aot_handle *handle, const Caller *caller,
                        flydsl_aot_candidate_callback callback, void *user) {
    return explain_problem<Problem>(handle, caller, prepare, callback, user);
  }

  static Status prefetch(flydsl_aot_handle *handle, const Caller *caller) {
    return prefetch_problem<Problem>(handle, caller, prepare, Operator::kContract);
  }

  static Status call(flydsl_aot_handle *handle, const Caller *caller, void *stream) {
    return call_problem<Problem>(handle, caller, prepare, launch, stream);
  }
};

}  // namespace flydsl::norm
