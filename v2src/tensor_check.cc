#include "v2src/tensor_check.h"

#include <algorithm>

namespace flydsl {
namespace {

long long ll(int64_t value) {
  return value;
}

// Walked axes by ascending stride; broadcast axes (stride 0) are left out on request.
int sorted_axes(const flydsl_aot_tensor &tensor, bool skip_broadcast, int *axes) {
  int count = 0;
  for (int axis = 0; axis < tensor.rank; ++axis) {
    if (tensor.sizes[axis] > 1 && !(skip_broadcast && tensor.strides[axis] == 0))
      axes[count++] = axis;
  }
  std::sort(axes, axes + count,
            [&](int a, int b) { return tensor.strides[a] < tensor.strides[b]; });
  return count;
}

// No gaps: every byte of the range belongs to an element.
bool dense(const flydsl_aot_tensor &tensor) {
  int axes[FLYDSL_AOT_MAX_RANK];
  const int count = sorted_axes(tensor, true, axes);
  int64_t span = 1;
  for (int i = 0; i < count; ++i) {
    if (tensor.strides[axes[i]] > span) return false;
    span = tensor.strides[axes[i]] * (tensor.sizes[axes[i]] - 1) + span;
  }
  return true;
}

bool inside(uint64_t address, const Range &range) {
  return address >= range.begin && address < range.end;
}

}  // namespace

namespace complete {

Status check_shape(const Operand &operand, int32_t rank) {
  const flydsl_aot_tensor &tensor = *operand.tensor;
  if (tensor.rank != rank) {
    std::string axes;
    for (int axis = 0; axis < rank; ++axis)
      axes += (axis ? ", " : "") + std::string(operand.axes[axis]);
    return error(FLYDSL_AOT_INVALID_SHAPE, "%s has rank %d; expected %d: (%s)", operand.name,
                 tensor.rank, rank, axes.c_str());
  }
  for (int axis = 0; axis < rank; ++axis) {
    if (tensor.sizes[axis] < 0) {
      return error(FLYDSL_AOT_INVALID_SHAPE,
                   "%s has size %lld on axis %d (%s); sizes are 0 or more", operand.name,
                   ll(tensor.sizes[axis]), axis, operand.axes[axis]);
    }
  }
  return {};
}

Status check_same_size(const Operand &a, int axis_a, const Operand &b, int axis_b) {
  const int64_t size_a = a.tensor->sizes[axis_a];
  const int64_t size_b = b.tensor->sizes[axis_b];
  if (size_a == size_b) return {};
  return error(FLYDSL_AOT_INVALID_SHAPE,
               "%s and %s disagree: %s has %s = %lld (axis %d), %s has %s = %lld (axis %d)", a.name,
               b.name, a.name, a.axes[axis_a], ll(size_a), axis_a, b.name, b.axes[axis_b],
               ll(size_b), axis_b);
}

Status check_strides(const Operand &operand) {
  const flydsl_aot_tensor &tensor = *operand.tensor;
  int64_t bytes = dtype_bytes(tensor.dtype);
  for (int axis = 0; axis < tensor.rank; ++axis) {
    if (tensor.sizes[axis] <= 1) continue;
    const int64_t stride = tensor.strides[axis];
    if (stride < 0) {
      return error(FLYDSL_AOT_INVALID_STRIDE,
                   "%s has stride %lld on axis %d (%s); strides are 0 or more", operand.name,
                   ll(stride), axis, operand.axes[axis]);
    }
    int64_t span = 0;
    if (__builtin_mul_overflow(stride, tensor.sizes[axis] - 1, &span) ||
        __builtin_mul_overflow(span, int64_t{dtype_bytes(tensor.dtype)}, &span) ||
        __builtin_add_overflow(bytes, span, &bytes)) {
      return error(
          FLYDSL_AOT_INVALID_STRIDE,
          "%s has stride %lld and size %lld on axis %d (%s): its byte offsets do not fit 63 bits",
          operand.name, ll(stride), ll(tensor.sizes[axis]), axis, operand.axes[axis]);
    }
  }
  return {};
}

Status check_last_axis_contiguous(const Operand &operand) {
  const flydsl_aot_tensor &tensor = *operand.tensor;
  const int axis = tensor.rank - 1;
  if (tensor.sizes[axis] <= 1 || tensor.strides[axis] == 1) return {};
  return error(FLYDSL_AOT_INVALID_STRIDE, "%s has stride %lld on its last axis (%s); it must be 1",
               operand.name, ll(tensor.strides[axis]), operand.axes[axis]);
}

Status check_no_self_overlap(const Operand &operand) {
  const flydsl_aot_tensor &tensor = *operand.tensor;
  if (empty(tensor)) return {};
  int axes[FLYDSL_AOT_MAX_RANK];
  const int count = sorted_axes(tensor, false, axes);
  int64_t span = 1;  // elements spanned by the axes looked at so far
  for (int i = 0; i < count; ++i) {
    const int axis = axes[i];
    if (tensor.strides[axis] < span) {
      return error(FLYDSL_AOT_INVALID_STRIDE,
                   "%s overlaps itself: stride %lld on axis %d (%s, size %lld) is below the span "
                   "%lld of the axes "
                   "with smaller strides",
                   operand.name, ll(tensor.strides[axis]), axis, operand.axes[axis],
                   ll(tensor.sizes[axis]), ll(span));
    }
    span += tensor.strides[axis] * (tensor.sizes[axis] - 1);
  }
  return {};
}

Status check_data(const Operand &operand, bool query) {
  const flydsl_aot_tensor &tensor = *operand.tensor;
  if (empty(tensor)) return {};
  if (!tensor.data) {
    if (query) return {};
    return error(FLYDSL_AOT_INVALID_POINTER, "%s has data NULL but is not empty", operand.name);
  }
  const uint32_t element_bytes = dtype_bytes(tensor.dtype);
  if (reinterpret_cast<uint64_t>(tensor.data) % element_bytes != 0) {
    return error(FLYDSL_AOT_INVALID_POINTER,
                 "%s has data %p, not aligned to its element size of %u bytes", operand.name,
                 tensor.data, element_bytes);
  }
  if (const Range range = range_of(tensor); range.end < range.begin) {
    return error(FLYDSL_AOT_INVALID_POINTER,
                 "%s with data %p runs past the end of the address space", operand.name,
                 tensor.data);
  }
  return {};
}

Status check_no_overlap(const Operand &output, const Operand &other) {
  if (empty(*output.tensor) || empty(*other.tensor)) return {};
  const Range a = range_of(*output.tensor);
  const Range b = range_of(*other.tensor);
  if (a.end <= b.begin || b.end <= a.begin) return {};
  const bool certain = a.begin == b.begin ||
                       (dense(*output.tensor) && (inside(b.begin, a) || inside(b.last, a))) ||
                       (dense(*other.tensor) && (inside(a.begin, b) || inside(a.last, b)));
  if (!certain) return {};
  return error(FLYDSL_AOT_INVALID_POINTER,
               "%s overlaps %s: bytes [0x%llx, 0x%llx) and [0x%llx, 0x%llx)", output.name,
               other.name, static_cast<unsigned long long>(a.begin),
               static_cast<unsigned long long>(a.end), static_cast<unsigned long long>(b.begin),
               static_cast<unsigned long long>(b.end));
}

}  // namespace complete

bool same_view(const flydsl_aot_tensor &a, const flydsl_aot_tensor &b) {
  CallRecording::compares(a.data);
  if (!a.data || a.data != b.data || a.dtype != b.dtype || a.rank != b.rank) return false;
  for (int axis = 0; axis < a.rank; ++axis) {
    if (a.sizes[axis] != b.sizes[axis] || walked_stride(a, axis) != walked_stride(b, axis))
      return false;
  }
  return true;
}

}  // namespace flydsl
