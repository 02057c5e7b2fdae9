#include "v2src/aotriton/tensors.h"

#include <algorithm>

namespace flydsl::aotriton {

flydsl_aot_dtype dtype_of(::aotriton::DType dtype) {
  switch (dtype) {
    case ::aotriton::kFloat32:
      return FLYDSL_AOT_FP32;
    case ::aotriton::kFloat16:
      return FLYDSL_AOT_FP16;
    case ::aotriton::kBFloat16:
      return FLYDSL_AOT_BF16;
    case ::aotriton::kInt32:
      return FLYDSL_AOT_INT32;
    case ::aotriton::kInt64:
      return FLYDSL_AOT_INT64;
    default:
      return FLYDSL_AOT_DTYPE_INVALID;
  }
}

flydsl_aot_tensor without_first_axis(const flydsl_aot_tensor &tensor) {
  flydsl_aot_tensor result{};
  result.data = tensor.data;
  result.dtype = tensor.dtype;
  result.rank = tensor.rank - 1;
  std::copy_n(tensor.sizes + 1, result.rank, result.sizes);
  std::copy_n(tensor.strides + 1, result.rank, result.strides);
  return result;
}

void narrow(flydsl_aot_tensor *tensor, int axis, int64_t size) {
  if (tensor->rank > axis) tensor->sizes[axis] = std::min(tensor->sizes[axis], size);
}

}  // namespace flydsl::aotriton
