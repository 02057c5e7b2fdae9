#include "tools/verify/norm_verify.h"

#include <type_traits>

#include "tools/verify/operator_call.h"

namespace flydsl::verify {
namespace {

std::string check_wanted(const NormSpec &spec, const NormReference &reference) {
  if (spec.want_out.empty()) return "";
  for (size_t i = 0; i < reference.y.size(); ++i) {
    const size_t row = i / static_cast<size_t>(spec.length);
    const double wanted = spec.want_out[std::min(row, spec.want_out.size() - 1)];
    if (!differs(reference.y[i], wanted)) continue;
    char text[160];
    std::snprintf(text, sizeof text,
                  "the oracle's element %zu is %.9g, but the case says %.9g: one is wrong", i,
                  reference.y[i], wanted);
    return text;
  }
  return "";
}

bool same_bits(const NormResult &a, const NormResult &b) {
  return a.out.bits == b.out.bits && a.sum.bits == b.sum.bits && a.scale.bits == b.scale.bits &&
         a.mean.bits == b.mean.bits && a.rstd.bits == b.rstd.bits;
}

template <class Params, class Query, class Call>
NormResult call_with(flydsl_aot_handle *handle, const NormSpec &spec, const NormNumbers &numbers,
                     Query query, Call function) {
  constexpr bool kCentred = std::is_same_v<Params, flydsl_aot_layer_norm_params>;
  OperatorCall call(handle, spec.seed);
  std::vector<int64_t> rows;
  if (spec.outer) rows.push_back(spec.outer);
  rows.push_back(spec.rows);
  std::vector<int64_t> all = rows, scales = rows;
  all.push_back(spec.length);
  if (spec.block_scales) scales.push_back(spec.scales_of_row());
  const int axes = static_cast<int>(rows.size());

  Params params{};
  params.eps = spec.eps;
  DeviceTensor &x = call.input("x", numbers.x, all, spec.x_place, axes);
  params.x = x.tensor();
  params.weight_offset = spec.unit_offset ? 1.0f : 0.0f;
  if (spec.weight_dtype != FLYDSL_AOT_DTYPE_INVALID) {
    params.weight =
        call.input("weight", numbers.weight, {spec.length}, spec.weight_place, 0).tensor();
  }
  DeviceTensor *residual = nullptr, *sum = nullptr, *scale = nullptr, *mean = nullptr;
  DeviceTensor *rstd = nullptr;
  if constexpr (kCentred) {
    if (spec.bias_dtype != FLYDSL_AOT_DTYPE_INVALID)
      params.bias = call.input("bias", numbers.bias, {spec.length}, spec.bias_place, 0).tensor();
  }
  if (spec.residual) {
    residual = &call.input("residual", numbers.residual, all, spec.residual_place, axes);
    params.residual = residual->tensor();
  }
  if (spec.sum == SumPlace::kOwn) sum = &call.output("sum", spec.dtype, all, spec.sum_place, axes);
  if (spec.sum == SumPlace::kX) sum = &x;
  if (spec.sum == SumPlace::kResidual) sum = residual;
  if (sum) {
    call.changes(*sum);
    params.sum = sum->tensor();
  }
  DeviceTensor *out = &x;
  if (!spec.out_in_x) out = &call.output("out", spec.out_dtype, all, spec.out_place, axes);
  call.changes(*out);
  params.out = out->tensor();
  if (spec.quantised()) {
    scale = &call.output("out_scale", spec.block_scales ? FLYDSL_AOT_E8M0 : FLYDSL_AOT_FP32, scales,
                         spec.scale_place, static_cast<int>(scales.size()));
    params.out_scale = scale->tensor();
  }
  if constexpr (kCentred) {
    if (spec.mean) {
      mean = &call.output("mean", FLYDSL_AOT_FP32, rows, spec.mean_place, axes);
      params.mean = mean->tensor();
    }
  }
  if (spec.rstd) {
    rstd = &call.output("rstd", FLYDSL_AOT_FP32, rows, spec.rstd_place, axes);
    params.rstd = rstd->tensor();
  }

  NormResult result;
  call.run(&params, query, function, &result);
  if (result.device_failed) return result;
  result.out = Elements::taken_from(*out);
  if (sum) result.sum = Elements::taken_from(*sum);
  if (scale) result.scale = Elements::taken_from(*scale);
  if (mean) result.mean = Elements::taken_from(*mean);
  if (rstd) result.rstd = Elements::taken_from(*rstd);
  return result;
}

}  // namespace

NormResult call_norm(flydsl_aot_handle *handle, const NormSpec &spec, const NormNumbers &numbers) {
  if (spec.centred) {
    return call_with<flydsl_aot_layer_norm_params>(
        handle, spec, numbers, flydsl_aot_layer_norm_query, flydsl_aot_layer_norm);
  }
  return call_with<flydsl_aot_rms_norm_params>(handle, spec, numbers, flydsl_aot_rms_norm_query,
                                               flydsl_aot_rms_norm);
}

Outcome verify_norm_case(flydsl_aot_handle *handle, const NormSpec &spec) {
  Outcome outcome;
  const NormNumbers numbers = norm_numbers(spec);
  const NormResult result = call_norm(handle, spec, numbers);
  outcome.device_failed = result.device_failed;
  if (!call_is_to_be_judged(spec.expect, result, &outcome.fault)) return outcome;
  const NormReference reference = norm_reference(spec, numbers);
  const NormVerdict verdict = judge_norm(spec, reference, result);
  char text[96];
  if (spec.centred) {
    std::snprintf(text, sizeof text, "out %.3f mean %.3f rstd %.3f ", verdict.out, verdict.mean,
                  verdict.rstd);
  } else {
    std::snprintf(text, sizeof text, "out %.3f rstd %.3f ", verdict.out, verdict.rstd);
  }
  outcome.numbers = text + result.kernel;
  outcome.fault = verdict.fault;
  if (outcome.fault.empty()) outcome.fault = check_wanted(spec, reference);
  for (int64_t n = 1; n < spec.repeat && outcome.fault.empty(); ++n) {
    if (!same_bits(result, call_norm(handle, spec, numbers)))
      outcome.fault = "call " + std::to_string(n + 1) + " gave other bits than the first";
  }
  return outcome;
}

}  // namespace flydsl::verify
