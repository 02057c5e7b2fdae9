// Which grouped_gemm problems are refused, and with what message. The rules are those of
// include/flydsl_aot/grouped_gemm.h.
#include "v2src/attention_check.h"
#include "v2src/grouped_gemm.h"
#include "v2src/tensor_check.h"
#include "v2src/types.h"

namespace flydsl::grouped_gemm {
namespace {

constexpr const char *kA2[] = {"M", "K"};
constexpr const char *kA3[] = {"G", "M", "K"};
constexpr const char *kB2[] = {"K", "N"};
constexpr const char *kB3[] = {"G", "K", "N"};
constexpr const char *kD2[] = {"M", "N"};
constexpr const char *kD3[] = {"G", "M", "N"};
constexpr const char *kScale2[] = {"rows", "K / 32"};
constexpr const char *kScale3[] = {"G", "rows", "K / 32"};
constexpr const char *kOffsets[] = {"G"};
constexpr const char *kBias1[] = {"N"};
constexpr const char *kBias2[] = {"G", "N"};

struct Operands {
  Operand a, a_scale, b, b_scale, d, offsets, bias;
};

Operands operands_of(const Params &params) {
  return {{"a", &params.a, params.a.rank == 2 ? kA2 : kA3},
          {"a_scale", &params.a_scale, params.a.rank == 2 ? kScale2 : kScale3},
          {"b", &params.b, params.b.rank == 2 ? kB2 : kB3},
          {"b_scale", &params.b_scale, params.b.rank == 2 ? kScale2 : kScale3},
          {"d", &params.d, params.a.rank == params.b.rank ? kD3 : kD2},
          {"offsets", &params.offsets, kOffsets},
          {"bias", &params.bias, params.bias.rank == 2 ? kBias2 : kBias1}};
}

// Of 16 or 32 bits.
bool is_real(flydsl_aot_dtype dtype) {
  return dtype == FLYDSL_AOT_FP32 || dtype == FLYDSL_AOT_FP16 || dtype == FLYDSL_AOT_BF16;
}

Status check_dtypes(const Params &params) {
  const flydsl_aot_dtype dtype = params.a.dtype;
  if (!known_dtype(dtype))
    return error(FLYDSL_AOT_INVALID_DTYPE, "a has the unknown dtype number %d", dtype);
  if (!is_wide(dtype) && !is_float8(dtype)) {
    return error(FLYDSL_AOT_UNSUPPORTED_DTYPE, "a is %s; supported: fp16, bf16, e4m3, e5m2",
                 flydsl_aot_dtype_name(dtype));
  }
  if (is_float8(dtype) && !is_float8(params.b.dtype)) {
    return error(
        FLYDSL_AOT_INVALID_DTYPE, "b is %s (number %d); with an a of %s it must be e4m3 or e5m2",
        flydsl_aot_dtype_name(params.b.dtype), params.b.dtype, flydsl_aot_dtype_name(dtype));
  }
  if (!is_float8(dtype) && params.b.dtype != dtype) {
    return error(FLYDSL_AOT_INVALID_DTYPE, "b is %s (number %d); it must have a's dtype, %s",
                 flydsl_aot_dtype_name(params.b.dtype), params.b.dtype,
                 flydsl_aot_dtype_name(dtype));
  }
  const struct {
    const char *name;
    const flydsl_aot_tensor &tensor;
  } reals[] = {{"d", params.d}, {"bias", params.bias}};
  for (const auto &[name, tensor] : reals) {
    if (!present(tensor) || is_real(tensor.dtype)) continue;
    return error(FLYDSL_AOT_INVALID_DTYPE, "%s is %s (number %d); it must be fp32, fp16 or bf16",
                 name, flydsl_aot_dtype_name(tensor.dtype), tensor.dtype);
  }
  const flydsl_aot_dtype offsets = params.offsets.dtype;
  if (present(params.offsets) && offsets != FLYDSL_AOT_INT32 && offsets != FLYDSL_AOT_INT64) {
    return error(FLYDSL_AOT_INVALID_DTYPE, "offsets is %s (number %d); it must be int32 or int64",
                 flydsl_aot_dtype_name(offsets), offsets);
  }
  return {};
}

Status check_ranks(const Params &params) {
  const struct {
    const char *name;
    const flydsl_aot_tensor &tensor;
  } operands[] = {{"a", params.a}, {"b", params.b}};
  for (const auto &[name, tensor] : operands) {
    if (tensor.rank == 2 || tensor.rank == 3) continue;
    return error(FLYDSL_AOT_INVALID_SHAPE,
                 "%s has rank %d; expected 2, or 3 with the groups as its first axis", name,
                 tensor.rank);
  }
  const bool grouped = params.a.rank == 2 || params.b.rank == 2;
  if (grouped == present(params.offsets)) return {};
  return grouped
             ? error(FLYDSL_AOT_INVALID_SHAPE,
                     "offsets is absent; a of rank %d and b of rank %d share an axis among groups",
                     params.a.rank, params.b.rank)
             : error(FLYDSL_AOT_INVALID_SHAPE,
                     "offsets has rank %d; it must be absent where a and b both have rank 3",
                     params.offsets.rank);
}

// The places of M, N, K and G in the operands follow from ranks: the last axes are those of the matrix.
Status check_shapes(const Params &params, const Operands &all) {
  FLYDSL_RETURN_IF_ERROR(check_ranks(params));
  const int first_a = params.a.rank - 2, first_b = params.b.rank - 2;
  const int rank_d = params.a.rank == params.b.rank ? 3 : 2;
  FLYDSL_RETURN_IF_ERROR(check_shape(all.a, params.a.rank));
  FLYDSL_RETURN_IF_ERROR(check_shape(all.b, params.b.rank));
  FLYDSL_RETURN_IF_ERROR(check_shape(all.d, rank_d));
  FLYDSL_RETURN_IF_ERROR(check_same_size(all.a, first_a + 1, all.b, first_b));
  FLYDSL_RETURN_IF_ERROR(check_same_size(all.a, first_a, all.d, rank_d - 2));
  FLYDSL_RETURN_IF_ERROR(check_same_size(all.b, first_b + 1, all.d, rank_d - 1));
  if (present(params.offsets)) FLYDSL_RETURN_IF_ERROR(check_shape(all.offsets, 1));
  // One of those that have the groups' axis, to compare the others with.
  const Operand &groups = present(params.offsets) ? all.offsets : all.a;
  for (const Operand *operand : {&all.a, &all.b, &all.d})
    if (operand->tensor->rank == 3) FLYDSL_RETURN_IF_ERROR(check_same_size(groups, 0, *operand, 0));
  if (!present(params.bias)) return {};
  const bool along_columns = axis_of(params) == Axis::kColumns;
  const int rank_bias = params.bias.rank == 2 && !along_columns ? 2 : 1;
  FLYDSL_RETURN_IF_ERROR(check_shape(all.bias, rank_bias));
  if (rank_bias == 2) FLYDSL_RETURN_IF_ERROR(check_same_size(groups, 0, all.bias, 0));
  return check_same_size(all.b, first_b + 1, all.bias, rank_bias - 1);
}

// Of e4m3 and e5m2; others have none.
Status check_scales(const Params &params, const Operands &all) {
  FLYDSL_RETURN_IF_ERROR(check_scale_layout(params.scale_layout));
  const flydsl_aot_dtype dtype = params.a.dtype;
  for (const Operand *scale : {&all.a_scale, &all.b_scale}) {
    if (present(*scale->tensor) == has_scales(params)) continue;
    return has_scales(params)
               ? error(
                     FLYDSL_AOT_INVALID_SHAPE,
                     "%s is absent (rank 0); a is %s, for which a_scale and b_scale are required: "
                     "an e8m0 for each 32 elements along K",
                     scale->name, flydsl_aot_dtype_name(dtype))
               : error(FLYDSL_AOT_INVALID_ARGUMENT, "%s has rank %d; it must be absent: a is %s",
                       scale->name, scale->tensor->rank, flydsl_aot_dtype_name(dtype));
  }
  if (!has_scales(params)) {
    if (params.scale_layout == FLYDSL_AOT_SCALES_PLAIN) return {};
    return error(FLYDSL_AOT_INVALID_ARGUMENT, "scale_layout is %d; it must be 0: a is %s",
                 params.scale_layout, flydsl_aot_dtype_name(dtype));
  }
  const Sizes sizes = sizes_of(params);
  if (sizes.k % kMxBlock != 0) {
    return error(FLYDSL_AOT_UNSUPPORTED_SIZE,
                 "K = %lld; with a of %s it must be a multiple of %lld",
                 static_cast<long long>(sizes.k), flydsl_aot_dtype_name(dtype),
                 static_cast<long long>(kMxBlock));
  }
  const bool shuffled = params.scale_layout == FLYDSL_AOT_SCALES_SHUFFLED_32_8;
  FLYDSL_RETURN_IF_ERROR(check_scale_dtype(all.a_scale));
  FLYDSL_RETURN_IF_ERROR(check_scale_dtype(all.b_scale));
  FLYDSL_RETURN_IF_ERROR(check_block_scales(all.a_scale, all.a, sizes.m, sizes.k, shuffled));
  return check_block_scales(all.b_scale, all.b, sizes.n, sizes.k, shuffled);
}

Status check_limits(const Sizes &sizes, Axis axis) {
  const struct {
    const char *name;
    int64_t value;
  } limited[] = {{"G", sizes.groups}, {"M", sizes.m}, {"N", sizes.n}, {"K", sizes.k}};
  for (const auto &[name, value] : limited) {
    if (value > kMaxSize) {
      return error(FLYDSL_AOT_UNSUPPORTED_SIZE, "%s = %lld; at most %lld", name,
                   static_cast<long long>(value), static_cast<long long>(kMaxSize));
    }
  }
  // Above the tiles of any instance: the kernels number them with 31 bits.
  const int64_t m = (sizes.m + 15) / 16 + (axis == Axis::kRows ? sizes.groups : 0);
  const int64_t n = (sizes.n + 15) / 16 + (axis == Axis::kColumns ? sizes.groups : 0);
  const int64_t of_groups = axis == Axis::kNone || axis == Axis::kK ? sizes.groups : 1;
  int64_t tiles = 0;
  if (__builtin_mul_overflow(m * n, of_groups, &tiles) || tiles >= int64_t{1} << 31) {
    return error(FLYDSL_AOT_UNSUPPORTED_SIZE,
                 "M %lld, N %lld, G %lld: up to %lld x %lld tiles of 16 x 16%s; their number must "
                 "be below 2^31",
                 static_cast<long long>(sizes.m), static_cast<long long>(sizes.n),
                 static_cast<long long>(sizes.groups), static_cast<long long>(m),
                 static_cast<long long>(n), of_groups > 1 ? " a group" : "");
  }
  return {};
}

Status check_memory(const Operands &all, bool query) {
  FLYDSL_RETURN_IF_ERROR(check_strides(all.d));
  FLYDSL_RETURN_IF_ERROR(check_no_self_overlap(all.d));
  FLYDSL_RETURN_IF_ERROR(check_data(all.d, query));
  for (const Operand *input :
       {&all.a, &all.a_scale, &all.b, &all.b_scale, &all.offsets, &all.bias}) {
    if (!present(*input->tensor)) continue;
    FLYDSL_RETURN_IF_ERROR(check_strides(*input));
    FLYDSL_RETURN_IF_ERROR(check_data(*input, query));
    if (!query) FLYDSL_RETURN_IF_ERROR(check_no_overlap(all.d, *input));
  }
  return {};
}

}  // namespace

Status check(const Params &params, bool query) {
  const Operands all = operands_of(params);
  FLYDSL_RETURN_IF_ERROR(check_shapes(params, all));
  FLYDSL_RETURN_IF_ERROR(check_dtypes(params));
  FLYDSL_RETURN_IF_ERROR(check_limits(sizes_of(params), axis_of(params)));
  FLYDSL_RETURN_IF_ERROR(check_scales(params, all));
  return check_memory(all, query);
}

}  // namespace flydsl::grouped_gemm
