#include "tools/verify/scaled_gemm_verify.h"

#include <utility>

#include "tools/verify/block_scales.h"
#include "tools/verify/matrix_order.h"
#include "tools/verify/matrix_reference.h"
#include "tools/verify/matrix_verdict.h"
#include "tools/verify/operator_call.h"

namespace flydsl::verify {
namespace {

Elements elements_of(flydsl_aot_dtype dtype, const std::vector<uint8_t> &bytes) {
  Elements elements(dtype, 0);
  elements.bits.assign(bytes.begin(), bytes.end());
  return elements;
}

// The tensor (batch, rows, K), without the batch if it has none.
flydsl_aot_tensor put_operand(OperatorCall &call, const std::string &name,
                              const ScaledGemmSpec &spec, const MxOperandSpec &operand,
                              int64_t rows, const std::vector<uint8_t> &codes) {
  const bool packed = is_packed(operand.dtype);
  const int64_t length = packed ? spec.k / 2 : spec.k;
  const bool batched = spec.batches > 0 && operand.batched;
  std::vector<uint8_t> bytes = packed ? packed_pairs(codes) : codes;
  std::vector<int64_t> sizes = {rows, length};
  if (operand.order == MxOperandSpec::kAlongRows) {
    bytes = transposed(bytes, batched ? spec.batches : 1, rows, length);
    std::swap(sizes[0], sizes[1]);
  } else if (operand.order == MxOperandSpec::kStrided) {
    sizes.push_back(2);  // every other byte is another number
    std::vector<uint8_t> both;
    for (const uint8_t byte : bytes) {
      both.push_back(byte);
      both.push_back(0x7f);
    }
    bytes = both;
  }
  if (batched) sizes.insert(sizes.begin(), spec.batches);
  flydsl_aot_tensor tensor =
      call.input(name, elements_of(operand.dtype, bytes), sizes, operand.place, batched ? 2 : 1)
          .tensor();
  if (operand.order == MxOperandSpec::kAlongRows) swap_last_axes(&tensor);
  if (operand.order == MxOperandSpec::kStrided) --tensor.rank;
  if (packed) tensor.sizes[tensor.rank - 1] *= 2;
  return tensor;
}

flydsl_aot_tensor put_scale(OperatorCall &call, const std::string &name, const ScaledGemmSpec &spec,
                            const MxOperandSpec &operand, int64_t rows,
                            const std::vector<uint8_t> &scales) {
  const BlockScaleOrder order{spec.layout, operand.scales_along_rows, operand.scale_place};
  return put_block_scales(call, name, order, operand.batched ? spec.batches : 0, rows,
                          spec.blocks(), scales);
}

// Which of `all` rows, or columns, are judged.
std::vector<bool> judged_of(const ScaledGemmSpec &spec, int64_t all, uint64_t stream) {
  std::vector<bool> judged(static_cast<size_t>(all), spec.judged == 0);
  if (all > 0) judged.back() = true;
  Random random(spec.seed * 31 + stream);
  for (int64_t n = 1; n < spec.judged && all > 0; ++n)
    judged[static_cast<size_t>(random.below(all))] = true;
  return judged;
}

// Decoded and multiplied by their scales: exact.
std::vector<double> scaled_numbers(flydsl_aot_dtype dtype, const MxMatrix &matrix) {
  std::vector<double> numbers(matrix.codes.size());
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = mx_decoded(dtype, matrix.codes[i]) * e8m0_to_double(matrix.scales[i / kMxBlock]);
  return numbers;
}

std::string fault_of(const ScaledGemmSpec &spec, const ScaledGemmNumbers &numbers,
                     const ScaledGemmResult &result, std::string *figures) {
  const std::vector<double> a = scaled_numbers(spec.a.dtype, numbers.a);
  const std::vector<double> b = scaled_numbers(spec.b.dtype, numbers.b);
  MatrixVerdict verdict("d", spec.d_dtype);
  const bool biased = !numbers.bias.bits.empty();
  const std::vector<bool> rows = judged_of(spec, spec.m, 101),
                          columns = judged_of(spec, spec.n, 102);
  size_t i = 0;
  for (int64_t batch = 0; batch < spec.all_batches(); ++batch) {
    const int64_t of_a = spec.a.batched ? batch : 0, of_b = spec.b.batched ? batch : 0;
    const MatrixView view_a{a.data() + of_a * spec.m * spec.k, spec.k, 1};
    const MatrixView view_b{b.data() + of_b * spec.n * spec.k, 1, spec.k};
    for (int64_t row = 0; row < spec.m; ++row)
      for (int64_t column = 0; column < spec.n; ++column, ++i) {
        if (!rows[static_cast<size_t>(row)] && !columns[static_cast<size_t>(column)]) continue;
        const Dot product = dot(view_a, row, view_b, column, 0, spec.k);
        double reference = product.sum;
        double error = accumulation_error(spec.k) * product.magnitude + 0x1p-126;
        if (biased) {
          const double bias =
              numbers.bias[static_cast<size_t>((spec.bias_batched ? batch * spec.n : 0) + column)];
          reference += bias;
          error += 0x1p-21 * (product.magnitude + std::fabs(bias));
        }
        if (!spec.want_d.empty()) {
          const double wanted = spec.want_d[std::min(i, spec.want_d.size() - 1)];
          if (differs(reference, wanted))
            return "the oracle's element " + std::to_string(i) + " is " +
                   std::to_string(reference) + ", but the case says " + std::to_string(wanted) +
                   ": one is wrong";
        }
        verdict.judge(batch, row, column, result.d[i], reference, spec.exact ? 0 : error);
      }
  }
  *figures = verdict.numbers();
  return verdict.fault();
}

}  // namespace

ScaledGemmResult call_scaled_gemm(flydsl_aot_handle *handle, const ScaledGemmSpec &spec,
                                  const ScaledGemmNumbers &numbers) {
  OperatorCall call(handle, spec.seed);
  flydsl_aot_scaled_gemm_params params{};
  params.scale_layout = spec.layout;
  params.a = put_operand(call, "a", spec, spec.a, spec.m, numbers.a.codes);
  params.b = put_operand(call, "b", spec, spec.b, spec.n, numbers.b.codes);
  swap_last_axes(&params.b);  // (N, K) to (K, N)
  params.a_scale = put_scale(call, "a_scale", spec, spec.a, spec.m, numbers.a.scales);
  params.b_scale = put_scale(call, "b_scale", spec, spec.b, spec.n, numbers.b.scales);
  if (!numbers.bias.bits.empty() || spec.bias_dtype != FLYDSL_AOT_DTYPE_INVALID) {
    std::vector<int64_t> sizes = {spec.n};
    if (spec.bias_batched && spec.batches > 0) sizes.insert(sizes.begin(), spec.batches);
    params.bias = call.input("bias", numbers.bias, sizes, spec.bias_place, 0).tensor();
  }
  std::vector<int64_t> sizes = {spec.m, spec.n};
  if (spec.d_along_rows) std::swap(sizes[0], sizes[1]);
  if (spec.batches > 0) sizes.insert(sizes.begin(), spec.batches);
  DeviceTensor &d =
      call.output("d", spec.d_dtype, sizes, spec.d_place, static_cast<int>(sizes.size()) - 1);
  params.d = d.tensor();
  if (spec.d_along_rows) swap_last_axes(&params.d);

  ScaledGemmResult result;
  call.run(&params, flydsl_aot_scaled_gemm_query, flydsl_aot_scaled_gemm, &result);
  if (result.device_failed) return result;
  result.d = Elements::taken_from(d);
  if (spec.d_along_rows)
    result.d.bits = transposed(result.d.bits, spec.all_batches(), spec.n, spec.m);
  return result;
}

Outcome verify_scaled_gemm_case(flydsl_aot_handle *handle, const ScaledGemmSpec &spec) {
  Outcome outcome;
  const ScaledGemmNumbers numbers = scaled_gemm_numbers(spec);
  const ScaledGemmResult result = call_scaled_gemm(handle, spec, numbers);
  outcome.device_failed = result.device_failed;
  if (!call_is_to_be_judged(spec.expect, result, &outcome.fault)) return outcome;
  if (!ran_wanted_kernel(handle, spec.kernel, result, &outcome.fault)) return outcome;
  outcome.fault = fault_of(spec, numbers, result, &outcome.numbers);
  outcome.numbers += " " + result.kernel;
  for (int64_t n = 1; n < spec.repeat && outcome.fault.empty(); ++n) {
    if (call_scaled_gemm(handle, spec, numbers).d.bits != result.d.bits)
      outcome.fault = "call " + std::to_string(n + 1) + " gave other bits than the first";
  }
  return outcome;
}

}  // namespace flydsl::verify
