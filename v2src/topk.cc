// The K largest or smallest elements along an axis: check -> describe -> select -> launch. The contract is
// include/flydsl_aot/topk.h.
#include "flydsl_aot/topk.h"

#include <algorithm>
#include <string>

#include "flydsl_aot_generated/topk_kernarg.h"
#include "v2src/attention_check.h"
#include "v2src/rows.h"
#include "v2src/struct_size.h"
#include "v2src/types.h"

namespace flydsl::topk {
namespace {

using Params = flydsl_aot_topk_params;
using Kernarg = flydsl_aot_topk_kernarg;

constexpr module::KernargContract kContract = {FLYDSL_AOT_TOPK_KERNARG_LAYOUT_ID, sizeof(Kernarg)};

// codegen/describe/topk.py
enum Method : uint64_t { kFew, kRegisters, kMemory, kCandidates, kFewCandidates };
#define FLYDSL_AOT_MOST_FEW(k) constexpr int64_t kMostFew = k;
FLYDSL_AOT_TOPK_MOST_FEW(FLYDSL_AOT_MOST_FEW)
#undef FLYDSL_AOT_MOST_FEW
#define FLYDSL_AOT_FEW_CANDIDATES(n) constexpr uint64_t kMostFewCandidates = n;
FLYDSL_AOT_TOPK_FEW_CANDIDATES(FLYDSL_AOT_FEW_CANDIDATES)
#undef FLYDSL_AOT_FEW_CANDIDATES
#define FLYDSL_AOT_PART_LENGTH(n) constexpr int64_t kPartLength = n;
FLYDSL_AOT_TOPK_PART_LENGTH(FLYDSL_AOT_PART_LENGTH)
#undef FLYDSL_AOT_PART_LENGTH

constexpr int64_t kShort = 2048, kLengthOfRows = 8;  // of N, for kFew
constexpr int64_t kMostOfParts = 2048;  // of K: a part leaves at most a quarter of its elements
constexpr int64_t kSortedInLds = 2048;  // Memory in kernels/topk/topk_select.hip.h
constexpr uint64_t kGroupsInMemory =
    512;  // that share the rows, with workspace each, where K is larger
constexpr uint64_t kWorkspaceAlignment = 16;
constexpr int64_t kMaxLength = (int64_t{1} << 32) - 3, kMaxK = int64_t{1} << 30;
constexpr int kMaxAxes = 3;  // of rows
constexpr const char *kAxes[] = {"axis 0", "axis 1", "axis 2", "axis 3",
                                 "axis 4", "axis 5", "axis 6", "axis 7"};

// Rows as the kernels count them: the axes beside the one, merged where that is possible, the last kMaxAxes of them in
// places 0 to 2.
struct Rows {
  uint64_t count = 1;
  uint32_t axes = 0;
  int64_t size[kMaxAxes] = {1, 1, 1};
  int64_t x[kMaxAxes] = {}, values[kMaxAxes] = {}, indices[kMaxAxes] = {};  // strides in elements
};

struct Problem {
  const Params *params;
  bool empty;
  int axis;
  int64_t length, k;
  Rows rows;
  Method method;
  uint64_t parts, row_candidates;  // row_candidates: of the workspace
  select::Problem key, second_key;
  uint64_t owners() const {  // of row_candidates of workspace each
    return parts > 1 ? rows.count : std::min(rows.count, kGroupsInMemory);
  }
  uint64_t workspace_bytes() const { return owners() * row_candidates * sizeof(uint64_t); }
};

struct Operands {
  Operand x, values, indices;
};
Operands operands_of(const Params &params) {
  return {{"x", &params.x, kAxes},
          {"values", &params.values, kAxes},
          {"indices", &params.indices, kAxes}};
}

// ---- check

Status check_dtypes(const Params &params) {
  const flydsl_aot_dtype dtype = params.x.dtype, index = params.indices.dtype;
  if (!known_dtype(dtype))
    return error(FLYDSL_AOT_INVALID_DTYPE, "x has the unknown dtype number %d", dtype);
  if (!is_real(dtype) && dtype != FLYDSL_AOT_INT32) {
    return error(FLYDSL_AOT_UNSUPPORTED_DTYPE, "x is %s; supported: fp32, fp16, bf16, int32",
                 flydsl_aot_dtype_name(dtype));
  }
  FLYDSL_RETURN_IF_ERROR(check_dtype_is(operands_of(params).values, dtype));
  if (index == FLYDSL_AOT_INT32 || index == FLYDSL_AOT_INT64) return {};
  return error(FLYDSL_AOT_INVALID_DTYPE, "indices is %s (number %d); it must be int32 or int64",
               flydsl_aot_dtype_name(index), index);
}

Status check_shapes(const Params &params, int *axis) {
  const Operands all = operands_of(params);
  const int rank = params.x.rank;
  if (rank < 1 || rank > FLYDSL_AOT_MAX_RANK)
    return error(FLYDSL_AOT_INVALID_SHAPE, "x has rank %d; it must be 1 to 8", rank);
  if (params.axis < -rank || params.axis >= rank) {
    return error(FLYDSL_AOT_INVALID_ARGUMENT, "axis is %d; x has rank %d: it must be %d to %d",
                 params.axis, rank, -rank, rank - 1);
  }
  *axis = params.axis < 0 ? params.axis + rank : params.axis;
  for (const Operand *operand : {&all.x, &all.values, &all.indices}) {
    FLYDSL_RETURN_IF_ERROR(check_shape(*operand, rank));
    for (int other = 0; other < rank; ++other) {
      if (other != *axis || operand == &all.indices)
        FLYDSL_RETURN_IF_ERROR(
            check_same_size(other == *axis ? all.values : all.x, other, *operand, other));
    }
  }
  const int64_t length = params.x.sizes[*axis], k = params.values.sizes[*axis];
  if (k > length) {
    return error(FLYDSL_AOT_INVALID_SHAPE,
                 "values has K = %lld (axis %d), but x has only N = %lld elements there",
                 static_cast<long long>(k), *axis, static_cast<long long>(length));
  }
  const int64_t most = params.indices.dtype == FLYDSL_AOT_INT32 ? int64_t{1} << 31 : kMaxLength;
  if (length > most || k > kMaxK) {
    return error(FLYDSL_AOT_UNSUPPORTED_SIZE,
                 "N is %lld and K %lld; N must be at most %lld with %s indices, K at most 2^30",
                 static_cast<long long>(length), static_cast<long long>(k),
                 static_cast<long long>(most), flydsl_aot_dtype_name(params.indices.dtype));
  }
  return {};
}

Status check_flags(const Params &params) {
  if (params.smallest <= 1 && params.any_order <= 1) return {};
  return error(FLYDSL_AOT_INVALID_ARGUMENT, "smallest is %u and any_order %u; they must be 0 or 1",
               params.smallest, params.any_order);
}

Status check_memory(const Params &params, bool query) {
  const Operands all = operands_of(params);
  for (const Operand *operand : {&all.x, &all.values, &all.indices}) {
    FLYDSL_RETURN_IF_ERROR(check_strides(*operand));
    FLYDSL_RETURN_IF_ERROR(check_data(*operand, query));
  }
  for (const Operand *output : {&all.values, &all.indices}) {
    FLYDSL_RETURN_IF_ERROR(check_no_self_overlap(*output));
    FLYDSL_RETURN_IF_ERROR(check_apart(*output, all.x));
  }
  return check_apart(all.values, all.indices);
}

// The axes beside `axis`, of size 1 and mergeable ones left out.
Status find_rows(const Params &params, int axis, Rows *rows) {
  struct Axis {
    int64_t size, x, values, indices;
  };
  Axis axes[FLYDSL_AOT_MAX_RANK];
  size_t count = 0;
  for (int i = 0; i < params.x.rank; ++i) {
    if (i == axis || params.x.sizes[i] == 1) continue;
    const Axis next = {params.x.sizes[i], params.x.strides[i], params.values.strides[i],
                       params.indices.strides[i]};
    const auto continues = [&](int64_t outer, int64_t inner) {
      int64_t span = 0;
      return !__builtin_mul_overflow(inner, next.size, &span) && outer == span;
    };
    Axis *last = count > 0 ? &axes[count - 1] : nullptr;
    if (last && continues(last->x, next.x) && continues(last->values, next.values) &&
        continues(last->indices, next.indices))
      *last = {last->size * next.size, next.x, next.values, next.indices};
    else
      axes[count++] = next;
    if (__builtin_mul_overflow(rows->count, static_cast<uint64_t>(next.size), &rows->count))
      return error(FLYDSL_AOT_UNSUPPORTED_SIZE, "x has more than 2^64 rows");
  }
  rows->axes = static_cast<uint32_t>(count);
  if (rows->count == 0) return {};
  if (count > kMaxAxes || (count > 1 && rows->count >= uint64_t{1} << 32)) {
    return error(FLYDSL_AOT_UNSUPPORTED_SIZE,
                 "x, values and indices have %llu rows along %zu axes that are not one in memory; "
                 "at most 3, or with more than one fewer than 2^32 rows",
                 static_cast<unsigned long long>(rows->count), count);
  }
  const size_t first = kMaxAxes - count;
  for (size_t i = 0; i < count; ++i) {
    rows->size[first + i] = axes[i].size;
    rows->x[first + i] = axes[i].x;
    rows->values[first + i] = axes[i].values;
    rows->indices[first + i] = axes[i].indices;
  }
  return {};
}

// ---- describe

void choose_method(const Params &params, Problem *problem) {
  const int64_t k = problem->k, length = problem->length;
  const bool contiguous = walked_stride(params.x, problem->axis) == 1 || length == 1;
  problem->parts = 1;
  problem->row_candidates = k > kSortedInLds ? static_cast<uint64_t>(k) : 0;
  // A wave reads its row alone: where there are few rows for their length, more of them have to.
  if (contiguous && k <= kMostFew &&
      (length <= kShort || problem->rows.count >= static_cast<uint64_t>(length) / kLengthOfRows)) {
    problem->method = kFew;
    return;
  }
  problem->method =
      contiguous && (length <= kPartLength || k <= kMostOfParts) ? kRegisters : kMemory;
  if (length <= kPartLength || k > kMostOfParts) return;
  problem->parts = static_cast<uint64_t>((length - 1) / kPartLength + 1);
  const int64_t rest = length - static_cast<int64_t>(problem->parts - 1) * kPartLength;
  problem->row_candidates =
      (problem->parts - 1) * static_cast<uint64_t>(k) + static_cast<uint64_t>(std::min(rest, k));
}

void describe(const Params &params, Problem *problem) {
  choose_method(params, problem);
  const uint64_t dtype = static_cast<uint64_t>(params.x.dtype);
  const uint64_t element_bytes = dtype_bytes(params.x.dtype);
  problem->key.op = problem->second_key.op = "topk";
  problem->key.functional_key = flydsl_aot_topk_key(dtype, problem->method);
  problem->second_key.functional_key = flydsl_aot_topk_key(
      dtype, problem->row_candidates <= kMostFewCandidates ? kFewCandidates : kCandidates);
  uint64_t mask = reinterpret_cast<uint64_t>(params.x.data) |
                  static_cast<uint64_t>(problem->length) * element_bytes;
  for (const int64_t stride : problem->rows.x)
    mask |= static_cast<uint64_t>(stride) * element_bytes;
  problem->key.align_bytes = alignment_of({mask});
  problem->second_key.align_bytes = alignment_of({});
  problem->second_key.main = false;
  for (select::Problem *key : {&problem->key, &problem->second_key}) {
    key->seq_q = static_cast<uint64_t>(problem->k);
    key->seq_k = static_cast<uint64_t>(problem->length);
  }
}

Kernarg kernarg_of(const Problem &problem) {
  const Params &params = *problem.params;
  Kernarg kernarg{};
  kernarg.x = params.x.data;
  kernarg.values = params.values.data;
  kernarg.indices = params.indices.data;
  kernarg.workspace = params.workspace;
  const auto set = [&](const flydsl_aot_tensor &tensor, const int64_t(&strides)[kMaxAxes],
                       int64_t *stride_0, int64_t *stride_1, int64_t *stride_2, int64_t *stride_k) {
    const int64_t bytes = dtype_bytes(tensor.dtype);
    *stride_0 = strides[0] * bytes;
    *stride_1 = strides[1] * bytes;
    *stride_2 = strides[2] * bytes;
    *stride_k = walked_stride(tensor, problem.axis) * bytes;
  };
  set(params.x, problem.rows.x, &kernarg.x_stride_0, &kernarg.x_stride_1, &kernarg.x_stride_2,
      &kernarg.x_stride_k);
  set(params.values, problem.rows.values, &kernarg.values_stride_0, &kernarg.values_stride_1,
      &kernarg.values_stride_2, &kernarg.values_stride_k);
  set(params.indices, problem.rows.indices, &kernarg.indices_stride_0, &kernarg.indices_stride_1,
      &kernarg.indices_stride_2, &kernarg.indices_stride_k);
  kernarg.rows = problem.rows.count;
  kernarg.row_candidates = problem.row_candidates;
  kernarg.axes = problem.rows.axes;
  kernarg.size_1 = static_cast<uint32_t>(problem.rows.size[1]);
  kernarg.size_2 = static_cast<uint32_t>(problem.rows.size[2]);
  kernarg.length = static_cast<uint32_t>(problem.length);
  kernarg.k = static_cast<uint32_t>(problem.k);
  kernarg.flip = params.smallest ? ~uint32_t{0} : 0;
  kernarg.wide_indices = params.indices.dtype == FLYDSL_AOT_INT64;
  return kernarg;
}

// ---- launch

Status check_workspace(const Params &params, uint64_t needed) {
  if (needed == 0) return {};
  if (params.workspace_bytes < needed || !params.workspace) {
    return error(FLYDSL_AOT_INVALID_WORKSPACE,
                 "workspace is %s, workspace_bytes %llu; the problem needs %llu bytes (see "
                 "flydsl_aot_topk_query)",
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
  Launch first(handle), second(handle);
  FLYDSL_RETURN_IF_ERROR(first.begin(problem.key, kContract, stream));
  if (problem.parts > 1)
    FLYDSL_RETURN_IF_ERROR(second.begin(problem.second_key, kContract, stream));
  FLYDSL_RETURN_IF_ERROR(check_workspace(*problem.params, problem.workspace_bytes()));
  Kernarg kernarg = kernarg_of(problem);
  const uint64_t rows = problem.rows.count;
  const uint32_t rows_of_group = first.entry().tile[0];
  kernarg.parts = static_cast<uint32_t>(problem.parts);
  kernarg.part_length = problem.parts > 1 ? static_cast<uint32_t>(kPartLength) : kernarg.length;
  kernarg.leaves_candidates = problem.parts > 1;
  kernarg.tiles = problem.parts > 1 ? rows * problem.parts : (rows - 1) / rows_of_group + 1;
  kernarg.groups = groups_for(kernarg.tiles);
  if (problem.parts == 1 && problem.row_candidates > 0)
    kernarg.groups = static_cast<uint32_t>(problem.owners());
  FLYDSL_RETURN_IF_ERROR(first.run({kernarg.groups, 1, 0}, &kernarg, sizeof kernarg));
  if (problem.parts == 1) return {};
  kernarg.parts = 1;
  kernarg.part_length = kernarg.length;
  kernarg.leaves_candidates = 0;
  kernarg.tiles = rows;
  kernarg.groups = groups_for(rows);
  return second.run({kernarg.groups, 1, 0}, &kernarg, sizeof kernarg);
}

// ---- the entry points

// Reads and checks the caller's parameters.
Status prepare(const flydsl_aot_handle *handle, const Params *caller, bool query, ReadStruct<Params> *room,
               Problem *problem) {
  if (!handle) return error(FLYDSL_AOT_INVALID_ARGUMENT, "handle is NULL");
  FLYDSL_RETURN_IF_ERROR(room->read("params", caller));
  const Params &params = room->get();
  const Operands all = operands_of(params);
  FLYDSL_RETURN_IF_ERROR(
      check_required({&all.x, &all.values, &all.indices}, "x, values and indices"));
  FLYDSL_RETURN_IF_ERROR(check_flags(params));
  FLYDSL_RETURN_IF_ERROR(check_dtypes(params));
  *problem = {};
  problem->params = &params;
  FLYDSL_RETURN_IF_ERROR(check_shapes(params, &problem->axis));
  FLYDSL_RETURN_IF_ERROR(check_memory(params, query));
  problem->length = params.x.sizes[problem->axis];
  problem->k = params.values.sizes[problem->axis];
  problem->empty = empty(params.values);
  if (problem->empty) return {};
  FLYDSL_RETURN_IF_ERROR(find_rows(params, problem->axis, &problem->rows));
  describe(params, problem);
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
  uint32_t entry = 0, second = 0;
  if (problem.parts > 1)
    FLYDSL_RETURN_IF_ERROR(choose(handle, problem.second_key, *target, &second));
  FLYDSL_RETURN_IF_ERROR(choose(handle, problem.key, *target, &entry));
  result->workspace_bytes = problem.workspace_bytes();
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
  return problem.parts > 1 ? prefetch(handle, problem.second_key, kContract) : Status();
}

}  // namespace
}  // namespace flydsl::topk

extern "C" {

flydsl_aot_status flydsl_aot_topk_query(flydsl_aot_handle *handle,
                                        const flydsl_aot_topk_params *params,
                                        flydsl_aot_query_result *result) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::answer_query(handle, params, result, flydsl::topk::query_kernel);
  });
}

flydsl_aot_status flydsl_aot_topk_explain(flydsl_aot_handle *handle,
                                          const flydsl_aot_topk_params *params,
                                          flydsl_aot_candidate_callback callback, void *user) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::explain_problem<flydsl::topk::Problem>(
        handle, params, flydsl::topk::prepare, callback, user,
        [](const flydsl_aot_handle *, const flydsl::topk::Problem &problem,
           const flydsl::archive::TargetId &, auto explain) {
          return problem.parts > 1 ? explain(problem.second_key) : flydsl::Status();
        });
  });
}

flydsl_aot_status flydsl_aot_topk_prefetch(flydsl_aot_handle *handle,
                                           const flydsl_aot_topk_params *params) {
  return flydsl::guarded(__func__, [&] { return flydsl::topk::prefetch_kernels(handle, params); });
}

flydsl_aot_status flydsl_aot_topk(flydsl_aot_handle *handle, const flydsl_aot_topk_params *params,
                                  void *stream) {
  return flydsl::guarded(__func__, [&] {
    return flydsl::call_problem<flydsl::topk::Problem>(handle, params, flydsl::topk::prepare,
                                                       flydsl::topk::launch, stream);
  });
}

}  // extern "C"
