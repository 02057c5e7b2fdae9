#include "tools/verify/attention_forward_verify.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tools/verify/attention_forward_verdict.h"

namespace flydsl::verify {
namespace {

// Rows that no sequence has are passed over.
std::string check_rows(const AttentionCase &c, const char *name, const std::vector<double> &wanted,
                       const std::vector<double> &got, int64_t columns) {
  if (wanted.empty()) return "";
  const int64_t rows = c.seq_q;
  if (wanted.size() != 1 && static_cast<int64_t>(wanted.size()) != rows) {
    return std::string("want_") + name + " has " + std::to_string(wanted.size()) +
           " numbers; it must have one, or one a row, " + std::to_string(rows);
  }
  for (size_t n = 0; n < got.size(); ++n) {
    const int64_t all_rows = static_cast<int64_t>(n) / columns, row = all_rows % rows;
    if (row >= c.rows_of(all_rows / rows / c.heads_q)) continue;
    const double value = wanted[wanted.size() == 1 ? 0 : static_cast<size_t>(row)];
    if (!differs(got[n], value)) continue;
    char text[200];
    std::snprintf(text, sizeof text,
                  "the oracle's %s of row %lld is %.9g, but the case says %.9g: one is wrong", name,
                  static_cast<long long>(row), got[n], value);
    return text;
  }
  return "";
}

// The same numbers where all tensors are dense and lie as they come.
AttentionCase tight(AttentionCase c) {
  if (c.lengths_k_as == Lengths::kPaged) c.lengths_k_as = Lengths::kUsed;
  for (Placement *place : {&c.place_q, &c.place_k, &c.place_v, &c.place_out, &c.place_lse,
                           &c.place_bias, &c.place_visible, &c.place_kept})
    *place = {};
  return c;
}

std::string refusal_fault(const AttentionSpec &spec, const CallResult &result) {
  const char *name = flydsl_aot_status_name(result.status);
  if (spec.expect != name)
    return "the call gave " + std::string(name) + " (" + result.message + "), not " + spec.expect;
  if (result.message.empty()) return "refused without a message";
  if (!result.outputs_untouched) return "a refused call wrote an output";
  return "";
}

}  // namespace

// Values worked out by hand have six digits or more.
bool differs(double got, double wanted) {
  if (!std::isfinite(wanted)) return !(got == wanted || (std::isnan(got) && std::isnan(wanted)));
  return !(std::fabs(got - wanted) <= 2e-6 * std::max(1.0, std::fabs(wanted)));
}

bool call_succeeded(const AttentionSpec &spec, const CallResult &result, Outcome *outcome) {
  outcome->device_failed = result.device_failed;
  outcome->fault = result.contradiction;
  if (!outcome->fault.empty()) return false;
  if (!spec.expect.empty()) {
    outcome->fault = refusal_fault(spec, result);
    return false;
  }
  if (result.status != FLYDSL_AOT_OK)
    outcome->fault = std::string(flydsl_aot_status_name(result.status)) + ": " + result.message;
  return result.status == FLYDSL_AOT_OK;
}

std::string check_wanted(const AttentionSpec &spec, const AttentionCase &c,
                         const AttentionReference &reference) {
  const std::string out = check_rows(c, "out", spec.want_out, reference.out, c.value_dim());
  return out.empty() ? check_rows(c, "lse", spec.want_lse, reference.lse, 1) : out;
}

Outcome verify_attention_case(flydsl_aot_handle *handle, const AttentionSpec &spec,
                              AttentionResult (*call)(flydsl_aot_handle *, const AttentionCase &)) {
  Outcome outcome;
  const AttentionCase c = build_attention_case(spec);
  const AttentionResult result = call(handle, c);
  if (!call_succeeded(spec, result, &outcome)) return outcome;
  const AttentionReference reference = reference_of(c);
  const Verdict verdict = judge(c, result, reference);
  char numbers[64];
  std::snprintf(numbers, sizeof numbers, "out %.3f lse %.3f ", verdict.out.worst_ratio,
                verdict.lse.worst_ratio);
  outcome.numbers = numbers + result.kernel;
  outcome.fault = verdict.fault;
  if (outcome.fault.empty()) outcome.fault = check_wanted(spec, c, reference);
  for (int64_t n = 1; n < spec.repeat && outcome.fault.empty(); ++n) {
    if (!same_bits(result, call(handle, c)))
      outcome.fault = "call " + std::to_string(n + 1) + " gave other bits than the first";
  }
  if (spec.same_when_tight && outcome.fault.empty()) {
    const AttentionCase tight_case = tight(c);
    const AttentionResult dense = call(handle, tight_case);
    // Dense keys may have a faster instance than paged ones, which rounds otherwise.
    if (dense.kernel != result.kernel && c.lengths_k_as == Lengths::kPaged)
      outcome.fault = judge(tight_case, dense, reference_of(tight_case)).fault;
    else if (dense.kernel != result.kernel)
      outcome.fault = "dense tensors ran " + dense.kernel + ", not " + result.kernel;
    else if (!same_bits(result, dense))
      outcome.fault = "dense tensors gave other bits";
  }
  return outcome;
}

}  // namespace flydsl::verify
