// TensorViews as the C ABI's tensors.
#pragma once

#include "flydsl_aot/types.h"
#include "v2src/aotriton/call.h"

namespace flydsl::aotriton {

flydsl_aot_dtype dtype_of(::aotriton::DType dtype);

// Present also where the memory is null: an empty tensor.
template <int Rank>
flydsl_aot_tensor required(const TensorView<Rank> &view) {
  flydsl_aot_tensor tensor{};
  tensor.data = view.data_ptr();
  tensor.dtype = dtype_of(view.dtype());
  tensor.rank = Rank;
  for (int axis = 0; axis < Rank; ++axis) {
    tensor.sizes[axis] = static_cast<int64_t>(view.size(axis));
    tensor.strides[axis] = static_cast<int64_t>(view.stride(axis));
  }
  return tensor;
}

// Absent where the memory is null.
template <int Rank>
flydsl_aot_tensor optional(const TensorView<Rank> &view) {
  return view ? required(view) : flydsl_aot_tensor{};
}

// Without its first axis, at index 0 of it.
flydsl_aot_tensor without_first_axis(const flydsl_aot_tensor &tensor);

// The first `size` of an axis, if it has more.
void narrow(flydsl_aot_tensor *tensor, int axis, int64_t size);

}  // namespace flydsl::aotriton
