#include "tools/verify/grouped_gemm_verify.h"

#include <cmath>
#include <cstdio>

#include "tools/verify/matrix_reference.h"
#include "tools/verify/matrix_verdict.h"
#include "tools/verify/operator_call.h"

namespace flydsl::verify {
namespace {

std::vector<double> decoded_all(const Elements &elements) {
  std::vector<double> values(elements.bits.size());
  for (size_t i = 0; i < values.size(); ++i) values[i] = elements[i];
  return values;
}

// The part of the axes of one group.
struct Part {
  int64_t first_row, rows, first_column, columns, first_k, end_k;
};

Part part_of(const GroupedGemmSpec &spec, const std::vector<int64_t> &ends, size_t group) {
  Part part{0, spec.m, 0, spec.n, 0, spec.k};
  if (spec.axis == SharedAxis::kNone) return part;
  const int64_t begin = group == 0 ? 0 : ends[group - 1], end = ends[group];
  if (spec.axis == SharedAxis::kRows) part.first_row = begin, part.rows = end - begin;
  if (spec.axis == SharedAxis::kColumns) part.first_column = begin, part.columns = end - begin;
  if (spec.axis == SharedAxis::kK) part.first_k = begin, part.end_k = end;
  return part;
}

bool wrong_by_hand(double got, double wanted) {
  return std::isfinite(wanted)
             ? !(std::fabs(got - wanted) <= 2e-6 * std::fmax(1.0, std::fabs(wanted)))
             : !(got == wanted || (std::isnan(got) && std::isnan(wanted)));
}

bool is_exact(const Values &values) {
  return values.kind == Values::kInteger;
}

}  // namespace

std::string judge_grouped_gemm(const GroupedGemmSpec &spec, const GroupedGemmNumbers &numbers,
                               const Elements &d, std::string *figures) {
  const std::vector<double> a = decoded_all(numbers.a), b = decoded_all(numbers.b);
  const std::vector<int64_t> ends = ends_of_groups(spec);
  const bool has_bias = !numbers.bias.bits.empty();
  // Sums of small integers have no error.
  const bool exact = is_exact(spec.a.values) && is_exact(spec.b.values) && !spec.varied &&
                     (!has_bias || is_exact(spec.bias));
  std::vector<bool> owned(d.bits.size());
  MatrixVerdict verdict("d", spec.d_dtype);
  for (size_t group = 0; group < static_cast<size_t>(spec.groups); ++group) {
    const auto g = static_cast<int64_t>(group);
    const Part part = part_of(spec, ends, group);
    const MatrixView of_a{a.data() + (spec.a_has_groups() ? g * spec.m * spec.k : 0), spec.k, 1};
    const MatrixView of_b{b.data() + (spec.b_has_groups() ? g * spec.k * spec.n : 0), spec.n, 1};
    for (int64_t row = part.first_row; row < part.first_row + part.rows; ++row) {
      for (int64_t column = part.first_column; column < part.first_column + part.columns;
           ++column) {
        const Dot product = dot(of_a, row, of_b, column, part.first_k, part.end_k);
        double reference = product.sum;
        double error = accumulation_error(part.end_k - part.first_k) * product.magnitude;
        if (has_bias) {
          const int64_t line = spec.bias_of_groups ? g * spec.n : 0;
          const double bias = numbers.bias[static_cast<size_t>(line + column)];
          reference += bias;
          error += 0x1p-21 * (product.magnitude + std::fabs(bias));
        }
        if (!spec.want.empty() && wrong_by_hand(reference, spec.want[0])) {
          return "the oracle's element is " + std::to_string(reference) + ", but the case says " +
                 std::to_string(spec.want[0]) + ": one is wrong";
        }
        const int64_t matrix = spec.d_has_groups() ? g * spec.m * spec.n : 0;
        const auto at = static_cast<size_t>(matrix + row * spec.n + column);
        owned[at] = true;
        verdict.judge(g, row, column, d[at], reference, exact ? 0 : error);
      }
    }
  }
  const uint32_t poison =
      flydsl_aot_dtype_bytes(spec.d_dtype) == 4 ? kOutputPoison : kOutputPoison & 0xffff;
  for (size_t at = 0; at < owned.size(); ++at) {
    if (owned[at] || d.bits[at] == poison) continue;
    return "d: element " + std::to_string(at) + ", which no group has, was written";
  }
  if (figures) *figures = verdict.numbers();
  return verdict.fault();
}

Outcome verify_grouped_gemm_case(flydsl_aot_handle *handle, const GroupedGemmSpec &spec) {
  Outcome outcome;
  const GroupedGemmNumbers numbers = grouped_gemm_numbers(spec);
  const GroupedGemmResult result = call_grouped_gemm(handle, spec, numbers);
  outcome.device_failed = result.device_failed;
  if (!call_is_to_be_judged(spec.expect, result, &outcome.fault)) return outcome;
  std::string figures;
  outcome.fault = judge_grouped_gemm(spec, numbers, result.d, &figures);
  outcome.numbers = figures + " " + result.kernel;
  for (int64_t n = 1; n < spec.repeat && outcome.fault.empty(); ++n) {
    if (call_grouped_gemm(handle, spec, numbers).d.bits != result.d.bits)
      outcome.fault = "call " + std::to_string(n + 1) + " gave other bits than the first";
  }
  return outcome;
}

}  // namespace flydsl::verify
