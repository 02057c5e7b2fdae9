// Matrix products in float64 on decoded elements, from the definition: what the oracles of the GEMM family share.
#pragma once

#include <cstdint>

namespace flydsl::verify {

// A matrix of decoded elements with any strides, in elements.
struct MatrixView {
  const double *data;
  int64_t row_stride;
  int64_t column_stride;

  double at(int64_t row, int64_t column) const {
    return data[row * row_stride + column * column_stride];
  }
};

struct Dot {
  double sum = 0;        // of a[row, k] b[k, column]
  double magnitude = 0;  // of their absolute values
};

// Over k in [begin, end), in ascending order.
Dot dot(const MatrixView &a, int64_t row, const MatrixView &b, int64_t column, int64_t begin,
        int64_t end);

// 2^-23 min(K, 8 sqrt K), times the sum of the absolute values of K products: how far a sum of products in FP32 may be off.
double accumulation_error(int64_t k);

// The functions of flydsl_aot_activation (include/flydsl_aot/gemm.h).
double activation_of(int32_t activation, double x);
// Its derivative.
double derivative_of(int32_t activation, double x);

}  // namespace flydsl::verify
