// Which scaled_gemm problems are refused, and with what message. The rules are those of include/flydsl_aot/scaled_gemm.h.
#include "v2src/attention_check.h"
#include "v2src/block_scales.h"
#include "v2src/scaled_gemm.h"
#include "v2src/tensor_check.h"
#include "v2src/types.h"

namespace flydsl::scaled_gemm {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 30;
constexpr int64_t kLeastTile = 128;  // of rows and of columns

constexpr const char *kAAxes[] = {"batch", "M", "K"};
constexpr const char *kBAxes[] = {"batch", "K", "N"};
constexpr const char *kDAxes[] = {"batch", "M", "N"};
constexpr const char *kAScaleAxes[] = {"batch", "M", "K / 32"};
constexpr const char *kBScaleAxes[] = {"batch", "N", "K / 32"};
constexpr const char *kShuffledAxes[] = {"batch", "rows, padded", "K / 32, padded"};
constexpr const char *kBiasAxes[] = {"batch", "N"};

// Without the batch where the tensor has none.
const char *const *axes_of(const flydsl_aot_tensor &tensor, const char *const *axes, int32_t full) {
  return axes + (tensor.rank == full ? 0 : 1);
}

struct Operands {
  Operand a, b, a_scale, b_scale, bias, d;
};

Operands operands_of(const Params &params) {
  const bool shuffled = params.scale_layout == FLYDSL_AOT_SCALES_SHUFFLED_32_8;
  return {{"a", &params.a, axes_of(params.a, kAAxes, 3)},
          {"b", &params.b, axes_of(params.b, kBAxes, 3)},
          {"a_scale", &params.a_scale,
           axes_of(params.a_scale, shuffled ? kShuffledAxes : kAScaleAxes, 3)},
          {"b_scale", &params.b_scale,
           axes_of(params.b_scale, shuffled ? kShuffledAxes : kBScaleAxes, 3)},
          {"bias", &params.bias, axes_of(params.bias, kBiasAxes, 2)},
          {"d", &params.d, axes_of(params.d, kDAxes, 3)}};
}

bool is_mx(flydsl_aot_dtype dtype) {
  return is_float8(dtype) || dtype == FLYDSL_AOT_E2M1X2;
}

Status check_element_type(const Operand &operand, bool known_to_be, const char *supported) {
  const flydsl_aot_dtype dtype = operand.tensor->dtype;
  if (!known_dtype(dtype))
    return error(FLYDSL_AOT_INVALID_DTYPE, "%s has the unknown dtype number %d", operand.name,
                 dtype);
  if (known_to_be) return {};
  return error(FLYDSL_AOT_UNSUPPORTED_DTYPE, "%s is %s; supported: %s", operand.name,
               flydsl_aot_dtype_name(dtype), supported);
}

Status check_dtypes(const Params &params, const Operands &all) {
  for (const Operand *operand : {&all.a, &all.b}) {
    FLYDSL_RETURN_IF_ERROR(
        check_element_type(*operand, is_mx(operand->tensor->dtype), "e4m3, e5m2, e2m1x2"));
  }
  if ((params.a.dtype == FLYDSL_AOT_E2M1X2) != (params.b.dtype == FLYDSL_AOT_E2M1X2)) {
    return error(FLYDSL_AOT_INVALID_DTYPE, "a is %s and b %s; e2m1x2 goes with e2m1x2 only",
                 flydsl_aot_dtype_name(params.a.dtype), flydsl_aot_dtype_name(params.b.dtype));
  }
  for (const Operand *scale : {&all.a_scale, &all.b_scale})
    FLYDSL_RETURN_IF_ERROR(check_scale_dtype(*scale));
  const auto is_real = [](flydsl_aot_dtype dtype) {
    return is_wide(dtype) || dtype == FLYDSL_AOT_FP32;
  };
  FLYDSL_RETURN_IF_ERROR(check_element_type(all.d, is_real(params.d.dtype), "fp32, fp16, bf16"));
  if (!present(params.bias)) return {};
  return check_element_type(all.bias, is_real(params.bias.dtype), "fp32, fp16, bf16");
}

Status check_matrix(const Operand &operand) {
  if (operand.tensor->rank == 2 || operand.tensor->rank == 3)
    return check_shape(operand, operand.tensor->rank);
  return error(FLYDSL_AOT_INVALID_SHAPE, "%s has rank %d; expected 2 or, batched, 3", operand.name,
               operand.tensor->rank);
}

// The last axes of both, counted from the end.
Status check_same(const Operand &a, FromLast axis_a, const Operand &b, FromLast axis_b) {
  return check_same_size(a, a.tensor->rank - axis_a, b, b.tensor->rank - axis_b);
}

Status check_limits(const Params &params) {
  const int64_t batches = params.d.rank == 3 ? params.d.sizes[0] : 1;
  const int64_t m = size_of(params.d, kSecond), n = size_of(params.d, kLast);
  const struct {
    const char *name;
    int64_t value;
  } limited[] = {{"M", m}, {"N", n}, {"K", size_of(params.a, kLast)}, {"batch", batches}};
  for (const auto &size : limited) {
    if (size.value <= kMaxSize) continue;
    return error(FLYDSL_AOT_UNSUPPORTED_SIZE, "%s = %lld; at most %lld", size.name,
                 static_cast<long long>(size.value), static_cast<long long>(kMaxSize));
  }
  if (m == 0 || n == 0 || batches == 0) return {};
  LinearTiles grid;
  return linear_tiles(m, batches, rounded_up(n, kLeastTile) / kLeastTile, kLeastTile, &grid);
}

Status check_shapes(const Params &params, const Operands &all) {
  for (const Operand *operand : {&all.a, &all.b, &all.d})
    FLYDSL_RETURN_IF_ERROR(check_matrix(*operand));
  FLYDSL_RETURN_IF_ERROR(check_same(all.a, kLast, all.b, kSecond));
  FLYDSL_RETURN_IF_ERROR(check_same(all.a, kSecond, all.d, kSecond));
  FLYDSL_RETURN_IF_ERROR(check_same(all.b, kLast, all.d, kLast));
  const bool batched = params.a.rank == 3 || params.b.rank == 3;
  if (params.d.rank != (batched ? 3 : 2)) {
    return error(FLYDSL_AOT_INVALID_SHAPE,
                 "d has rank %d; a has rank %d and b %d, so it must be %d", params.d.rank,
                 params.a.rank, params.b.rank, batched ? 3 : 2);
  }
  for (const Operand *operand : {&all.a, &all.b})
    if (operand->tensor->rank == 3) FLYDSL_RETURN_IF_ERROR(check_same_size(*operand, 0, all.d, 0));
  const int64_t k = size_of(params.a, kLast);
  if (k % kMxBlock != 0) {
    return error(FLYDSL_AOT_UNSUPPORTED_SIZE, "K = %lld; it must be a multiple of %lld",
                 static_cast<long long>(k), static_cast<long long>(kMxBlock));
  }
  FLYDSL_RETURN_IF_ERROR(check_limits(params));  // before rows are rounded up
  const bool shuffled = params.scale_layout == FLYDSL_AOT_SCALES_SHUFFLED_32_8;
  FLYDSL_RETURN_IF_ERROR(
      check_block_scales(all.a_scale, all.a, size_of(params.a, kSecond), k, shuffled));
  FLYDSL_RETURN_IF_ERROR(
      check_block_scales(all.b_scale, all.b, size_of(params.b, kLast), k, shuffled));
  if (!present(params.bias)) return {};
  if (params.bias.rank != 1 && params.bias.rank != params.d.rank - 1) {
    return error(FLYDSL_AOT_INVALID_SHAPE, "bias has rank %d; expected 1%s", params.bias.rank,
                 batched ? " or, for each batch, 2" : "");
  }
  FLYDSL_RETURN_IF_ERROR(check_shape(all.bias, params.bias.rank));
  FLYDSL_RETURN_IF_ERROR(check_same(all.bias, kLast, all.d, kLast));
  return params.bias.rank == 2 ? check_same_size(all.bias, 0, all.d, 0) : Status();
}

Status check_packed(const Operand &operand, FromLast k_axis) {
  const flydsl_aot_tensor &tensor = *operand.tensor;
  const int axis = tensor.rank - k_axis;
  if (tensor.dtype != FLYDSL_AOT_E2M1X2 || tensor.sizes[axis] == 0 || tensor.strides[axis] == 1)
    return {};
  return error(
      FLYDSL_AOT_INVALID_STRIDE,
      "%s has stride %lld on axis %d (%s); it is e2m1x2, whose packed axis is K, with stride 1",
      operand.name, static_cast<long long>(tensor.strides[axis]), axis, operand.axes[axis]);
}

Status check_memory(const Params &params, const Operands &all, bool query) {
  const flydsl_aot_tensor a = stored_view(params.a, kLast), b = stored_view(params.b, kSecond);
  const Operand inputs[] = {{all.a.name, &a, all.a.axes},
                            {all.b.name, &b, all.b.axes},
                            all.a_scale,
                            all.b_scale,
                            all.bias};
  FLYDSL_RETURN_IF_ERROR(check_packed(all.a, kLast));
  FLYDSL_RETURN_IF_ERROR(check_packed(all.b, kSecond));
  FLYDSL_RETURN_IF_ERROR(check_strides(all.d));
  FLYDSL_RETURN_IF_ERROR(check_no_self_overlap(all.d));
  FLYDSL_RETURN_IF_ERROR(check_data(all.d, query));
  for (const Operand &input : inputs) {
    if (!present(*input.tensor)) continue;
    FLYDSL_RETURN_IF_ERROR(check_strides(input));
    FLYDSL_RETURN_IF_ERROR(check_data(input, query));
    if (!query) FLYDSL_RETURN_IF_ERROR(check_no_overlap(all.d, input));
  }
  return {};
}

}  // namespace

flydsl_aot_tensor stored_view(const flydsl_aot_tensor &tensor, FromLast k_axis) {
  flydsl_aot_tensor view = tensor;
  if (tensor.dtype == FLYDSL_AOT_E2M1X2) view.sizes[tensor.rank - k_axis] /= 2;
  return view;
}

Status check(const Params &params, bool query) {
  const Operands all = operands_of(params);
  FLYDSL_RETURN_IF_ERROR(check_required({&all.a, &all.a_scale, &all.b, &all.b_scale, &all.d},
                                        "a, a_scale, b, b_scale and d"));
  FLYDSL_RETURN_IF_ERROR(check_scale_layout(params.scale_layout));
  FLYDSL_RETURN_IF_ERROR(check_dtypes(params, all));
  FLYDSL_RETURN_IF_ERROR(check_shapes(params, all));
  return check_memory(params, all, query);
}

}  // namespace flydsl::scaled_gemm
