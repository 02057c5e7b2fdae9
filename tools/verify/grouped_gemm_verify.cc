#include "tools/verify/grouped_gemm_verify.h"

#include <cmath>
#include <cstdio>

#include "tools/verify/matrix_reference.h"
#include "tools/verify/matrix_verdict.h"
#include "tools/verify/mx_format.h"
#include "tools/verify/operator_call.h"

namespace flydsl::verify {
namespace {

// (matrices, rows, K) as numbers, with their scales: exact.
std::vector<double> decoded_a(const Elements &elements, const std::vector<uint8_t> &scales) {
  std::vector<double> values(elements.bits.size());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = elements[i] * (scales.empty() ? 1.0 : e8m0_to_double(scales[i / kMxBlock]));
  return values;
}
// The same of (matrices, K, columns), whose scales are (matrices, columns, K / 32).
std::vector<double> decoded_b(const Elements &elements, const std::vector<uint8_t> &scales,
                              int64_t k, int64_t columns) {
  std::vector<double> values(elements.bits.size());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = elements[i];
    if (scales.empty()) continue;
    const auto at = static_cast<int64_t>(i);
    const int64_t matrix = at / (k * columns), block = at / columns % k / kMxBlock;
    const int64_t scale = (matrix * columns + at % columns) * (k / kMxBlock) + block;
    values[i] *= e8m0_to_double(scales[static_cast<size_t>(scale)]);
  }
  return values;
}

// Which rows, or columns, of a group are judged.
std::vector<bool> judged_of(const GroupedGemmSpec &spec, int64_t count, uint64_t stream) {
  std::vector<bool> judged(static_cast<size_t>(count), spec.judged == 0);
  if (count > 0) judged.back() = true;
  Random random(spec.seed * 31 + stream);
  for (int64_t n = 1; n < spec.judged && count > 0; ++n)
    judged[static_cast<size_t>(random.below(count))] = true;
  return judged;
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

// Sums of such numbers have no error; with scales as far as they differ by 2^4 at most.
bool is_exact(const Values &values) {
  return values.kind == Values::kInteger;
}
bool is_exact(const GroupedGemmSpec &spec, const GroupedOperand &operand) {
  const bool alike = operand.scale_high - operand.scale_low <= 4 && operand.zero_scales == 0;
  return is_exact(operand.values) && !operand.any_bits && (!spec.has_scales() || alike);
}

}  // namespace

std::string judge_grouped_gemm(const GroupedGemmSpec &spec, const GroupedGemmNumbers &numbers,
                               const Elements &d, std::string *figures) {
  const std::vector<double> a = decoded_a(numbers.a, numbers.a_scale);
  const std::vector<double> b = decoded_b(numbers.b, numbers.b_scale, spec.k, spec.n);
  const std::vector<int64_t> ends = ends_of_groups(spec);
  const bool has_bias = !numbers.bias.bits.empty();
  const bool exact = is_exact(spec, spec.a) && is_exact(spec, spec.b) && !spec.varied &&
                     (!has_bias || is_exact(spec.bias));
  std::vector<bool> owned(d.bits.size());
  MatrixVerdict verdict("d", spec.d_dtype);
  for (size_t group = 0; group < static_cast<size_t>(spec.groups); ++group) {
    const auto g = static_cast<int64_t>(group);
    const Part part = part_of(spec, ends, group);
    const MatrixView of_a{a.data() + (spec.a_has_groups() ? g * spec.m * spec.k : 0), spec.k, 1};
    const MatrixView of_b{b.data() + (spec.b_has_groups() ? g * spec.k * spec.n : 0), spec.n, 1};
    const std::vector<bool> rows = judged_of(spec, part.rows, 101 + group),
                            columns = judged_of(spec, part.columns, 1'000'003 + group);
    for (int64_t row = part.first_row; row < part.first_row + part.rows; ++row) {
      for (int64_t column = part.first_column; column < part.first_column + part.columns;
           ++column) {
        const int64_t matrix = spec.d_has_groups() ? g * spec.m * spec.n : 0;
        const auto at = static_cast<size_t>(matrix + row * spec.n + column);
        owned[at] = true;
        if (!rows[static_cast<size_t>(row - part.first_row)] &&
            !columns[static_cast<size_t>(column - part.first_column)])
          continue;
        const Dot product = dot(of_a, row, of_b, column, part.first_k, part.end_k);
        double reference = product.sum;
        double error = accumulation_error(part.end_k - part.first_k) * product.magnitude +
                       (spec.has_scales() ? 0x1p-126 : 0);
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
  if (!ran_wanted_kernel(handle, spec.kernel, result, &outcome.fault)) return outcome;
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
