// The float64 oracle of gemm, from the definition and the error bound in include/flydsl_aot/gemm.h.
#include <cmath>

#include "tools/verify/gemm_case.h"
#include "tools/verify/matrix_reference.h"

namespace flydsl::verify {
namespace {

// Element of a dense tensor with its own number of batches.
double element(const GemmTensor &tensor, const Elements &elements, int64_t batch, int64_t of_matrix,
               int64_t place) {
  const int64_t first = tensor.batches == GemmTensor::kAll ? batch * of_matrix : 0;
  return elements[static_cast<size_t>(first + place)];
}

}  // namespace

std::vector<double> gemm_row_of_a(const GemmSpec &spec, const GemmNumbers &numbers, int64_t batch,
                                  int64_t row) {
  std::vector<double> result(static_cast<size_t>(spec.k));
  for (int64_t k = 0; k < spec.k; ++k)
    result[static_cast<size_t>(k)] =
        element(spec.a, numbers.a, batch, spec.m * spec.k, row * spec.k + k);
  return result;
}

std::vector<double> gemm_column_of_b(const GemmSpec &spec, const GemmNumbers &numbers,
                                     int64_t batch, int64_t column) {
  std::vector<double> result(static_cast<size_t>(spec.k));
  for (int64_t k = 0; k < spec.k; ++k)
    result[static_cast<size_t>(k)] =
        element(spec.b, numbers.b, batch, spec.k * spec.n, k * spec.n + column);
  return result;
}

GemmElement gemm_element(const GemmSpec &spec, const GemmNumbers &numbers,
                         const std::vector<double> &a, const std::vector<double> &b, int64_t batch,
                         int64_t row, int64_t column) {
  const int64_t elements = spec.m * spec.n, place = row * spec.n + column;
  Dot sum;
  if (spec.alpha != 0) sum = dot({a.data(), 0, 1}, 0, {b.data(), 1, 0}, 0, 0, spec.k);
  double factor = static_cast<double>(spec.alpha);
  if (spec.a_descale.present)
    factor *= element(spec.a_descale, numbers.a_descale, batch, spec.a_descale_one ? 1 : spec.m,
                      spec.a_descale_one ? 0 : row);
  if (spec.b_descale.present)
    factor *= element(spec.b_descale, numbers.b_descale, batch, spec.b_descale_one ? 1 : spec.n,
                      spec.b_descale_one ? 0 : column);
  GemmElement result{};
  result.z = spec.alpha == 0 ? 0 : factor * sum.sum;
  const double magnitude = std::fabs(factor) * sum.magnitude;
  double terms = magnitude;
  const auto add = [&](double term) {
    result.z += term;
    terms += std::fabs(term);
  };
  if (spec.beta != 0)
    add(static_cast<double>(spec.beta) * element(spec.c, numbers.c, batch, elements, place));
  if (spec.bias_m.present) add(element(spec.bias_m, numbers.bias_m, batch, spec.m, row));
  if (spec.bias_n.present) add(element(spec.bias_n, numbers.bias_n, batch, spec.n, column));
  const bool only_products = spec.alpha == 1 && spec.beta == 0 && !spec.bias_m.present &&
                             !spec.bias_n.present && !spec.a_descale.present &&
                             !spec.b_descale.present;
  result.z_error = accumulation_error(spec.k) * magnitude + (only_products ? 0 : 0x1p-21 * terms);

  const double activated =
      spec.z.present
          ? derivative_of(spec.activation, element(spec.z, numbers.z, batch, elements, place)) *
                result.z
          : activation_of(spec.activation, result.z);
  const double after_z = spec.z.present ? result.z : activated;
  const bool smooth = spec.activation > FLYDSL_AOT_ACTIVATION_RELU;
  result.d = activated;
  result.d_error = result.z_error;
  if (smooth) result.d_error *= 1.13;
  double more = smooth ? std::fabs(after_z) : 0;
  if (spec.residual.present) {
    const double residual = element(spec.residual, numbers.residual, batch, elements, place);
    result.d += residual;
    more = std::fabs(after_z) + std::fabs(residual);
  }
  if (spec.d_scale.present) {
    const double scale = numbers.d_scale[0];
    if (more == 0) more = std::fabs(result.d);
    result.d *= scale;
    result.d_error *= std::fabs(scale);
    more *= std::fabs(scale);
  }
  result.d_error += 0x1p-20 * more;
  if (spec.exact) result.z_error = result.d_error = 0;
  return result;
}

GemmSumValue gemm_sum(const GemmSpec &spec, const GemmNumbers &numbers, const Elements &d,
                      size_t kind, int64_t batch, int64_t place) {
  const auto [name, of, of_rows] = kGemmSums[kind];
  const int64_t rows = of == 'b' ? spec.k : spec.m, columns = of == 'a' ? spec.k : spec.n;
  const Elements &elements = of == 'd' ? d : of == 'a' ? numbers.a : numbers.b;
  const GemmTensor &matrix = of == 'd' ? spec.d : of == 'a' ? spec.a : spec.b;
  const bool all = !spec.batched || spec.sums[kind].batches == GemmTensor::kNone;
  const int64_t matrices = matrix.batches == GemmTensor::kAll ? spec.batches : 1;
  const int64_t first = all || matrices == 1 ? 0 : batch, last = all ? matrices : first + 1;
  double sum = 0, magnitude = 0;
  for (int64_t n = first; n < last; ++n) {
    for (int64_t i = 0; i < (of_rows ? columns : rows); ++i) {
      const int64_t at = of_rows ? place * columns + i : i * columns + place;
      const double x = elements[static_cast<size_t>(n * rows * columns + at)];
      sum += x;
      magnitude += std::fabs(x);
    }
  }
  const int64_t terms = (last - first) * (of_rows ? columns : rows);
  return {sum, spec.exact ? 0 : accumulation_error(terms) * magnitude};
}

}  // namespace flydsl::verify
