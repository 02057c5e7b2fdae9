// Checks that the GEMM family's operators share.
#pragma once

#include <cstdint>

#include "flydsl_aot/gemm.h"
#include "src/status/status.h"
#include "v2src/tensor_check.h"

namespace flydsl {

// Element types that matrices of the family may have.
enum class ElementKinds {
  kWide,       // fp32, fp16, bf16
  kWideOr8Bit  // and e4m3, e5m2
};
// INVALID_DTYPE for a number that is no dtype, UNSUPPORTED_DTYPE for another one.
Status check_element_dtype(const Operand &operand, ElementKinds allowed);
Status check_fp32(const Operand &operand);
bool is_8bit(flydsl_aot_dtype dtype);

// Rank 2, or 3 with `batches` or 1 as first size; an output's first size is `batches`. (rows, columns) must be the last two.
struct MatrixShape {
  int64_t batches;
  bool batched;
  int64_t rows, columns;
};
Status check_matrix(const Operand &operand, const MatrixShape &shape, bool output);

// Rank 1 or 2, (size) or (batch, size), a batch of 1 standing for all. `or_one`: size 1 will do, too.
Status check_vector(const Operand &operand, int64_t size, const MatrixShape &shape, bool or_one);

// An output: strides, no overlap with itself, pointer; an input: strides, pointer.
Status check_output_memory(const Operand &operand, bool query);
Status check_input_memory(const Operand &operand, bool query);

Status check_activation(flydsl_aot_activation activation);
Status check_factor(const char *name, float value);
Status check_reserved(const char *name, int32_t value);

}  // namespace flydsl
