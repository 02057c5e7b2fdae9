// Fused multi-head attention, forward: check -> describe -> select -> launch. The contract is
// include/flydsl_aot/attention_forward.h; the kernel arguments come from
// codegen/describe/attention_forward.py.
#include "flydsl_aot/attention_forward.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>

#include "flydsl_aot_generated/attention_forward_kernarg.h"
#include "v2src/launch.h"
#include "v2src/struct_size.h"
#include "v2src/tensor_check.h"
#include "v2src/types.h"

namespace flydsl {
namespace {

using Params = flydsl_aot_attention_forward_params;
using Kernarg = flydsl_aot_attention_forward_kernarg;

constexpr const char *kName = "attention_forward";
constexpr module::KernargContract kContract = {FLYDSL_AOT_ATTENTION_FORWARD_KERNARG_LAYOUT_ID,
                                               sizeof(Kernarg)};

// Limits that the header states.
constexpr int64_t kMaxSize = int64_t{1} << 30;
constexpr uint32_t kTileRows = 128;
constexpr int64_t kHeadDims[] = {64, 128};

constexpr const char *kQueryAxes[] = {"B", "Hq", "Sq", "D"};
constexpr const char *kKeyAxes[] = {"B", "Hkv", "Sk", "D"};
constexpr const char *kValueAxes[] = {"B", "Hkv", "Sk", "Dv"};
constexpr const char *kOutAxes[] = {"B", "Hq", "Sq", "Dv"};
constexpr const char *kLseAxes[] = {"B", "Hq", "Sq"};
enum Axis { kBatch, kHead, kSeq, kDim };

struct Operands {
  Operand q, k, v, out, lse;
  bool has_lse;
};

// A checked problem: sizes within limits, ready for selection and launch.
struct Problem {
  const Params *params;
  int64_t batches, heads_q, heads_kv, seq_q, seq_k, head_dim;
  bool empty;          // no output element
  bool bounded;        // the mask hides something, or may
  int32_t mask_shift;  // query i sees keys j <= i + mask_shift
  select::Problem key;
};

Operands operands_of(const Params &params) {
  return {{"q", &params.q, kQueryAxes},   {"k", &params.k, kKeyAxes},
          {"v", &params.v, kValueAxes},   {"out", &params.out, kOutAxes},
          {"lse", &params.lse, kLseAxes}, present(params.lse)};
}

// ---- check

Status check_presence(const Operands &all) {
  for (const Operand *operand : {&all.q, &all.k, &all.v, &all.out}) {
    if (present(*operand->tensor)) continue;
    return error(FLYDSL_AOT_INVALID_SHAPE, "%s is absent (rank 0); q, k, v and out are required",
                 operand->name);
  }
  return {};
}

Status check_dtypes(const Operands &all) {
  const flydsl_aot_dtype dtype = all.q.tensor->dtype;
  if (!known_dtype(dtype)) {
    return error(FLYDSL_AOT_INVALID_DTYPE,
                 "q has dtype number %d, which is no dtype; supported: fp16, bf16", dtype);
  }
  if (dtype != FLYDSL_AOT_FP16 && dtype != FLYDSL_AOT_BF16) {
    return error(FLYDSL_AOT_UNSUPPORTED_DTYPE, "q is %s; supported: fp16, bf16",
                 flydsl_aot_dtype_name(dtype));
  }
  for (const Operand *operand : {&all.k, &all.v, &all.out}) {
    if (operand->tensor->dtype == dtype) continue;
    return error(FLYDSL_AOT_INVALID_DTYPE,
                 "q is %s, but %s is %s (number %d); q, k, v and out must have the same dtype",
                 flydsl_aot_dtype_name(dtype), operand->name,
                 flydsl_aot_dtype_name(operand->tensor->dtype), operand->tensor->dtype);
  }
  if (all.has_lse && all.lse.tensor->dtype != FLYDSL_AOT_FP32) {
    return error(FLYDSL_AOT_INVALID_DTYPE, "lse is %s (number %d); it must be fp32",
                 flydsl_aot_dtype_name(all.lse.tensor->dtype), all.lse.tensor->dtype);
  }
  return {};
}

Status check_shapes(const Operands &all) {
  for (const Operand *operand : {&all.q, &all.k, &all.v, &all.out})
    FLYDSL_RETURN_IF_ERROR(check_shape(*operand, 4));
  if (all.has_lse) FLYDSL_RETURN_IF_ERROR(check_shape(all.lse, 3));
  FLYDSL_RETURN_IF_ERROR(check_same_size(all.q, kBatch, all.k, kBatch));
  FLYDSL_RETURN_IF_ERROR(check_same_size(all.q, kDim, all.k, kDim));
  for (const int axis : {kBatch, kHead, kSeq})
    FLYDSL_RETURN_IF_ERROR(check_same_size(all.k, axis, all.v, axis));
  for (const int axis : {kBatch, kHead, kSeq})
    FLYDSL_RETURN_IF_ERROR(check_same_size(all.q, axis, all.out, axis));
  FLYDSL_RETURN_IF_ERROR(check_same_size(all.v, kDim, all.out, kDim));
  for (const int axis : {kBatch, kHead, kSeq}) {
    if (all.has_lse) FLYDSL_RETURN_IF_ERROR(check_same_size(all.q, axis, all.lse, axis));
  }
  const int64_t heads_q = all.q.tensor->sizes[kHead];
  const int64_t heads_kv = all.k.tensor->sizes[kHead];
  if (heads_q == 0 || (heads_kv > 0 && heads_q % heads_kv == 0)) return {};
  return error(FLYDSL_AOT_INVALID_SHAPE,
               "q has Hq = %lld heads, k and v have Hkv = %lld; Hq must be a multiple of Hkv",
               static_cast<long long>(heads_q), static_cast<long long>(heads_kv));
}

Status check_head_dim(const Operands &all) {
  const int64_t head_dim = all.q.tensor->sizes[kDim];
  const int64_t head_dim_v = all.v.tensor->sizes[kDim];
  if (head_dim != head_dim_v) {
    return error(FLYDSL_AOT_UNSUPPORTED_HEAD_DIM,
                 "q and k have D = %lld, v and out have Dv = %lld; they must be equal",
                 static_cast<long long>(head_dim), static_cast<long long>(head_dim_v));
  }
  // Without an lse there is nothing to compute for D = 0; with one there would be.
  if (head_dim == 0 && !all.has_lse) return {};
  if (std::find(std::begin(kHeadDims), std::end(kHeadDims), head_dim) != std::end(kHeadDims))
    return {};
  return error(FLYDSL_AOT_UNSUPPORTED_HEAD_DIM, "head dim D = %lld; supported: 64, 128",
               static_cast<long long>(head_dim));
}

Status check_limits(const Operands &all) {
  const struct {
    const char *name;
    int64_t value;
  } limited[] = {{"B", all.q.tensor->sizes[kBatch]},
                 {"Hq", all.q.tensor->sizes[kHead]},
                 {"Sq", all.q.tensor->sizes[kSeq]},
                 {"Hkv", all.k.tensor->sizes[kHead]},
                 {"Sk", all.k.tensor->sizes[kSeq]}};
  for (const auto &size : limited) {
    if (size.value > kMaxSize) {
      return error(FLYDSL_AOT_UNSUPPORTED_SIZE, "%s = %lld; at most 2^30", size.name,
                   static_cast<long long>(size.value));
    }
  }
  if (empty(*all.out.tensor)) return {};
  LinearTiles tiles;
  return linear_tiles(limited[2].value, limited[0].value, limited[1].value, kTileRows, &tiles);
}

Status check_layout(const Operands &all) {
  for (const Operand *operand : {&all.q, &all.k, &all.v, &all.out}) {
    FLYDSL_RETURN_IF_ERROR(check_strides(*operand));
    FLYDSL_RETURN_IF_ERROR(check_last_axis_contiguous(*operand));
  }
  FLYDSL_RETURN_IF_ERROR(check_no_self_overlap(all.out));
  if (!all.has_lse) return {};
  FLYDSL_RETURN_IF_ERROR(check_strides(all.lse));
  return check_no_self_overlap(all.lse);
}

Status check_memory(const Operands &all, bool query) {
  for (const Operand *operand : {&all.q, &all.k, &all.v, &all.out})
    FLYDSL_RETURN_IF_ERROR(check_data(*operand, query));
  if (all.has_lse) FLYDSL_RETURN_IF_ERROR(check_data(all.lse, query));
  if (query) return {};
  for (const Operand *input : {&all.q, &all.k, &all.v}) {
    FLYDSL_RETURN_IF_ERROR(check_no_overlap(all.out, *input));
    if (all.has_lse) FLYDSL_RETURN_IF_ERROR(check_no_overlap(all.lse, *input));
  }
  return all.has_lse ? check_no_overlap(all.lse, all.out) : Status();
}

Status check_mask(const flydsl_aot_mask &mask) {
  if (mask.left < FLYDSL_AOT_UNLIMITED || mask.right < FLYDSL_AOT_UNLIMITED) {
    return error(FLYDSL_AOT_INVALID_MASK,
                 "mask.left is %lld and mask.right %lld; allowed: -1 (unlimited), 0 or more",
                 static_cast<long long>(mask.left), static_cast<long long>(mask.right));
  }
  if (mask.anchor < FLYDSL_AOT_ANCHOR_NONE || mask.anchor > FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT) {
    return error(FLYDSL_AOT_INVALID_MASK,
                 "mask.anchor is %d; allowed: NONE (0), TOP_LEFT (1), BOTTOM_RIGHT (2)",
                 mask.anchor);
  }
  if (mask.reserved != 0)
    return error(FLYDSL_AOT_INVALID_MASK, "mask.reserved is %d; it must be 0", mask.reserved);
  const bool bounded = mask.left != FLYDSL_AOT_UNLIMITED || mask.right != FLYDSL_AOT_UNLIMITED;
  if (bounded && mask.anchor == FLYDSL_AOT_ANCHOR_NONE) {
    return error(FLYDSL_AOT_INVALID_MASK,
                 "mask.left is %lld and mask.right %lld without an anchor; a finite bound needs "
                 "TOP_LEFT (1) or "
                 "BOTTOM_RIGHT (2), no mask is {-1, -1}",
                 static_cast<long long>(mask.left), static_cast<long long>(mask.right));
  }
  return {};
}

// The last query is the one that a left bound leaves the fewest keys: when it sees key 0 from where it sits, the
// bound hides nothing.
Status check_window(const Operands &all, const flydsl_aot_mask &mask) {
  if (mask.left == FLYDSL_AOT_UNLIMITED) return {};
  const bool top_left = mask.anchor == FLYDSL_AOT_ANCHOR_TOP_LEFT;
  const int64_t last = (top_left ? all.q : all.k).tensor->sizes[kSeq] - 1;
  if (mask.left >= last) return {};
  return error(FLYDSL_AOT_UNSUPPORTED_FEATURE,
               "mask.left is %lld; windows are not supported in this version, mask.left must be -1 "
               "(unlimited) or hide no key (%lld or more here)",
               static_cast<long long>(mask.left), static_cast<long long>(last));
}

Status check_scale(float scale) {
  if (!std::isfinite(scale))
    return error(FLYDSL_AOT_INVALID_SCALE, "scale is %g; it must be finite", scale);
  if (std::fabs(static_cast<double>(scale)) * M_LOG2E <= static_cast<double>(FLT_MAX)) return {};
  return error(FLYDSL_AOT_INVALID_SCALE,
               "scale is %g; scale * log2(e) must be finite in fp32 (|scale| < 2.358e38)", scale);
}

Status check_workspace(const Params &params) {
  if (params.workspace || params.workspace_bytes == 0) return {};
  return error(FLYDSL_AOT_INVALID_WORKSPACE,
               "workspace is NULL, but workspace_bytes is %llu (the query asks for 0)",
               static_cast<unsigned long long>(params.workspace_bytes));
}

Status check(const Params &params, bool query) {
  const Operands all = operands_of(params);
  FLYDSL_RETURN_IF_ERROR(check_presence(all));
  FLYDSL_RETURN_IF_ERROR(check_dtypes(all));
  FLYDSL_RETURN_IF_ERROR(check_shapes(all));
  FLYDSL_RETURN_IF_ERROR(check_head_dim(all));
  FLYDSL_RETURN_IF_ERROR(check_limits(all));
  FLYDSL_RETURN_IF_ERROR(check_layout(all));
  FLYDSL_RETURN_IF_ERROR(check_mask(params.mask));
  FLYDSL_RETURN_IF_ERROR(check_window(all, params.mask));
  FLYDSL_RETURN_IF_ERROR(check_scale(params.scale));
  FLYDSL_RETURN_IF_ERROR(check_workspace(params));
  return check_memory(all, query);
}

// ---- describe

// mask_shift in [-Sq, Sk]: beyond that range it shows nothing, or everything, just as at its ends.
int32_t mask_shift(const flydsl_aot_mask &mask, int64_t seq_q, int64_t seq_k) {
  if (mask.right == FLYDSL_AOT_UNLIMITED) return static_cast<int32_t>(seq_k);
  const int64_t diagonal = mask.anchor == FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT ? seq_k - seq_q : 0;
  const int64_t right =
      std::min(mask.right, 2 * kMaxSize);  // no overflow below; larger bounds hide nothing either
  return static_cast<int32_t>(std::clamp(right + diagonal, -seq_q, seq_k));
}

uint64_t align_bytes(const Params &params) {
  uint64_t mask = 4096;  // more alignment than that is not told apart
  for (const flydsl_aot_tensor *tensor : {&params.q, &params.k, &params.v, &params.out})
    mask |= alignment_mask(*tensor);
  return mask & (~mask + 1);
}

Problem describe(const Params &params) {
  Problem problem{};
  problem.params = &params;
  problem.batches = params.q.sizes[kBatch];
  problem.heads_q = params.q.sizes[kHead];
  problem.seq_q = params.q.sizes[kSeq];
  problem.head_dim = params.q.sizes[kDim];
  problem.heads_kv = params.k.sizes[kHead];
  problem.seq_k = params.k.sizes[kSeq];
  problem.empty = empty(params.out);
  problem.mask_shift = mask_shift(params.mask, problem.seq_q, problem.seq_k);
  // Query 0 sees the fewest keys: when it sees all of them, the bound hides nothing.
  problem.bounded = problem.mask_shift < problem.seq_k - 1;
  problem.key.op = kName;
  problem.key.functional_key = flydsl_aot_attention_forward_key(
      static_cast<uint64_t>(params.q.dtype), static_cast<uint64_t>(problem.head_dim),
      static_cast<uint64_t>(problem.head_dim), problem.bounded ? 1 : 0, 0);
  problem.key.align_bytes = align_bytes(params);
  problem.key.seq_q = static_cast<uint64_t>(problem.seq_q);
  problem.key.seq_k = static_cast<uint64_t>(problem.seq_k);
  return problem;
}

// ---- launch

void set_strides(const flydsl_aot_tensor &tensor, int64_t *batch, int64_t *head, int64_t *seq) {
  *batch = walked_stride(tensor, kBatch);
  *head = walked_stride(tensor, kHead);
  *seq = walked_stride(tensor, kSeq);
}

// The sign and the zero of the scale go into Q's bits, exactly, so that the kernel's scale is
// positive and the running maximum may be taken over the raw products.
void set_scale(float scale, Kernarg *kernarg) {
  kernarg->scale_log2 =
      scale == 0 ? 1.0f : static_cast<float>(std::fabs(static_cast<double>(scale)) * M_LOG2E);
  kernarg->q_and = scale == 0 ? 0u : 0xffffffffu;
  kernarg->q_xor = scale < 0 ? 0x80008000u : 0u;
}

Kernarg kernarg_of(const Problem &problem, const LinearTiles &tiles) {
  const Params &params = *problem.params;
  Kernarg kernarg{};
  kernarg.q = params.q.data;
  kernarg.k = params.k.data;
  kernarg.v = params.v.data;
  kernarg.out = params.out.data;
  set_strides(params.q, &kernarg.q_stride_b, &kernarg.q_stride_h, &kernarg.q_stride_s);
  set_strides(params.k, &kernarg.k_stride_b, &kernarg.k_stride_h, &kernarg.k_stride_s);
  set_strides(params.v, &kernarg.v_stride_b, &kernarg.v_stride_h, &kernarg.v_stride_s);
  set_strides(params.out, &kernarg.out_stride_b, &kernarg.out_stride_h, &kernarg.out_stride_s);
  if (present(params.lse)) {
    kernarg.lse = static_cast<float *>(params.lse.data);
    set_strides(params.lse, &kernarg.lse_stride_b, &kernarg.lse_stride_h, &kernarg.lse_stride_s);
  }
  kernarg.seq_q = static_cast<int32_t>(problem.seq_q);
  kernarg.seq_k = static_cast<int32_t>(problem.seq_k);
  kernarg.heads_q = static_cast<int32_t>(problem.heads_q);
  kernarg.heads_per_kv = static_cast<int32_t>(problem.heads_q / problem.heads_kv);
  kernarg.batches = static_cast<int32_t>(problem.batches);
  kernarg.mask_shift = problem.mask_shift;
  kernarg.grid_x = tiles.grid_x;
  kernarg.row_tiles = tiles.row_tiles;
  set_scale(params.scale, &kernarg);
  return kernarg;
}

Status launch(flydsl_aot_handle *handle, const Problem &problem, void *stream) {
  Launch launch(handle);
  FLYDSL_RETURN_IF_ERROR(launch.begin(problem.key, kContract, stream));
  LinearTiles tiles;
  FLYDSL_RETURN_IF_ERROR(linear_tiles(problem.seq_q, problem.batches, problem.heads_q,
                                      launch.entry().tile[0], &tiles));
  Kernarg kernarg = kernarg_of(problem, tiles);
  return launch.run(tiles, &kernarg, sizeof kernarg);
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

Status call(flydsl_aot_handle *handle, const Params *caller, void *stream) {
  Params params;
  Problem problem;
  FLYDSL_RETURN_IF_ERROR(prepare(handle, caller, false, &params, &problem));
  FLYDSL_RETURN_IF_ERROR(require_runtime(handle));
  return problem.empty ? Status() : launch(handle, problem, stream);
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

Status query(const flydsl_aot_handle *handle, const Params *caller,
             flydsl_aot_query_result *caller_result) {
  if (!handle) return error(FLYDSL_AOT_INVALID_ARGUMENT, "handle is NULL");
  if (!caller) return error(FLYDSL_AOT_INVALID_ARGUMENT, "params is NULL");
  FLYDSL_RETURN_IF_ERROR(check_output_struct("result", caller_result));
  flydsl_aot_query_result result{};
  const Status status = query_kernel(handle, caller, &result);
  result.status = status.code();
  copy_utf8(result.reason, sizeof result.reason, status.message().c_str());
  write_struct(result, caller_result);
  return status;
}

Status explain(const flydsl_aot_handle *handle, const Params *caller,
               flydsl_aot_candidate_callback callback, void *user) {
  if (!callback) return error(FLYDSL_AOT_INVALID_ARGUMENT, "callback is NULL");
  Params params;
  Problem problem;
  FLYDSL_RETURN_IF_ERROR(prepare(handle, caller, true, &params, &problem));
  if (problem.empty) return {};
  const archive::TargetId *target = nullptr;
  FLYDSL_RETURN_IF_ERROR(query_target(handle, &target));
  return explain_candidates(handle, problem.key, *target, callback, user);
}

Status prefetch_kernel(flydsl_aot_handle *handle, const Params *caller) {
  Params params;
  Problem problem;
  FLYDSL_RETURN_IF_ERROR(prepare(handle, caller, true, &params, &problem));
  FLYDSL_RETURN_IF_ERROR(require_runtime(handle));
  return problem.empty ? Status() : prefetch(handle, problem.key, kContract);
}

}  // namespace
}  // namespace flydsl

extern "C" {

flydsl_aot_status flydsl_aot_attention_forward_query(
    flydsl_aot_handle *handle, const flydsl_aot_attention_forward_params *params,
    flydsl_aot_query_result *result) {
  return flydsl::guarded(__func__, [&] { return flydsl::query(handle, params, result); });
}

flydsl_aot_status flydsl_aot_attention_forward_explain(
    flydsl_aot_handle *handle, const flydsl_aot_attention_forward_params *params,
    flydsl_aot_candidate_callback callback, void *user) {
  return flydsl::guarded(__func__, [&] { return flydsl::explain(handle, params, callback, user); });
}

flydsl_aot_status flydsl_aot_attention_forward_prefetch(
    flydsl_aot_handle *handle, const flydsl_aot_attention_forward_params *params) {
  return flydsl::guarded(__func__, [&] { return flydsl::prefetch_kernel(handle, params); });
}

flydsl_aot_status flydsl_aot_attention_forward(flydsl_aot_handle *handle,
                                               const flydsl_aot_attention_forward_params *params,
                                               void *stream) {
  return flydsl::guarded(__func__, [&] { return flydsl::call(handle, params, stream); });
}

}  // extern "C"
