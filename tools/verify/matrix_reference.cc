#include "tools/verify/matrix_reference.h"

#include <algorithm>
#include <cmath>

#include "flydsl_aot/gemm.h"

namespace flydsl::verify {

Dot dot(const MatrixView &a, int64_t row, const MatrixView &b, int64_t column, int64_t begin,
        int64_t end) {
  Dot result;
  for (int64_t k = begin; k < end; ++k) {
    const double product = a.at(row, k) * b.at(k, column);
    result.sum += product;
    result.magnitude += std::fabs(product);
  }
  return result;
}

double accumulation_error(int64_t k) {
  const double terms = static_cast<double>(k);
  return 0x1p-23 * std::min(terms, 8 * std::sqrt(terms));
}

double activation_of(int32_t activation, double x) {
  switch (activation) {
    case FLYDSL_AOT_ACTIVATION_RELU:
      return std::isnan(x) ? x : std::max(x, 0.0);
    case FLYDSL_AOT_ACTIVATION_GELU:
      // erfc keeps the relative accuracy of large negative x, where 1 + erf cancels.
      return x / 2 * std::erfc(-x / M_SQRT2);
    case FLYDSL_AOT_ACTIVATION_GELU_TANH: {
      const double u = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
      // 1 + tanh(u), without the cancellation
      return x / 2 * (2 / (1 + std::exp(-2 * u)));
    }
    case FLYDSL_AOT_ACTIVATION_SILU:
      return x / (1 + std::exp(-x));
    default:
      return x;
  }
}

}  // namespace flydsl::verify
