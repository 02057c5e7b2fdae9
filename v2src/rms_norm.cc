// Root-mean-square norm of rows: check -> describe -> select -> launch. The contract is include/flydsl_aot/rms_norm.h.
#include "flydsl_aot/rms_norm.h"

#include <cmath>

#include "flydsl_aot_generated/rms_norm_kernarg.h"
#include "v2src/attention_check.h"
#include "v2src/rows.h"
#include "v2src/struct_size.h"
#include "v2src/types.h"

namespace flydsl::rms_norm {
namespace {

using Params = flydsl_aot_rms_norm_params;
using Kernarg = flydsl_aot_rms_norm_kernarg;

constexpr module::KernargContract kContract = {FLYDSL_AOT_RMS_NORM_KERNARG_LAYOUT_ID,
                                               sizeof(Kernarg)};
constexpr const char *kColumnAxes[] = {"N"};
constexpr const char *kTwoScaleAxes[] = {"M", "ceil(N / 32)"};
constexpr const char *kThreeScaleAxes[] = {"M0", "M1", "ceil(N / 32)"};
constexpr int64_t kScaleBlock = 32;

struct Problem {
  const Params *params;
  bool empty;
  select::Problem key;
};

struct Operands {
  Operand x, weight, residual, sum, out, out_scale, rstd;
};

bool quantised(const Params &params) {
  return params.out.dtype == FLYDSL_AOT_E4M3 || params.out.dtype == FLYDSL_AOT_E5M2;
}
bool block_scaled(const Params &params) {
  return present(params.out_scale) && params.out_scale.dtype == FLYDSL_AOT_E8M0;
}

Operands operands_of(const Params &params) {
  const char *const *axes = row_axes(params.x.rank);
  const char *const *scale_axes = params.x.rank == 3 ? kThreeScaleAxes : kTwoScaleAxes;
  return {{"x", &params.x, axes},
          {"weight", &params.weight, kColumnAxes},
          {"residual", &params.residual, axes},
          {"sum", &params.sum, axes},
          {"out", &params.out, axes},
          {"out_scale", &params.out_scale, block_scaled(params) ? scale_axes : axes},
          {"rstd", &params.rstd, axes}};
}

// ---- check

Status check_numbers(const Params &params) {
  if (!std::isfinite(params.eps) || params.eps < 0) {
    return error(FLYDSL_AOT_INVALID_SCALE, "eps is %g; it must be finite and 0 or more",
                 static_cast<double>(params.eps));
  }
  const float offset = params.weight_offset;
  if (offset != 0 && offset != 1) {
    return error(FLYDSL_AOT_INVALID_ARGUMENT, "weight_offset is %g; it must be 0 or 1",
                 static_cast<double>(offset));
  }
  if (offset != 0 && !present(params.weight))
    return error(FLYDSL_AOT_INVALID_ARGUMENT, "weight_offset is 1, but there is no weight");
  if (params.reserved == 0) return {};
  return error(FLYDSL_AOT_INVALID_ARGUMENT, "reserved is %u; it must be 0", params.reserved);
}

Status check_dtypes(const Params &params, const Operands &all) {
  const flydsl_aot_dtype dtype = params.x.dtype;
  if (!known_dtype(dtype))
    return error(FLYDSL_AOT_INVALID_DTYPE, "x has the unknown dtype number %d", dtype);
  if (!is_real(dtype)) {
    return error(FLYDSL_AOT_UNSUPPORTED_DTYPE, "x is %s; supported: fp32, fp16, bf16",
                 flydsl_aot_dtype_name(dtype));
  }
  for (const Operand *operand : {&all.residual, &all.sum})
    if (present(*operand->tensor)) FLYDSL_RETURN_IF_ERROR(check_dtype_is(*operand, dtype));
  if (present(params.rstd)) FLYDSL_RETURN_IF_ERROR(check_dtype_is(all.rstd, FLYDSL_AOT_FP32));
  if (!quantised(params)) {
    if (params.out.dtype != dtype) {
      return error(FLYDSL_AOT_INVALID_DTYPE,
                   "out is %s (number %d); it must have x's dtype, %s, or be e4m3 or e5m2",
                   flydsl_aot_dtype_name(params.out.dtype), params.out.dtype,
                   flydsl_aot_dtype_name(dtype));
    }
    if (!present(params.out_scale)) return {};
    return error(FLYDSL_AOT_INVALID_ARGUMENT, "out_scale is given, but out is %s, not quantised",
                 flydsl_aot_dtype_name(params.out.dtype));
  }
  if (!present(params.out_scale)) {
    return error(FLYDSL_AOT_INVALID_SHAPE, "out is %s, but out_scale is absent (rank 0)",
                 flydsl_aot_dtype_name(params.out.dtype));
  }
  if (block_scaled(params) || params.out_scale.dtype == FLYDSL_AOT_FP32) return {};
  return error(FLYDSL_AOT_INVALID_DTYPE,
               "out_scale is %s (number %d); it must be fp32 (a number for each row) or e8m0 (for "
               "32 neighbours)",
               flydsl_aot_dtype_name(params.out_scale.dtype), params.out_scale.dtype);
}

Status check_block_scales(const Operands &all) {
  const int32_t rank = all.x.tensor->rank;
  FLYDSL_RETURN_IF_ERROR(check_shape(all.out_scale, rank));
  for (int axis = 0; axis + 1 < rank; ++axis)
    FLYDSL_RETURN_IF_ERROR(check_same_size(all.x, axis, all.out_scale, axis));
  const int64_t length = all.x.tensor->sizes[rank - 1];
  const int64_t blocks = length / kScaleBlock + (length % kScaleBlock != 0);
  if (all.out_scale.tensor->sizes[rank - 1] == blocks) return {};
  return error(FLYDSL_AOT_INVALID_SHAPE,
               "out_scale has %lld scales a row (axis %d); x has N = %lld, which needs %lld",
               static_cast<long long>(all.out_scale.tensor->sizes[rank - 1]), rank - 1,
               static_cast<long long>(length), static_cast<long long>(blocks));
}

Status check_shapes(const Params &params, const Operands &all) {
  FLYDSL_RETURN_IF_ERROR(check_rows(all.x));
  FLYDSL_RETURN_IF_ERROR(check_like(all.out, all.x));
  if (present(params.weight)) FLYDSL_RETURN_IF_ERROR(check_per_column(all.weight, all.x));
  for (const Operand *operand : {&all.residual, &all.sum})
    if (present(*operand->tensor)) FLYDSL_RETURN_IF_ERROR(check_like(*operand, all.x));
  if (present(params.sum) && !present(params.residual))
    return error(FLYDSL_AOT_INVALID_ARGUMENT, "sum is given, but there is no residual");
  if (present(params.rstd)) FLYDSL_RETURN_IF_ERROR(check_per_row(all.rstd, all.x));
  if (!present(params.out_scale)) return {};
  return block_scaled(params) ? check_block_scales(all) : check_per_row(all.out_scale, all.x);
}

Status check_memory(const Params &params, const Operands &all, bool query) {
  const Operand *const operands[] = {&all.x,   &all.weight,    &all.residual, &all.sum,
                                     &all.out, &all.out_scale, &all.rstd};
  for (const Operand *operand : operands) {
    if (!present(*operand->tensor)) continue;
    FLYDSL_RETURN_IF_ERROR(check_strides(*operand));
    FLYDSL_RETURN_IF_ERROR(check_data(*operand, query));
  }
  for (const Operand *operand : {&all.x, &all.weight, &all.residual, &all.sum, &all.out})
    if (present(*operand->tensor)) FLYDSL_RETURN_IF_ERROR(check_last_axis_contiguous(*operand));
  const bool sum_in_x = same_view(params.sum, params.x);
  for (const Operand *output : {&all.sum, &all.out, &all.out_scale, &all.rstd}) {
    if (!present(*output->tensor)) continue;
    FLYDSL_RETURN_IF_ERROR(check_no_self_overlap(*output));
    for (const Operand *other : operands) {
      if (other == output || !present(*other->tensor)) continue;
      const bool in_place = (output == &all.sum && (other == &all.x || other == &all.residual)) ||
                            (output == &all.out && other == &all.x && !sum_in_x);
      if (in_place && same_view(*output->tensor, *other->tensor)) continue;
      FLYDSL_RETURN_IF_ERROR(check_apart(*output, *other));
    }
  }
  return {};
}

Status check(const Params &params, bool query) {
  const Operands all = operands_of(params);
  FLYDSL_RETURN_IF_ERROR(check_required({&all.x, &all.out}, "x and out"));
  FLYDSL_RETURN_IF_ERROR(check_numbers(params));
  FLYDSL_RETURN_IF_ERROR(check_dtypes(params, all));
  FLYDSL_RETURN_IF_ERROR(check_shapes(params, all));
  return check_memory(params, all, query);
}

// ---- describe

Problem describe(const Params &params) {
  Problem problem{};
  problem.params = &params;
  problem.empty = empty(params.x);
  if (problem.empty) return problem;
  const Rows rows = rows_of(params.x);
  const uint64_t element_bytes = flydsl_aot_dtype_bytes(params.x.dtype);
  const bool bytes = quantised(params);
  problem.key.op = "rms_norm";
  problem.key.functional_key =
      flydsl_aot_rms_norm_key(static_cast<uint64_t>(params.x.dtype), bytes);
  const auto mask = [](const flydsl_aot_tensor &tensor) {
    return present(tensor) ? alignment_mask(tensor) : 0;
  };
  problem.key.align_bytes =
      alignment_of({mask(params.x), mask(params.residual), mask(params.sum), mask(params.weight),
                    mask(params.out) * (bytes ? element_bytes : 1),
                    static_cast<uint64_t>(rows.length) * element_bytes});
  problem.key.seq_q = rows.count();
  problem.key.seq_k = static_cast<uint64_t>(rows.length);
  return problem;
}

Kernarg kernarg_of(const Params &params) {
  Kernarg kernarg{};
  const flydsl_aot_tensor &x = params.x;
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
  place(params.residual, &kernarg.residual, &kernarg.residual_stride_o, &kernarg.residual_stride_i);
  place(params.sum, &kernarg.sum, &kernarg.sum_stride_o, &kernarg.sum_stride_i);
  place(params.out, &kernarg.out, &kernarg.out_stride_o, &kernarg.out_stride_i);
  if (present(params.weight)) {
    kernarg.weight = params.weight.data;
    kernarg.weight_dtype = static_cast<uint32_t>(params.weight.dtype);
    kernarg.weight_offset = params.weight_offset;
  }
  if (present(params.rstd)) {
    kernarg.rstd = static_cast<float *>(params.rstd.data);
    const RowStrides strides = row_strides(params.rstd, x, 1);
    kernarg.rstd_stride_o = strides.outer;
    kernarg.rstd_stride_i = strides.inner;
  }
  if (present(params.out_scale)) {
    kernarg.out_scale = params.out_scale.data;
    const RowStrides strides = row_strides(params.out_scale, x, 1);
    kernarg.out_scale_stride_o = strides.outer;
    kernarg.out_scale_stride_i = strides.inner;
    if (block_scaled(params))
      kernarg.out_scale_stride_g = walked_stride(params.out_scale, params.out_scale.rank - 1);
  }
  kernarg.rows = rows.count();
  kernarg.rows_inner = static_cast<uint64_t>(rows.inner);
  kernarg.row_length = static_cast<uint32_t>(rows.length);
  kernarg.eps = params.eps;
  kernarg.out_dtype = static_cast<uint32_t>(params.out.dtype);
  kernarg.block_scales = block_scaled(params);
  return kernarg;
}

// ---- launch

Status launch(flydsl_aot_handle *handle, const Problem &problem, void *stream) {
  Launch kernel(handle);
  FLYDSL_RETURN_IF_ERROR(kernel.begin(problem.key, kContract, stream));
  Kernarg kernarg = kernarg_of(*problem.params);
  const uint32_t rows_of_group = kernel.entry().tile[0];
  kernarg.tiles = (kernarg.rows - 1) / rows_of_group + 1;
  kernarg.groups = groups_for(kernarg.tiles);
  return kernel.run({kernarg.groups, 1, 0}, &kernarg, sizeof kernarg);
}

// ---- the entry points

// Reads and checks the caller's parameters.
Status prepare(const flydsl_aot_handle *handle, const Params *caller, bool query, Params *params,
               Problem *problem) {
  if (!handle) return error(FLYDSL_AOT_INVALID_ARGUMENT, "handle is NULL");
  FLYDSL_RETURN_IF_ERROR(read_struct("params", caller, params));
  FLYDSL_RETURN_IF_ERROR(check(*params, query));
  *problem = describe(*params);
  return {};
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
  FLYDSL_RETURN_IF_ERROR(choose(handle, problem.key, *target, &entry));
  describe_kernel(handle, entry, result);
  return {};
}

Status prefetch_kernel(flydsl_aot_handle *handle, const Params *caller) {
  Params params;
  Problem problem;
  FLYDSL_RETURN_IF_ERROR(prepare(handle, caller, true, &params, &problem));
  FLYDSL_RETURN_IF_ERROR(require_runtime(handle));
  return problem.empty ? Status() : prefetch(handle, problem.key, kContract);
}

}  // namespace
}  // namespace flydsl::rms_norm

extern "C" {

flydsl_aot_status flydsl_aot_rms_norm_query(flydsl_aot_handle *handle,
                                            const flydsl_aot_rms_norm_params *params,
                                            flydsl_aot_query_result *result) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::answer_query(handle, params, result, flydsl::rms_norm::query_kernel);
  });
}

flydsl_aot_status flydsl_aot_rms_norm_explain(flydsl_aot_handle *handle,
                                              const flydsl_aot_rms_norm_params *params,
                                              flydsl_aot_candidate_callback callback, void *user) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::explain_problem<flydsl::rms_norm::Problem>(
        handle, params, flydsl::rms_norm::prepare, callback, user);
  });
}

flydsl_aot_status flydsl_aot_rms_norm_prefetch(flydsl_aot_handle *handle,
                                               const flydsl_aot_rms_norm_params *params) {
  return flydsl::guarded(__func__,
                         [&] { return flydsl::rms_norm::prefetch_kernel(handle, params); });
}

flydsl_aot_status flydsl_aot_rms_norm(flydsl_aot_handle *handle,
                                      const flydsl_aot_rms_norm_params *params, void *stream) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::call_problem<flydsl::rms_norm::Problem>(
        handle, params, flydsl::rms_norm::prepare, flydsl::rms_norm::launch, stream);
  });
}

}  // extern "C"
