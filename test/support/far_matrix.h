// Matrices whose offsets pass 2^32, alone or many.
#pragma once

#include <utility>
#include <vector>

#include "test/support/far_tensor.h"
#include "tools/verify/reals.h"

namespace flydsl::test {

// (batch, rows, columns) of bf16, columns contiguous, the axis `far` of the first two with a stride past 2^32 elements in all.
class FarMatrix {
 public:
  FarMatrix(int64_t batch, int64_t rows, int64_t columns, int far)
      : memory_({1, batch, rows, columns}, far + 1) {}
  void set(const verify::Elements &elements) {
    memory_.set(std::vector<uint16_t>(elements.bits.begin(), elements.bits.end()));
  }
  std::vector<uint16_t> get() const { return memory_.get(); }
  // Of rank 3, or without the batch 2.
  flydsl_aot_tensor view(int32_t rank = 3) const {
    flydsl_aot_tensor view = memory_.tensor();
    view.rank = rank;
    for (int axis = 0; axis < rank; ++axis) {
      view.sizes[axis] = view.sizes[axis + 4 - rank];
      view.strides[axis] = view.strides[axis + 4 - rank];
    }
    return view;
  }
  flydsl_aot_tensor transposed(int32_t rank = 3) const {
    flydsl_aot_tensor result = view(rank);
    std::swap(result.sizes[rank - 2], result.sizes[rank - 1]);
    std::swap(result.strides[rank - 2], result.strides[rank - 1]);
    return result;
  }

 private:
  FarTensor memory_;
};

inline verify::Elements transposed(const verify::Elements &elements, int64_t batches, int64_t rows,
                                   int64_t columns) {
  verify::Elements result(elements.dtype, elements.bits.size());
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column)
        result.bits[static_cast<size_t>((b * columns + column) * rows + row)] =
            elements.bits[static_cast<size_t>((b * rows + row) * columns + column)];
  return result;
}

}  // namespace flydsl::test
