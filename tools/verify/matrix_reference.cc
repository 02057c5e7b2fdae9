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

double derivative_of(int32_t activation, double x) {
  if (std::isnan(x)) return x;
  if (std::isinf(x)) return x > 0 ? 1 : 0;
  // s + x s (1 - s) v', for x s(v) with s = 1 / (1 + exp(-v)) and 1 - s = 1 / (1 + exp(v)).
  const auto of_sigmoid = [x](double v, double slope) {
    const double s = 1 / (1 + std::exp(-v)), rest = 1 / (1 + std::exp(v));
    return s + (s == 0 || rest == 0 ? 0 : x * s * rest * slope);
  };
  switch (activation) {
    case FLYDSL_AOT_ACTIVATION_RELU:
      return x > 0 ? 1 : 0;
    case FLYDSL_AOT_ACTIVATION_GELU:
      return std::erfc(-x / M_SQRT2) / 2 + x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
    case FLYDSL_AOT_ACTIVATION_GELU_TANH: {
      const double root = 2 * std::sqrt(2 / M_PI);
      return of_sigmoid(root * (x + 0.044715 * x * x * x), root * (1 + 3 * 0.044715 * x * x));
    }
    case FLYDSL_AOT_ACTIVATION_SILU:
      return of_sigmoid(x, 1);
    default:
      return 1;
  }
}

}  // namespace flydsl::verify
