// Checks that every operator makes of its tensors. Each message names the operand, the value seen
// and what is allowed.
#pragma once

#include <cstdint>

#include "flydsl_aot/types.h"
#include "src/status/status.h"
#include "v2src/call_recording.h"
#include "v2src/types.h"

namespace flydsl {

// The smallest byte range that holds all elements of a tensor whose strides passed check_strides; of one without elements nothing.
struct Range {
  uint64_t begin;
  uint64_t last;  // first byte of the last element
  uint64_t end;   // one past the last byte
};

// One operand: its name in messages, and what its axes are called, e.g. {"B", "Hq", "Sq", "D"}.
struct Operand {
  const char *name;
  const flydsl_aot_tensor *tensor;
  const char *const *axes;
  mutable Range range{};  // of range_of(), which several checks ask for
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

// Every call makes these checks, and nearly every tensor passes in a plain way, which is seen here; `complete` has the whole rule and
// the messages.
namespace complete {
Status check_shape(const Operand &operand, int32_t rank);
Status check_same_size(const Operand &a, int axis_a, const Operand &b, int axis_b);
Status check_strides(const Operand &operand);
Status check_last_axis_contiguous(const Operand &operand);
Status check_no_self_overlap(const Operand &operand);
Status check_data(const Operand &operand, bool query);
Status check_no_overlap(const Operand &output, const Operand &other);
}  // namespace complete

// Rank as expected, sizes not negative.
inline Status check_shape(const Operand &operand, int32_t rank) {
  const flydsl_aot_tensor &tensor = *operand.tensor;
  int64_t all = 0;
  for (int axis = 0; axis < rank; ++axis) all |= tensor.sizes[axis];
  return tensor.rank == rank && all >= 0 ? Status() : complete::check_shape(operand, rank);
}

// Two axes that must have the same size.
inline Status check_same_size(const Operand &a, int axis_a, const Operand &b, int axis_b) {
  return a.tensor->sizes[axis_a] == b.tensor->sizes[axis_b]
             ? Status()
             : complete::check_same_size(a, axis_a, b, axis_b);
}

// Strides not negative, every byte offset within 63 bits.
inline Status check_strides(const Operand &operand) {
  const flydsl_aot_tensor &tensor = *operand.tensor;
  int64_t all = 0;
  for (int axis = 0; axis < tensor.rank; ++axis) all |= tensor.sizes[axis] | tensor.strides[axis];
  // Eight products of 28 bits each, by 8 bytes.
  static_assert(FLYDSL_AOT_MAX_RANK == 8);
  return static_cast<uint64_t>(all) >> 28 == 0 ? Status() : complete::check_strides(operand);
}

inline Status check_last_axis_contiguous(const Operand &operand) {
  const flydsl_aot_tensor &tensor = *operand.tensor;
  return tensor.strides[tensor.rank - 1] == 1 ? Status()
                                              : complete::check_last_axis_contiguous(operand);
}

// The stride of an axis, 0 where the axis is not walked (size 0 or 1: the caller's number is
// ignored).
inline int64_t walked_stride(const flydsl_aot_tensor &tensor, int axis) {
  return tensor.sizes[axis] > 1 ? tensor.strides[axis] : 0;
}

// An output must not write an element twice. Accepted are nested axes: sorted by stride, each
// stride is at least the span of the axes below it (every permuted, padded or sliced layout is of
// that kind).
inline Status check_no_self_overlap(const Operand &operand) {
  const flydsl_aot_tensor &tensor = *operand.tensor;
  int64_t span = 1;
  for (int axis = tensor.rank - 1; axis >= 0; --axis) {
    const int64_t size = tensor.sizes[axis], stride = tensor.strides[axis];
    if (size <= 1) continue;
    if (stride < span) return complete::check_no_self_overlap(operand);
    span += stride * (size - 1);
  }
  return {};
}

inline Range range_of(const flydsl_aot_tensor &tensor) {
  const uint64_t begin = reinterpret_cast<uint64_t>(tensor.data);
  uint64_t elements = 0;
  for (int axis = 0; axis < tensor.rank; ++axis) {
    if (tensor.sizes[axis] == 0) return {begin, begin, begin};
    elements += static_cast<uint64_t>(walked_stride(tensor, axis)) *
                static_cast<uint64_t>(tensor.sizes[axis] - 1);
  }
  const uint64_t element_bytes = dtype_bytes(tensor.dtype);
  const uint64_t last = begin + elements * element_bytes;
  return {begin, last, last + element_bytes};
}

inline const Range &range_of(const Operand &operand) {
  if (operand.range.end == 0) operand.range = range_of(*operand.tensor);
  return operand.range;
}

// Not null unless empty, aligned to the element size, not past the end of the address space. With
// `query` the pointer only counts for its alignment.
inline Status check_data(const Operand &operand, bool query) {
  const flydsl_aot_tensor &tensor = *operand.tensor;
  constexpr uint64_t kMostBytes = 8;  // of an element
  const bool plain = tensor.data && reinterpret_cast<uint64_t>(tensor.data) % kMostBytes == 0;
  const Range &range = range_of(operand);
  return plain && range.end >= range.begin ? Status() : complete::check_data(operand, query);
}

// An output may not share memory with another operand. Byte ranges of strided views may interleave
// legally (slices of one packed buffer), so what is refused is what is certain: a shared first
// element, or ranges that meet where one of the two views has no gaps. Other overlap is the
// caller's responsibility.
inline Status check_no_overlap(const Operand &output, const Operand &other) {
  CallRecording::compares(output.tensor->data);
  const Range &a = range_of(output), &b = range_of(other);
  return a.end <= b.begin || b.end <= a.begin ? Status()
                                              : complete::check_no_overlap(output, other);
}

// The same elements at the same places, by pointers that are there.
bool same_view(const flydsl_aot_tensor &a, const flydsl_aot_tensor &b);

// Bits of all addresses and of all strides in bytes of axes that are walked, except unit strides:
// the greatest power of two dividing them all is the lowest bit set in the OR of these masks. 0
// constrains nothing.
inline uint64_t alignment_mask(const flydsl_aot_tensor &tensor) {
  const uint64_t element_bytes = dtype_bytes(tensor.dtype);
  uint64_t mask = reinterpret_cast<uint64_t>(tensor.data);
  for (int axis = 0; axis < tensor.rank; ++axis) {
    const int64_t stride = walked_stride(tensor, axis);
    if (stride != 1) mask |= static_cast<uint64_t>(stride) * element_bytes;
  }
  return mask;
}

}  // namespace flydsl
