#include "tools/verify/norm_backward_verify.h"

#include "tools/verify/operator_call.h"

namespace flydsl::verify {
namespace {

// What the case says that the oracle must give: a number a row, or the last one of all further rows.
std::string check_wanted(const char *what, const std::vector<double> &wanted,
                         const std::vector<double> &computed, size_t row_length) {
  for (size_t i = 0; !wanted.empty() && i < computed.size(); ++i) {
    const double must_be = wanted[std::min(i / row_length, wanted.size() - 1)];
    if (!differs(computed[i], must_be)) continue;
    char text[160];
    std::snprintf(text, sizeof text,
                  "the oracle's element %zu of %s is %.9g, but the case says %.9g: one is wrong", i,
                  what, computed[i], must_be);
    return text;
  }
  return "";
}

template <class Params, class Query, class Call>
NormBackwardResult call_with(flydsl_aot_handle *handle, const NormBackwardSpec &spec,
                             const NormBackwardNumbers &numbers, Query query, Call function) {
  constexpr bool kCentred = requires(Params params) {
    params.mean;
  };
  OperatorCall call(handle, spec.seed);
  std::vector<int64_t> rows;
  if (spec.outer) rows.push_back(spec.outer);
  rows.push_back(spec.rows);
  std::vector<int64_t> all = rows;
  all.push_back(spec.length);
  const int axes = static_cast<int>(rows.size());

  Params params{};
  DeviceTensor &x = call.input("x", numbers.x, all, spec.x_place, axes);
  DeviceTensor &dout = call.input("dout", numbers.dout, all, spec.dout_place, axes);
  params.x = x.tensor();
  params.dout = dout.tensor();
  params.rstd = call.input("rstd", numbers.rstd, rows, spec.rstd_place, axes).tensor();
  if constexpr (kCentred)
    params.mean = call.input("mean", numbers.mean, rows, spec.mean_place, axes).tensor();
  params.weight_offset = spec.unit_offset ? 1.0f : 0.0f;
  if (spec.weight_dtype != FLYDSL_AOT_DTYPE_INVALID) {
    params.weight =
        call.input("weight", numbers.weight, {spec.length}, spec.weight_place, 0).tensor();
  }
  DeviceTensor *dsum = nullptr, *dx = nullptr, *dweight = nullptr, *dbias = nullptr;
  if (spec.dsum) {
    dsum = &call.input("dsum", numbers.dsum, all, spec.dsum_place, axes);
    params.dsum = dsum->tensor();
  }
  if (spec.dx == GradientPlace::kOwn) dx = &call.output("dx", spec.dtype, all, spec.dx_place, axes);
  if (spec.dx == GradientPlace::kDout) dx = &dout;
  if (spec.dx == GradientPlace::kX) dx = &x;
  if (spec.dx == GradientPlace::kDsum) dx = dsum;
  if (dx) {
    call.changes(*dx);
    params.dx = dx->tensor();
  }
  if (spec.dweight_dtype != FLYDSL_AOT_DTYPE_INVALID) {
    dweight = &call.output("dweight", spec.dweight_dtype, {spec.length}, spec.dweight_place, 0);
    params.dweight = dweight->tensor();
  }
  if constexpr (kCentred) {
    if (spec.dbias_dtype != FLYDSL_AOT_DTYPE_INVALID) {
      dbias = &call.output("dbias", spec.dbias_dtype, {spec.length}, spec.dbias_place, 0);
      params.dbias = dbias->tensor();
    }
  }

  NormBackwardResult result;
  call.run(&params, query, function, &result);
  if (result.device_failed) return result;
  if (dx) result.dx = Elements::taken_from(*dx);
  if (dweight) result.dweight = Elements::taken_from(*dweight);
  if (dbias) result.dbias = Elements::taken_from(*dbias);
  return result;
}

}  // namespace

bool same_bits(const NormBackwardResult &a, const NormBackwardResult &b) {
  return a.dx.bits == b.dx.bits && a.dweight.bits == b.dweight.bits && a.dbias.bits == b.dbias.bits;
}

NormBackwardResult call_norm_backward(flydsl_aot_handle *handle, const NormBackwardSpec &spec,
                                      const NormBackwardNumbers &numbers) {
  if (spec.centred) {
    return call_with<flydsl_aot_layer_norm_backward_params>(handle, spec, numbers,
                                                            flydsl_aot_layer_norm_backward_query,
                                                            flydsl_aot_layer_norm_backward);
  }
  return call_with<flydsl_aot_rms_norm_backward_params>(
      handle, spec, numbers, flydsl_aot_rms_norm_backward_query, flydsl_aot_rms_norm_backward);
}

Outcome verify_norm_backward_case(flydsl_aot_handle *handle, const NormBackwardSpec &spec) {
  Outcome outcome;
  const NormBackwardNumbers numbers = norm_backward_numbers(spec);
  const NormBackwardResult result = call_norm_backward(handle, spec, numbers);
  outcome.device_failed = result.device_failed;
  if (!call_is_to_be_judged(spec.expect, result, &outcome.fault)) return outcome;
  const NormBackwardReference reference = norm_backward_reference(spec, numbers);
  const NormBackwardVerdict verdict = judge_norm_backward(spec, reference, result);
  char text[96];
  if (spec.centred) {
    std::snprintf(text, sizeof text, "dx %.3f dweight %.3f dbias %.3f ", verdict.dx,
                  verdict.dweight, verdict.dbias);
  } else {
    std::snprintf(text, sizeof text, "dx %.3f dweight %.3f ", verdict.dx, verdict.dweight);
  }
  outcome.numbers = text + result.kernel;
  outcome.fault = verdict.fault;
  const auto length = static_cast<size_t>(spec.length);
  if (outcome.fault.empty()) outcome.fault = check_wanted("dx", spec.want_dx, reference.dx, length);
  if (outcome.fault.empty())
    outcome.fault = check_wanted("dweight", spec.want_dweight, reference.dweight, length);
  for (int64_t n = 1; n < spec.repeat && outcome.fault.empty(); ++n) {
    if (!same_bits(result, call_norm_backward(handle, spec, numbers)))
      outcome.fault = "call " + std::to_string(n + 1) + " gave other bits than the first";
  }
  return outcome;
}

}  // namespace flydsl::verify
