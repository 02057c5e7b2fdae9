// Where a row of tensors with one axis of rows or two begins.
#pragma once

#include "common/vectors.hip.h"

namespace flydsl::kernels {

// In bytes or elements as the strides are.
struct RowPlace {
  u64 outer, inner;
  FLYDSL_DEVICE u64 at(i64 outer_stride, i64 inner_stride) const {
    return outer * static_cast<u64>(outer_stride) + inner * static_cast<u64>(inner_stride);
  }
};
FLYDSL_DEVICE RowPlace place_of_row(u64 row, u64 rows, u64 rows_inner) {
  if (rows_inner == rows) return {0, row};
  // The host counts rows of more axes in 32 bits.
  const u32 outer = static_cast<u32>(row) / static_cast<u32>(rows_inner);
  return {outer, row - outer * rows_inner};
}

}  // namespace flydsl::kernels
