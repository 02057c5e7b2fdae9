#include "v2src/matrix_check.h"

#include <cmath>

#include "v2src/types.h"

namespace flydsl {

bool is_8bit(flydsl_aot_dtype dtype) {
  return dtype == FLYDSL_AOT_E4M3 || dtype == FLYDSL_AOT_E5M2;
}

Status check_element_dtype(const Operand &operand, ElementKinds allowed) {
  const flydsl_aot_dtype dtype = operand.tensor->dtype;
  if (!known_dtype(dtype))
    return error(FLYDSL_AOT_INVALID_DTYPE, "%s has the unknown dtype number %d", operand.name,
                 dtype);
  const bool wide =
      dtype == FLYDSL_AOT_FP32 || dtype == FLYDSL_AOT_FP16 || dtype == FLYDSL_AOT_BF16;
  if (wide || (allowed == ElementKinds::kWideOr8Bit && is_8bit(dtype))) return {};
  return error(FLYDSL_AOT_UNSUPPORTED_DTYPE, "%s is %s; supported: fp32, fp16, bf16%s",
               operand.name, flydsl_aot_dtype_name(dtype),
               allowed == ElementKinds::kWideOr8Bit ? ", e4m3, e5m2" : "");
}

Status check_fp32(const Operand &operand) {
  const flydsl_aot_dtype dtype = operand.tensor->dtype;
  if (dtype == FLYDSL_AOT_FP32) return {};
  return error(FLYDSL_AOT_INVALID_DTYPE, "%s is %s (number %d); it must be fp32", operand.name,
               flydsl_aot_dtype_name(dtype), dtype);
}

namespace {

Status check_size(const Operand &operand, int axis, int64_t expected, bool or_one) {
  const int64_t size = operand.tensor->sizes[axis];
  if (size == expected || (or_one && size == 1)) return {};
  return error(FLYDSL_AOT_INVALID_SHAPE, "%s has size %lld on axis %d; it must be %lld%s",
               operand.name, static_cast<long long>(size), axis, static_cast<long long>(expected),
               or_one && expected != 1 ? " or 1" : "");
}

}  // namespace

Status check_matrix(const Operand &operand, const MatrixShape &shape, bool output) {
  const flydsl_aot_tensor &tensor = *operand.tensor;
  const int32_t batched = shape.batched ? 3 : 2;
  if (tensor.rank != batched && (output || tensor.rank != 2)) {
    return error(FLYDSL_AOT_INVALID_SHAPE, "%s has rank %d; expected %s", operand.name, tensor.rank,
                 !shape.batched ? "2, since neither a nor b is batched"
                 : output       ? "3, since a or b is batched"
                                : "2 or 3");
  }
  FLYDSL_RETURN_IF_ERROR(check_shape(operand, tensor.rank));
  if (tensor.rank == 3) FLYDSL_RETURN_IF_ERROR(check_size(operand, 0, shape.batches, !output));
  FLYDSL_RETURN_IF_ERROR(check_size(operand, tensor.rank - 2, shape.rows, false));
  return check_size(operand, tensor.rank - 1, shape.columns, false);
}

Status check_vector(const Operand &operand, int64_t size, const MatrixShape &shape, bool or_one) {
  const flydsl_aot_tensor &tensor = *operand.tensor;
  if (tensor.rank != 1 && !(tensor.rank == 2 && shape.batched)) {
    return error(FLYDSL_AOT_INVALID_SHAPE, "%s has rank %d; expected 1%s", operand.name,
                 tensor.rank, shape.batched ? " or 2" : ", since neither a nor b is batched");
  }
  FLYDSL_RETURN_IF_ERROR(check_shape(operand, tensor.rank));
  if (tensor.rank == 2) FLYDSL_RETURN_IF_ERROR(check_size(operand, 0, shape.batches, true));
  return check_size(operand, tensor.rank - 1, size, or_one);
}

Status check_output_memory(const Operand &operand, bool query) {
  FLYDSL_RETURN_IF_ERROR(check_strides(operand));
  FLYDSL_RETURN_IF_ERROR(check_no_self_overlap(operand));
  return check_data(operand, query);
}

Status check_input_memory(const Operand &operand, bool query) {
  FLYDSL_RETURN_IF_ERROR(check_strides(operand));
  return check_data(operand, query);
}

Status check_activation(flydsl_aot_activation activation) {
  if (activation >= FLYDSL_AOT_ACTIVATION_NONE && activation <= FLYDSL_AOT_ACTIVATION_SILU)
    return {};
  return error(FLYDSL_AOT_INVALID_ARGUMENT,
               "epilogue.activation is %d; allowed: NONE (0), RELU (1), GELU (2), GELU_TANH (3), "
               "SILU (4)",
               activation);
}

Status check_factor(const char *name, float value) {
  if (std::isfinite(value)) return {};
  return error(FLYDSL_AOT_INVALID_SCALE, "%s is %g; it must be finite", name,
               static_cast<double>(value));
}

Status check_reserved(const char *name, int32_t value) {
  if (value == 0) return {};
  return error(FLYDSL_AOT_INVALID_ARGUMENT, "%s is %d; it must be 0", name, value);
}

}  // namespace flydsl
