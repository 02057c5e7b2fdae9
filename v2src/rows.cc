#include "v2src/rows.h"

#include <algorithm>

namespace flydsl {
namespace {

constexpr const char *kTwoAxes[] = {"M", "N"};
constexpr const char *kThreeAxes[] = {"M0", "M1", "N"};
// So many that a GPU of any size is full; the rest of the rows is the same work-groups' next turn.
constexpr uint64_t kMostGroups = uint64_t{1} << 21;

}  // namespace

const char *const *row_axes(int32_t rank) {
  return rank == 3 ? kThreeAxes : kTwoAxes;
}

bool is_real(flydsl_aot_dtype dtype) {
  return dtype == FLYDSL_AOT_FP32 || dtype == FLYDSL_AOT_FP16 || dtype == FLYDSL_AOT_BF16;
}

Status check_rows(const Operand &x) {
  const flydsl_aot_tensor &tensor = *x.tensor;
  if (tensor.rank != 2 && tensor.rank != 3) {
    return error(FLYDSL_AOT_INVALID_SHAPE, "%s has rank %d; expected (M, N) or (M0, M1, N)", x.name,
                 tensor.rank);
  }
  FLYDSL_RETURN_IF_ERROR(check_shape(x, tensor.rank));
  int64_t rows = 1;
  for (int axis = 0; axis + 1 < tensor.rank; ++axis) {
    if (tensor.sizes[axis] != 0 && __builtin_mul_overflow(rows, tensor.sizes[axis], &rows))
      return error(FLYDSL_AOT_UNSUPPORTED_SIZE, "%s has more than 2^63 rows", x.name);
  }
  if (tensor.rank == 3 && tensor.sizes[0] > 1 && rows >= int64_t{1} << 32) {
    return error(FLYDSL_AOT_UNSUPPORTED_SIZE,
                 "%s has M0 * M1 = %lld rows of two axes; they must be fewer than 2^32", x.name,
                 static_cast<long long>(rows));
  }
  const int64_t length = tensor.sizes[tensor.rank - 1];
  if (length < int64_t{1} << 31) return {};
  return error(FLYDSL_AOT_UNSUPPORTED_SIZE, "%s has N = %lld; it must be below 2^31", x.name,
               static_cast<long long>(length));
}

Status check_like(const Operand &operand, const Operand &x) {
  FLYDSL_RETURN_IF_ERROR(check_shape(operand, x.tensor->rank));
  for (int axis = 0; axis < x.tensor->rank; ++axis)
    FLYDSL_RETURN_IF_ERROR(check_same_size(x, axis, operand, axis));
  return {};
}

Status check_per_row(const Operand &operand, const Operand &x) {
  FLYDSL_RETURN_IF_ERROR(check_shape(operand, x.tensor->rank - 1));
  for (int axis = 0; axis + 1 < x.tensor->rank; ++axis)
    FLYDSL_RETURN_IF_ERROR(check_same_size(x, axis, operand, axis));
  return {};
}

Status check_per_column(const Operand &operand, const Operand &x) {
  FLYDSL_RETURN_IF_ERROR(check_shape(operand, 1));
  FLYDSL_RETURN_IF_ERROR(check_same_size(x, x.tensor->rank - 1, operand, 0));
  const flydsl_aot_dtype dtype = operand.tensor->dtype;
  if (is_real(dtype)) return {};
  return error(FLYDSL_AOT_INVALID_DTYPE, "%s is %s (number %d); it must be fp32, fp16 or bf16",
               operand.name, flydsl_aot_dtype_name(dtype), dtype);
}

Status check_dtype_is(const Operand &operand, flydsl_aot_dtype allowed) {
  const flydsl_aot_dtype dtype = operand.tensor->dtype;
  if (dtype == allowed) return {};
  return error(FLYDSL_AOT_INVALID_DTYPE, "%s is %s (number %d); it must be %s", operand.name,
               flydsl_aot_dtype_name(dtype), dtype, flydsl_aot_dtype_name(allowed));
}

Status check_apart(const Operand &output, const Operand &other) {
  if (!output.tensor->data || !other.tensor->data) return {};
  return check_no_overlap(output, other);
}

Rows rows_of(const flydsl_aot_tensor &x) {
  if (x.rank == 3) return {x.sizes[0], x.sizes[1], x.sizes[2]};
  return {1, x.sizes[0], x.sizes[1]};
}

RowStrides row_strides(const flydsl_aot_tensor &tensor, const flydsl_aot_tensor &x, int64_t unit) {
  if (!present(tensor)) return {};
  if (x.rank == 3) return {walked_stride(tensor, 0) * unit, walked_stride(tensor, 1) * unit};
  return {0, walked_stride(tensor, 0) * unit};
}

RowStrides row_stride_bytes(const flydsl_aot_tensor &tensor, const flydsl_aot_tensor &x) {
  return row_strides(tensor, x, dtype_bytes(tensor.dtype));
}

uint64_t alignment_of(std::initializer_list<uint64_t> masks) {
  uint64_t all = 4096;
  for (const uint64_t mask : masks) all |= mask;
  return all & (~all + 1);
}

uint32_t groups_for(uint64_t tiles) {
  return static_cast<uint32_t>(std::min(tiles, kMostGroups));
}

}  // namespace flydsl
