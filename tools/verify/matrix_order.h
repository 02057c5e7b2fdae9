// Matrices whose last two axes lie in memory in the other order.
#pragma once

#include <cstdint>
#include <utility>

#include "flydsl_aot/types.h"

namespace flydsl::verify {

inline void swap_last_axes(flydsl_aot_tensor *tensor) {
  const int last = tensor->rank - 1;
  std::swap(tensor->sizes[last], tensor->sizes[last - 1]);
  std::swap(tensor->strides[last], tensor->strides[last - 1]);
}

// (matrices, rows, columns) with the rows as the fastest axis.
template <typename Vector>
Vector transposed(const Vector &of, int64_t matrices, int64_t rows, int64_t columns) {
  Vector result(of.size());
  size_t i = 0;
  for (int64_t matrix = 0; matrix < matrices; ++matrix)
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column)
        result[static_cast<size_t>((matrix * columns + column) * rows + row)] = of[i++];
  return result;
}

}  // namespace flydsl::verify
