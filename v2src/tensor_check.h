// Checks that every operator makes of its tensors. Each message names the operand, the value seen
// and what is allowed.
#pragma once

#include <cstdint>

#include "flydsl_aot/types.h"
#include "src/status/status.h"
#include "v2src/types.h"

namespace flydsl {

// One operand: its name in messages, and what its axes are called, e.g. {"B", "Hq", "Sq", "D"}.
struct Operand {
  const char *name;
  const flydsl_aot_tensor *tensor;
  const char *const *axes;
};

// Optional tensors are absent when their rank is 0.
inline bool present(const flydsl_aot_tensor &tensor) {
  return tensor.rank != 0;
}
// Some size is 0.
inline bool empty(const flydsl_aot_tensor &tensor) {
  for (int axis = 0; axis < tensor.rank; ++axis)
    if (tensor.sizes[axis] == 0) return true;
  return false;
}

// Rank as expected, sizes not negative.
Status check_shape(const Operand &operand, int32_t rank);

// Two axes that must have the same size.
Status check_same_size(const Operand &a, int axis_a, const Operand &b, int axis_b);

// Strides not negative, every byte offset within 63 bits.
Status check_strides(const Operand &operand);

Status check_last_axis_contiguous(const Operand &operand);

// An output must not write an element twice. Accepted are nested axes: sorted by stride, each
// stride is at least the span of the axes below it (every permuted, padded or sliced layout is of
// that kind).
Status check_no_self_overlap(const Operand &operand);

// Not null unless empty, aligned to the element size, not past the end of the address space. With
// `query` the pointer only counts for its alignment.
Status check_data(const Operand &operand, bool query);

// An output may not share memory with another operand. Byte ranges of strided views may interleave
// legally (slices of one packed buffer), so what is refused is what is certain: a shared first
// element, or ranges that meet where one of the two views has no gaps. Other overlap is the
// caller's responsibility.
Status check_no_overlap(const Operand &output, const Operand &other);

// The same elements at the same places, by pointers that are there.
bool same_view(const flydsl_aot_tensor &a, const flydsl_aot_tensor &b);

// Bits of all addresses and of all strides in bytes of axes that are walked, except unit strides:
// the greatest power of two dividing them all is the lowest bit set in the OR of these masks. 0
// constrains nothing.
uint64_t alignment_mask(const flydsl_aot_tensor &tensor);

// The stride of an axis, 0 where the axis is not walked (size 0 or 1: the caller's number is
// ignored).
inline int64_t walked_stride(const flydsl_aot_tensor &tensor, int axis) {
  return tensor.sizes[axis] > 1 ? tensor.strides[axis] : 0;
}

}  // namespace flydsl
