// What operators over rows share: tensors (M, N) or (M0, M1, N), per row (M) or (M0, M1).
#pragma once

#include <initializer_list>

#include "flydsl_aot/types.h"
#include "src/status/status.h"
#include "v2src/launch.h"
#include "v2src/tensor_check.h"

namespace flydsl {

// Of a tensor with a place for each element, or of one with a place for each row.
const char *const *row_axes(int32_t rank);

bool is_real(flydsl_aot_dtype dtype);  // fp32, fp16 or bf16

// Rank 2 or 3, sizes not negative, the last one below 2^31.
Status check_rows(const Operand &x);
// The shape of x.
Status check_like(const Operand &operand, const Operand &x);
// The shape of x without its last axis.
Status check_per_row(const Operand &operand, const Operand &x);
// (N), of a real type.
Status check_per_column(const Operand &operand, const Operand &x);
Status check_dtype_is(const Operand &operand, flydsl_aot_dtype allowed);

// check_no_overlap, for a call; nothing without pointers.
Status check_apart(const Operand &output, const Operand &other);

// A checked x.
struct Rows {
  int64_t outer, inner, length;
  uint64_t count() const { return static_cast<uint64_t>(outer) * static_cast<uint64_t>(inner); }
};
Rows rows_of(const flydsl_aot_tensor &x);

// Strides of the rows of a tensor whose axes are those of x, or a first part of them; of an absent one 0.
struct RowStrides {
  int64_t outer = 0, inner = 0;
};
RowStrides row_strides(const flydsl_aot_tensor &tensor, const flydsl_aot_tensor &x, int64_t unit);
// In bytes.
RowStrides row_stride_bytes(const flydsl_aot_tensor &tensor, const flydsl_aot_tensor &x);

// The greatest power of two, up to 4096, that divides every mask of alignment.
uint64_t alignment_of(std::initializer_list<uint64_t> masks);

// Work-groups that share `tiles`, each going from one to the next that many further on.
uint32_t groups_for(uint64_t tiles);

}  // namespace flydsl
