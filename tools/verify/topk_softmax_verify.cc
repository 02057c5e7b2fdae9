// topk_softmax from the definition in include/flydsl_aot/topk_softmax.h: sort all, take the first, in double.
#include <algorithm>
#include <cmath>

#include "tools/verify/operator_call.h"
#include "tools/verify/topk_case.h"

namespace flydsl::verify {
namespace {

struct GateResult : CallResult {
  Elements weights, indices;
};

std::vector<int64_t> out_shape(const TopkSpec &spec) {
  std::vector<int64_t> shape = spec.shape;
  shape.back() = spec.k;
  return shape;
}

GateResult call_topk_softmax(flydsl_aot_handle *handle, const TopkSpec &spec, const Elements &x) {
  OperatorCall call(handle, spec.seed);
  flydsl_aot_topk_softmax_params params{};
  const int rank = static_cast<int>(spec.shape.size());
  params.x = call.input("x", x, spec.shape, spec.x_place, rank - 1).tensor();
  DeviceTensor &weights =
      call.output("weights", spec.weights_dtype, out_shape(spec), spec.values_place, rank);
  DeviceTensor &indices =
      call.output("indices", spec.index_dtype, out_shape(spec), spec.indices_place, rank);
  params.weights = weights.tensor();
  params.indices = indices.tensor();
  params.chosen_only = spec.chosen_only;
  GateResult result;
  call.run(&params, flydsl_aot_topk_softmax_query, flydsl_aot_topk_softmax, &result);
  if (result.device_failed) return result;
  result.weights = Elements::taken_from(weights);
  result.indices = Elements::taken_from(indices);
  return result;
}

// What the header says of a weight; the exponential before the division may have been flushed.
double bound_of(flydsl_aot_dtype dtype, double weight, double below_max) {
  const double relative = weight == 0 ? 0 : (16 + 2 * below_max) * 0x1p-23;
  return weight * relative + half_ulp(dtype, weight) + 0x1p-126;
}

std::string judge(const TopkSpec &spec, const Elements &x, const GateResult &result) {
  const auto length = static_cast<size_t>(spec.shape.back()), k = static_cast<size_t>(spec.k);
  const size_t rows = length == 0 ? 0 : x.bits.size() / length;
  for (size_t row = 0; row < rows; ++row) {
    std::vector<double> numbers(length);
    for (size_t n = 0; n < length; ++n) numbers[n] = x[row * length + n];
    const std::vector<size_t> order = topk_order(numbers, false, k);
    double largest = -INFINITY, sum = 0;
    for (const double number : numbers)
      largest = std::isnan(number) || number > largest ? number : largest;
    if (spec.chosen_only) {
      for (const size_t n : order) sum += std::exp(numbers[n] - largest);
    } else {
      for (const double number : numbers) sum += std::exp(number - largest);
    }
    bool is_nan = std::isinf(largest);
    for (const double number : numbers) is_nan |= std::isnan(number);
    for (size_t rank = 0; rank < k; ++rank) {
      const size_t at = row * k + rank;
      const std::string where =
          "row " + std::to_string(row) + ", result " + std::to_string(rank) + ": ";
      if (result.indices.bits[at] != order[rank]) {
        return where + "index " + std::to_string(result.indices.bits[at]) + ", must be " +
               std::to_string(order[rank]);
      }
      const double weight = is_nan ? NAN : std::exp(numbers[order[rank]] - largest) / sum;
      const double given = result.weights[at];
      const bool right = is_nan
                             ? std::isnan(given)
                             : std::abs(given - weight) <= bound_of(spec.weights_dtype, weight,
                                                                    largest - numbers[order[rank]]);
      if (!right)
        return where + "weight " + std::to_string(given) + ", must be " + std::to_string(weight);
      if (row > 0) continue;
      if (!spec.want_indices.empty() &&
          spec.want_indices[std::min(rank, spec.want_indices.size() - 1)] !=
              static_cast<double>(order[rank]))
        return where + "the oracle's index is " + std::to_string(order[rank]) +
               ", but the case says another: one is wrong";
      if (spec.want_values.empty()) continue;
      const double said = spec.want_values[std::min(rank, spec.want_values.size() - 1)];
      if (std::isnan(said) != is_nan || std::abs(said - weight) > 1e-6)
        return where + "the oracle's weight is " + std::to_string(weight) + ", but the case says " +
               std::to_string(said) + ": one is wrong";
    }
  }
  return "";
}

}  // namespace

Outcome verify_topk_softmax_case(flydsl_aot_handle *handle, const TopkSpec &spec) {
  Outcome outcome;
  const Elements x = topk_numbers(spec);
  const GateResult result = call_topk_softmax(handle, spec, x);
  outcome.device_failed = result.device_failed;
  if (!call_is_to_be_judged(spec.expect, result, &outcome.fault)) return outcome;
  outcome.numbers = result.kernel;
  outcome.fault = judge(spec, x, result);
  for (int64_t n = 1; n < spec.repeat && outcome.fault.empty(); ++n) {
    const GateResult again = call_topk_softmax(handle, spec, x);
    if (again.weights.bits != result.weights.bits || again.indices.bits != result.indices.bits)
      outcome.fault = "call " + std::to_string(n + 1) + " gave other bits than the first";
  }
  return outcome;
}

}  // namespace flydsl::verify
