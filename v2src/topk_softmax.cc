// The K best of rows of logits and their softmax: check -> describe -> select -> launch. The contract is
// include/flydsl_aot/topk_softmax.h.
#include "flydsl_aot/topk_softmax.h"

#include <algorithm>

#include "flydsl_aot_generated/topk_softmax_kernarg.h"
#include "v2src/attention_check.h"
#include "v2src/rows.h"
#include "v2src/struct_size.h"
#include "v2src/types.h"

namespace flydsl::topk_softmax {
namespace {

using Params = flydsl_aot_topk_softmax_params;
using Kernarg = flydsl_aot_topk_softmax_kernarg;

constexpr module::KernargContract kContract = {FLYDSL_AOT_TOPK_SOFTMAX_KERNARG_LAYOUT_ID,
                                               sizeof(Kernarg)};
constexpr int64_t kMaxLength = 512, kMaxK = 16;
constexpr const char *kTwoAxes[] = {"M", "K"}, *kThreeAxes[] = {"M0", "M1", "K"};

struct Problem {
  const Params *params;
  bool empty;
  select::Problem key;
};

struct Operands {
  Operand x, weights, indices;
};
Operands operands_of(const Params &params) {
  const char *const *axes = params.x.rank == 3 ? kThreeAxes : kTwoAxes;
  return {{"x", &params.x, row_axes(params.x.rank)},
          {"weights", &params.weights, axes},
          {"indices", &params.indices, axes}};
}

Status check_dtypes(const Params &params) {
  const flydsl_aot_dtype dtype = params.x.dtype, weights = params.weights.dtype,
                         index = params.indices.dtype;
  if (!known_dtype(dtype))
    return error(FLYDSL_AOT_INVALID_DTYPE, "x has the unknown dtype number %d", dtype);
  if (!is_real(dtype)) {
    return error(FLYDSL_AOT_UNSUPPORTED_DTYPE, "x is %s; supported: fp32, fp16, bf16",
                 flydsl_aot_dtype_name(dtype));
  }
  if (weights != FLYDSL_AOT_FP32 && weights != dtype) {
    return error(FLYDSL_AOT_INVALID_DTYPE, "weights is %s (number %d); it must be fp32 or %s",
                 flydsl_aot_dtype_name(weights), weights, flydsl_aot_dtype_name(dtype));
  }
  if (index == FLYDSL_AOT_INT32 || index == FLYDSL_AOT_INT64) return {};
  return error(FLYDSL_AOT_INVALID_DTYPE, "indices is %s (number %d); it must be int32 or int64",
               flydsl_aot_dtype_name(index), index);
}

Status check_shapes(const Params &params) {
  const Operands all = operands_of(params);
  FLYDSL_RETURN_IF_ERROR(check_rows(all.x));
  const int last = params.x.rank - 1;
  for (const Operand *operand : {&all.weights, &all.indices}) {
    FLYDSL_RETURN_IF_ERROR(check_shape(*operand, params.x.rank));
    for (int axis = 0; axis < last; ++axis)
      FLYDSL_RETURN_IF_ERROR(check_same_size(all.x, axis, *operand, axis));
  }
  FLYDSL_RETURN_IF_ERROR(check_same_size(all.weights, last, all.indices, last));
  const long long length = params.x.sizes[last], k = params.weights.sizes[last];
  if (k > length) {
    return error(FLYDSL_AOT_INVALID_SHAPE,
                 "weights has K = %lld, but x has only N = %lld elements in a row", k, length);
  }
  if (length <= kMaxLength && k <= kMaxK) return {};
  return error(FLYDSL_AOT_UNSUPPORTED_SIZE,
               "N is %lld and K %lld; N must be at most 512 and K at most 16", length, k);
}

Status check_memory(const Params &params, bool query) {
  const Operands all = operands_of(params);
  for (const Operand *operand : {&all.x, &all.weights, &all.indices}) {
    FLYDSL_RETURN_IF_ERROR(check_strides(*operand));
    FLYDSL_RETURN_IF_ERROR(check_data(*operand, query));
  }
  FLYDSL_RETURN_IF_ERROR(check_last_axis_contiguous(all.x));
  for (const Operand *output : {&all.weights, &all.indices}) {
    FLYDSL_RETURN_IF_ERROR(check_no_self_overlap(*output));
    FLYDSL_RETURN_IF_ERROR(check_apart(*output, all.x));
  }
  return check_apart(all.weights, all.indices);
}

void describe(const Params &params, Problem *problem) {
  const int last = params.x.rank - 1;
  const auto length = static_cast<uint64_t>(params.x.sizes[last]);
  const RowStrides strides = row_stride_bytes(params.x, params.x);
  problem->key.op = "topk_softmax";
  problem->key.functional_key = flydsl_aot_topk_softmax_key(static_cast<uint64_t>(params.x.dtype));
  problem->key.align_bytes = alignment_of(
      {reinterpret_cast<uint64_t>(params.x.data), length * dtype_bytes(params.x.dtype),
       static_cast<uint64_t>(strides.outer), static_cast<uint64_t>(strides.inner)});
  problem->key.seq_q = static_cast<uint64_t>(params.weights.sizes[last]);
  problem->key.seq_k = length;
}

Status launch(flydsl_aot_handle *handle, const Problem &problem, void *stream) {
  Launch launch(handle);
  FLYDSL_RETURN_IF_ERROR(launch.begin(problem.key, kContract, stream));
  const Params &params = *problem.params;
  const int last = params.x.rank - 1;
  const Rows rows = rows_of(params.x);
  Kernarg kernarg{};
  kernarg.x = params.x.data;
  kernarg.weights = params.weights.data;
  kernarg.indices = params.indices.data;
  const RowStrides x = row_stride_bytes(params.x, params.x),
                   weights = row_stride_bytes(params.weights, params.x),
                   indices = row_stride_bytes(params.indices, params.x);
  kernarg.x_stride_o = x.outer;
  kernarg.x_stride_i = x.inner;
  kernarg.weights_stride_o = weights.outer;
  kernarg.weights_stride_i = weights.inner;
  kernarg.weights_stride_k =
      walked_stride(params.weights, last) * dtype_bytes(params.weights.dtype);
  kernarg.indices_stride_o = indices.outer;
  kernarg.indices_stride_i = indices.inner;
  kernarg.indices_stride_k =
      walked_stride(params.indices, last) * dtype_bytes(params.indices.dtype);
  kernarg.rows = rows.count();
  kernarg.rows_inner = static_cast<uint64_t>(rows.inner);
  kernarg.tiles = (kernarg.rows - 1) / launch.entry().tile[0] + 1;
  kernarg.groups = groups_for(kernarg.tiles);
  kernarg.length = static_cast<uint32_t>(rows.length);
  kernarg.k = static_cast<uint32_t>(params.weights.sizes[last]);
  kernarg.chosen_only = params.chosen_only;
  kernarg.weights_are_fp32 = params.weights.dtype == FLYDSL_AOT_FP32;
  kernarg.wide_indices = params.indices.dtype == FLYDSL_AOT_INT64;
  return launch.run({kernarg.groups, 1, 0}, &kernarg, sizeof kernarg);
}

// Reads and checks the caller's parameters.
Status prepare(const flydsl_aot_handle *handle, const Params *caller, bool query, ReadStruct<Params> *room,
               Problem *problem) {
  if (!handle) return error(FLYDSL_AOT_INVALID_ARGUMENT, "handle is NULL");
  FLYDSL_RETURN_IF_ERROR(room->read("params", caller));
  const Params &params = room->get();
  const Operands all = operands_of(params);
  FLYDSL_RETURN_IF_ERROR(
      check_required({&all.x, &all.weights, &all.indices}, "x, weights and indices"));
  if (params.chosen_only > 1)
    return error(FLYDSL_AOT_INVALID_ARGUMENT, "chosen_only is %u; it must be 0 or 1",
                 params.chosen_only);
  FLYDSL_RETURN_IF_ERROR(check_dtypes(params));
  FLYDSL_RETURN_IF_ERROR(check_shapes(params));
  FLYDSL_RETURN_IF_ERROR(check_memory(params, query));
  *problem = {};
  problem->params = &params;
  problem->empty = empty(params.weights);
  if (!problem->empty) describe(params, problem);
  return {};
}

Status query_kernel(const flydsl_aot_handle *handle, const Params *caller,
                    flydsl_aot_query_result *result) {
  return query_problem<Problem>(handle, caller, prepare, result);
}

}  // namespace
}  // namespace flydsl::topk_softmax

extern "C" {

flydsl_aot_status flydsl_aot_topk_softmax_query(flydsl_aot_handle *handle,
                                                const flydsl_aot_topk_softmax_params *params,
                                                flydsl_aot_query_result *result) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::answer_query(handle, params, result, flydsl::topk_softmax::query_kernel);
  });
}

flydsl_aot_status flydsl_aot_topk_softmax_explain(flydsl_aot_handle *handle,
                                                  const flydsl_aot_topk_softmax_params *params,
                                                  flydsl_aot_candidate_callback callback,
                                                  void *user) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::explain_problem<flydsl::topk_softmax::Problem>(
        handle, params, flydsl::topk_softmax::prepare, callback, user);
  });
}

flydsl_aot_status flydsl_aot_topk_softmax_prefetch(flydsl_aot_handle *handle,
                                                   const flydsl_aot_topk_softmax_params *params) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::prefetch_problem<flydsl::topk_softmax::Problem>(
        handle, params, flydsl::topk_softmax::prepare, flydsl::topk_softmax::kContract);
  });
}

flydsl_aot_status flydsl_aot_topk_softmax(flydsl_aot_handle *handle,
                                          const flydsl_aot_topk_softmax_params *params,
                                          void *stream) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::call_problem<flydsl::topk_softmax::Problem>(
        handle, params, flydsl::topk_softmax::prepare, flydsl::topk_softmax::launch, stream);
  });
}

}  // extern "C"
