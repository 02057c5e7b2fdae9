// Rows to OCP MX: check -> describe -> select -> launch. The contract is include/flydsl_aot/mx_quantise.h.
#include "flydsl_aot/mx_quantise.h"

#include <algorithm>

#include "flydsl_aot_generated/mx_quantise_kernarg.h"
#include "v2src/attention_check.h"
#include "v2src/launch.h"
#include "v2src/struct_size.h"
#include "v2src/tensor_check.h"
#include "v2src/types.h"

namespace flydsl::mx_quantise {
namespace {

using Params = flydsl_aot_mx_quantise_params;
using Kernarg = flydsl_aot_mx_quantise_kernarg;

constexpr module::KernargContract kContract = {FLYDSL_AOT_MX_QUANTISE_KERNARG_LAYOUT_ID,
                                               sizeof(Kernarg)};
constexpr int64_t kBlock = 32, kMaxColumns = int64_t{1} << 30, kMaxRows = (int64_t{1} << 31) - 1;
constexpr uint32_t kThreads = 256, kMostGroups = 2048;

constexpr const char *kAxes[] = {"batch", "M", "K"};
constexpr const char *kScaleAxes[] = {"batch", "M", "K / 32"};

struct Problem {
  const Params *params;
  bool empty;
  select::Problem key;
};

bool is_shuffled(const Params &params) {
  return params.scale_layout == FLYDSL_AOT_SCALES_SHUFFLED_32_8;
}
int64_t rounded_up(int64_t value, int64_t to) {
  return (value + to - 1) / to * to;
}
// Of a tensor that has passed the checks of shapes.
int64_t rows_of(const flydsl_aot_tensor &x) {
  return (x.rank == 3 ? x.sizes[0] : 1) * x.sizes[x.rank - 2];
}
int64_t columns_of(const flydsl_aot_tensor &x) {
  return x.sizes[x.rank - 1];
}
// As bytes lie in memory: the packed axis has half its size.
flydsl_aot_tensor stored_view(const flydsl_aot_tensor &out) {
  flydsl_aot_tensor view = out;
  if (out.dtype == FLYDSL_AOT_E2M1X2) view.sizes[out.rank - 1] /= 2;
  return view;
}

// ---- check

Status check_dtype(const Operand &operand, bool taken, const char *supported) {
  const flydsl_aot_dtype dtype = operand.tensor->dtype;
  if (!known_dtype(dtype))
    return error(FLYDSL_AOT_INVALID_DTYPE, "%s has the unknown dtype number %d", operand.name,
                 dtype);
  if (taken) return {};
  return error(FLYDSL_AOT_UNSUPPORTED_DTYPE, "%s is %s; supported: %s", operand.name,
               flydsl_aot_dtype_name(dtype), supported);
}

Status check_enums(const Params &params) {
  if (params.scale_layout != FLYDSL_AOT_SCALES_PLAIN && !is_shuffled(params)) {
    return error(FLYDSL_AOT_INVALID_ARGUMENT,
                 "scale_layout is %d; it must be 0 (plain) or 1 (shuffled_32_8)",
                 params.scale_layout);
  }
  if (params.rounding != FLYDSL_AOT_ROUND_NEAREST_EVEN &&
      params.rounding != FLYDSL_AOT_ROUND_STOCHASTIC) {
    return error(FLYDSL_AOT_INVALID_ARGUMENT,
                 "rounding is %d; it must be 0 (nearest even) or 1 (stochastic)", params.rounding);
  }
  if (params.reserved == 0) return {};
  return error(FLYDSL_AOT_INVALID_ARGUMENT, "reserved is %u; it must be 0", params.reserved);
}

Status check_shapes(const Params &params, const Operand &x, const Operand &out,
                    const Operand &scale) {
  const int32_t rank = params.x.rank;
  if (rank != 2 && rank != 3)
    return error(FLYDSL_AOT_INVALID_SHAPE, "x has rank %d; expected 2 or, batched, 3", rank);
  for (const Operand *operand : {&x, &out, &scale})
    FLYDSL_RETURN_IF_ERROR(check_shape(*operand, rank));
  for (int axis = 0; axis < rank; ++axis)
    FLYDSL_RETURN_IF_ERROR(check_same_size(x, axis, out, axis));
  if (rank == 3) FLYDSL_RETURN_IF_ERROR(check_same_size(x, 0, scale, 0));
  const int64_t columns = columns_of(params.x), m = params.x.sizes[rank - 2];
  if (columns % kBlock != 0 || columns > kMaxColumns) {
    return error(FLYDSL_AOT_UNSUPPORTED_SIZE,
                 "K = %lld; it must be a multiple of %lld, at most %lld",
                 static_cast<long long>(columns), static_cast<long long>(kBlock),
                 static_cast<long long>(kMaxColumns));
  }
  int64_t rows = m;
  if ((rank == 3 && __builtin_mul_overflow(params.x.sizes[0], m, &rows)) ||
      std::max(m, rows) > kMaxRows) {
    return error(FLYDSL_AOT_UNSUPPORTED_SIZE, "M and batch * M must be below 2^31; M is %lld%s",
                 static_cast<long long>(m), rank == 3 ? " in each batch" : "");
  }
  const int64_t want_rows = is_shuffled(params) ? rounded_up(m, 32) : m;
  const int64_t want_blocks =
      is_shuffled(params) ? rounded_up(columns / kBlock, 8) : columns / kBlock;
  const flydsl_aot_tensor &s = params.scale;
  if (s.sizes[rank - 2] != want_rows || s.sizes[rank - 1] != want_blocks) {
    return error(
        FLYDSL_AOT_INVALID_SHAPE, "scale is %lld x %lld; x is %lld x %lld, which needs %lld x %lld",
        static_cast<long long>(s.sizes[rank - 2]), static_cast<long long>(s.sizes[rank - 1]),
        static_cast<long long>(m), static_cast<long long>(columns),
        static_cast<long long>(want_rows), static_cast<long long>(want_blocks));
  }
  if (!is_shuffled(params) || empty(s) ||
      (s.strides[rank - 2] == want_blocks && s.strides[rank - 1] == 1))
    return {};
  return error(
      FLYDSL_AOT_INVALID_STRIDE,
      "scale has strides %lld and %lld on its last axes; shuffled scales are dense: %lld and 1",
      static_cast<long long>(s.strides[rank - 2]), static_cast<long long>(s.strides[rank - 1]),
      static_cast<long long>(want_blocks));
}

Status check(const Params &params, bool query) {
  const int without_batch = params.x.rank == 2 ? 1 : 0;
  const Operand x{"x", &params.x, kAxes + without_batch},
      out{"out", &params.out, kAxes + without_batch},
      scale{"scale", &params.scale, kScaleAxes + without_batch};
  FLYDSL_RETURN_IF_ERROR(check_required({&x, &out, &scale}, "x, out and scale"));
  FLYDSL_RETURN_IF_ERROR(check_enums(params));
  FLYDSL_RETURN_IF_ERROR(check_dtype(
      x, is_wide(params.x.dtype) || params.x.dtype == FLYDSL_AOT_FP32, "fp32, fp16, bf16"));
  FLYDSL_RETURN_IF_ERROR(
      check_dtype(out, is_float8(params.out.dtype) || params.out.dtype == FLYDSL_AOT_E2M1X2,
                  "e4m3, e5m2, e2m1x2"));
  FLYDSL_RETURN_IF_ERROR(check_dtype(scale, params.scale.dtype == FLYDSL_AOT_E8M0, "e8m0"));
  FLYDSL_RETURN_IF_ERROR(check_shapes(params, x, out, scale));
  const flydsl_aot_tensor stored = stored_view(params.out);
  const Operand bytes{"out", &stored, out.axes};
  for (const Operand *operand : {&x, &bytes, &scale}) {
    FLYDSL_RETURN_IF_ERROR(check_strides(*operand));
    FLYDSL_RETURN_IF_ERROR(check_data(*operand, query));
  }
  for (const Operand *operand : {&x, &bytes})
    FLYDSL_RETURN_IF_ERROR(check_last_axis_contiguous(*operand));
  for (const Operand *output : {&bytes, &scale})
    FLYDSL_RETURN_IF_ERROR(check_no_self_overlap(*output));
  if (query) return {};
  FLYDSL_RETURN_IF_ERROR(check_no_overlap(bytes, x));
  FLYDSL_RETURN_IF_ERROR(check_no_overlap(scale, x));
  return check_no_overlap(bytes, scale);
}

// ---- describe

Problem describe(const Params &params) {
  Problem problem{};
  problem.params = &params;
  problem.empty = empty(params.x);
  if (problem.empty) return problem;
  problem.key.op = "mx_quantise";
  problem.key.functional_key =
      flydsl_aot_mx_quantise_key(params.rounding == FLYDSL_AOT_ROUND_STOCHASTIC);
  problem.key.seq_q = static_cast<uint64_t>(rows_of(params.x));
  problem.key.seq_k = static_cast<uint64_t>(columns_of(params.x));
  return problem;
}

Kernarg kernarg_of(const Params &params) {
  Kernarg kernarg{};
  const auto strides = [](const flydsl_aot_tensor &tensor, int64_t *batch, int64_t *row) {
    const int64_t bytes = dtype_bytes(tensor.dtype);
    *batch = tensor.rank == 3 ? walked_stride(tensor, 0) * bytes : 0;
    *row = walked_stride(tensor, tensor.rank - 2) * bytes;
  };
  kernarg.x = params.x.data;
  strides(params.x, &kernarg.x_stride_b, &kernarg.x_stride_m);
  kernarg.out = params.out.data;
  strides(params.out, &kernarg.out_stride_b, &kernarg.out_stride_m);
  kernarg.scale = params.scale.data;
  strides(params.scale, &kernarg.scale_stride_b, &kernarg.scale_stride_m);
  kernarg.scale_stride_k = walked_stride(params.scale, params.scale.rank - 1);
  kernarg.scales_shuffled = is_shuffled(params);
  if (is_shuffled(params)) kernarg.scale_stride_m = columns_of(params.scale);
  kernarg.seed = params.seed;
  kernarg.offset = params.offset;
  kernarg.x_dtype = static_cast<uint32_t>(params.x.dtype);
  kernarg.out_dtype = static_cast<uint32_t>(params.out.dtype);
  kernarg.rows = static_cast<uint32_t>(rows_of(params.x));
  kernarg.m = static_cast<uint32_t>(params.x.sizes[params.x.rank - 2]);
  kernarg.k = static_cast<uint32_t>(columns_of(params.x));
  kernarg.lanes_log2 = 2;
  while ((1u << kernarg.lanes_log2) < kThreads && (8u << kernarg.lanes_log2) < kernarg.k)
    ++kernarg.lanes_log2;
  const uint32_t rows_at_once = kThreads >> kernarg.lanes_log2;
  kernarg.groups = std::min((kernarg.rows - 1) / rows_at_once + 1, kMostGroups);
  return kernarg;
}

Status launch(flydsl_aot_handle *handle, const Problem &problem, void *stream) {
  Launch kernel(handle);
  FLYDSL_RETURN_IF_ERROR(kernel.begin(problem.key, kContract, stream));
  Kernarg kernarg = kernarg_of(*problem.params);
  return kernel.run({kernarg.groups, 1, 0}, &kernarg, sizeof kernarg);
}

// ---- the entry points

// Reads and checks the caller's parameters.
Status prepare(const flydsl_aot_handle *handle, const Params *caller, bool query, ReadStruct<Params> *room,
               Problem *problem) {
  if (!handle) return error(FLYDSL_AOT_INVALID_ARGUMENT, "handle is NULL");
  FLYDSL_RETURN_IF_ERROR(room->read("params", caller));
  const Params &params = room->get();
  FLYDSL_RETURN_IF_ERROR(check(params, query));
  *problem = describe(params);
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
}  // namespace flydsl::mx_quantise

extern "C" {

flydsl_aot_status flydsl_aot_mx_quantise_query(flydsl_aot_handle *handle,
                                               const flydsl_aot_mx_quantise_params *params,
                                               flydsl_aot_query_result *result) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::answer_query(handle, params, result, flydsl::mx_quantise::query_kernel);
  });
}

flydsl_aot_status flydsl_aot_mx_quantise_explain(flydsl_aot_handle *handle,
                                                 const flydsl_aot_mx_quantise_params *params,
                                                 flydsl_aot_candidate_callback callback,
                                                 void *user) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::explain_problem<flydsl::mx_quantise::Problem>(
        handle, params, flydsl::mx_quantise::prepare, callback, user);
  });
}

flydsl_aot_status flydsl_aot_mx_quantise_prefetch(flydsl_aot_handle *handle,
                                                  const flydsl_aot_mx_quantise_params *params) {
  return flydsl::guarded(__func__,
                         [&] { return flydsl::mx_quantise::prefetch_kernel(handle, params); });
}

flydsl_aot_status flydsl_aot_mx_quantise(flydsl_aot_handle *handle,
                                         const flydsl_aot_mx_quantise_params *params,
                                         void *stream) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::call_problem<flydsl::mx_quantise::Problem>(
        handle, params, flydsl::mx_quantise::prepare, flydsl::mx_quantise::launch, stream);
  });
}

}  // extern "C"
