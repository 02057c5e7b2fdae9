// topk from the definition in include/flydsl_aot/topk.h: sort all, take the first.
#include <algorithm>
#include <numeric>

#include "tools/verify/operator_call.h"
#include "tools/verify/topk_case.h"

namespace flydsl::verify {
namespace {

struct TopkResult : CallResult {
  Elements values, indices;
};

// The elements of one row of an array of `shape` along `axis`, as places in it.
class RowPlaces {
 public:
  RowPlaces(const std::vector<int64_t> &shape, size_t axis) {
    for (size_t i = 0; i < shape.size(); ++i) {
      if (i < axis) before_ *= static_cast<size_t>(shape[i]);
      if (i > axis) after_ *= static_cast<size_t>(shape[i]);
    }
    length_ = static_cast<size_t>(shape[axis]);
  }
  size_t rows() const { return before_ * after_; }
  size_t length() const { return length_; }
  size_t place(size_t row, size_t n) const {
    return (row / after_ * length_ + n) * after_ + row % after_;
  }

 private:
  size_t before_ = 1, after_ = 1, length_ = 1;
};

std::vector<int64_t> out_shape(const TopkSpec &spec) {
  std::vector<int64_t> shape = spec.shape;
  shape[spec.which_axis()] = spec.k;
  return shape;
}

TopkResult call_topk(flydsl_aot_handle *handle, const TopkSpec &spec, const Elements &x) {
  OperatorCall call(handle, spec.seed);
  flydsl_aot_topk_params params{};
  // Any axis may be the slowest in memory but the one that is looked along, which stays where it is if it is the last.
  const bool last = spec.which_axis() + 1 == spec.shape.size();
  const int axes = static_cast<int>(spec.shape.size()) - (last ? 1 : 0);
  params.x = call.input("x", x, spec.shape, spec.x_place, axes).tensor();
  DeviceTensor &values =
      call.output("values", spec.dtype, out_shape(spec), spec.values_place, axes);
  DeviceTensor &indices =
      call.output("indices", spec.index_dtype, out_shape(spec), spec.indices_place, axes);
  params.values = values.tensor();
  params.indices = indices.tensor();
  params.axis = static_cast<int32_t>(spec.axis);
  params.smallest = spec.smallest;
  params.any_order = spec.any_order;
  TopkResult result;
  call.run(&params, flydsl_aot_topk_query, flydsl_aot_topk, &result);
  if (result.device_failed) return result;
  result.values = Elements::taken_from(values);
  result.indices = Elements::taken_from(indices);
  return result;
}

std::string check_said(const std::vector<double> &said, size_t rank, double value,
                       const char *what) {
  if (said.empty() || !differs(value, said[std::min(rank, said.size() - 1)])) return "";
  return "the oracle's " + std::string(what) + " " + std::to_string(rank) + " is " +
         std::to_string(value) + ", but the case says " +
         std::to_string(said[std::min(rank, said.size() - 1)]) + ": one is wrong";
}

std::string judge(const TopkSpec &spec, const Elements &x, const TopkResult &result) {
  const RowPlaces inputs(spec.shape, spec.which_axis()),
      outputs(out_shape(spec), spec.which_axis());
  for (size_t row = 0; row < inputs.rows(); ++row) {
    std::vector<double> numbers(inputs.length());
    for (size_t n = 0; n < numbers.size(); ++n) numbers[n] = x[inputs.place(row, n)];
    const std::vector<size_t> order =
        topk_order(numbers, spec.smallest, static_cast<size_t>(spec.k));
    for (size_t rank = 0; rank < order.size(); ++rank) {
      const size_t at = outputs.place(row, rank), from = inputs.place(row, order[rank]);
      if (result.indices.bits[at] != order[rank] || result.values.bits[at] != x.bits[from]) {
        return "row " + std::to_string(row) + ", result " + std::to_string(rank) + ": " +
               std::to_string(result.values[at]) + " at index " +
               std::to_string(result.indices.bits[at]) + ", must be " + std::to_string(x[from]) +
               " at " + std::to_string(order[rank]) + ", to the bit";
      }
      if (row > 0) continue;
      std::string fault =
          check_said(spec.want_indices, rank, static_cast<double>(order[rank]), "index");
      if (fault.empty()) fault = check_said(spec.want_values, rank, x[from], "value");
      if (!fault.empty()) return fault;
    }
  }
  return "";
}

}  // namespace

std::vector<size_t> topk_order(const std::vector<double> &row, bool smallest, size_t k) {
  std::vector<size_t> order(row.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto greater = [](double a, double b) { return std::isnan(a) ? !std::isnan(b) : a > b; };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return smallest ? greater(row[b], row[a]) : greater(row[a], row[b]);
  });
  order.resize(k);
  return order;
}

Outcome verify_topk_case(flydsl_aot_handle *handle, const TopkSpec &spec) {
  Outcome outcome;
  const Elements x = topk_numbers(spec);
  const TopkResult result = call_topk(handle, spec, x);
  outcome.device_failed = result.device_failed;
  if (!call_is_to_be_judged(spec.expect, result, &outcome.fault)) return outcome;
  outcome.numbers = result.kernel;
  outcome.fault = judge(spec, x, result);
  for (int64_t n = 1; n < spec.repeat && outcome.fault.empty(); ++n) {
    const TopkResult again = call_topk(handle, spec, x);
    if (again.values.bits != result.values.bits || again.indices.bits != result.indices.bits)
      outcome.fault = "call " + std::to_string(n + 1) + " gave other bits than the first";
  }
  return outcome;
}

}  // namespace flydsl::verify
