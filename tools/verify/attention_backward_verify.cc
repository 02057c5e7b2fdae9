#include "tools/verify/attention_backward_verify.h"

#include <cstdio>

#include "tools/verify/attention_forward_call.h"
#include "tools/verify/attention_forward_verdict.h"

namespace flydsl::verify {
namespace {

// The same numbers where all tensors are dense and lie as they come, and without a gradient that is a sum: the bias is
// not broadcast any more.
BackwardCase tight(BackwardCase c) {
  AttentionCase &f = c.forward;
  for (Placement *place :
       {&f.place_q, &f.place_k, &f.place_v, &f.place_out, &f.place_lse, &f.place_bias,
        &f.place_visible, &c.place_dout, &c.place_lse, &c.place[kDq], &c.place[kDk], &c.place[kDv],
        &c.place[kDbias], &c.place[kDsinks]})
    *place = {};
  for (const bool summed : c.dbias_sum) c.wanted[kDbias] = c.wanted[kDbias] && !summed;
  return c;
}

std::string numbers_of(const BackwardCase &c, const BackwardVerdict &verdict) {
  std::string text;
  for (size_t n = 0; n < kGradients; ++n) {
    if (!c.wanted[n]) continue;
    char part[64];
    std::snprintf(part, sizeof part, "%s %.3f (%.1e) ", kGradientNames[n],
                  verdict.judgements[n].worst_ratio, verdict.judgements[n].frobenius);
    text += part;
  }
  return text;
}

}  // namespace

bool same_bits(const BackwardResult &a, const BackwardResult &b) {
  return a.bits == b.bits;
}

std::string check_wanted(const BackwardSpec &spec, const BackwardCase &c,
                         const BackwardReference &reference) {
  for (size_t n = 0; n < kGradients; ++n) {
    const std::vector<double> &wanted = spec.wanted[n];
    if (wanted.empty()) continue;
    const GradientReference &gradient = reference.gradients[n];
    const auto columns = static_cast<size_t>(gradient.columns);
    const auto positions = static_cast<size_t>(n == kDq || n == kDbias ? c.forward.seq_q
                                               : n == kDsinks          ? c.forward.heads_q
                                                                       : c.forward.seq_k);
    const std::string name = std::string("want_") + kGradientNames[n];
    if (wanted.size() != 1 && wanted.size() != positions)
      return name + " has " + std::to_string(wanted.size()) +
             " numbers; it must have one, or one a row, " + std::to_string(positions);
    for (size_t element = 0; element < gradient.exact.size(); ++element) {
      const size_t row = element / columns;
      if (!gradient.used.empty() && !gradient.used[row]) continue;
      const double value = wanted[wanted.size() == 1 ? 0 : row % positions];
      if (!differs(gradient.exact[element], value)) continue;
      char text[200];
      std::snprintf(text, sizeof text,
                    "the oracle's %s of row %zu, column %zu is %.9g, but the case says %.9g: one "
                    "is wrong",
                    kGradientNames[n], row, element % columns, gradient.exact[element], value);
      return text;
    }
  }
  return "";
}

Outcome verify_backward_case(flydsl_aot_handle *handle, const BackwardSpec &spec) {
  Outcome outcome;
  const BackwardCase c = build_backward_case(spec);
  ForwardOutputs forward;
  if (!spec.forward.expect.empty()) {  // there may be no answer
    const int64_t rows = c.forward.batches * c.forward.heads_q * c.forward.seq_q;
    forward.out.resize(static_cast<size_t>(rows * c.forward.value_dim()));
    forward.lse.resize(static_cast<size_t>(rows));
  } else if (!c.chained) {
    forward = exact_forward(c);
  } else {
    const AttentionResult before = call_attention_forward(handle, c.forward);
    outcome.device_failed = before.device_failed;
    outcome.fault = before.contradiction.empty() ? before.message : before.contradiction;
    if (outcome.fault.empty())
      outcome.fault = judge(c.forward, before, reference_of(c.forward)).fault;
    if (!outcome.fault.empty()) {
      outcome.fault = "attention_forward: " + outcome.fault;
      return outcome;
    }
    forward = {before.out, before.lse};
  }
  const BackwardResult result = call_attention_backward(handle, c, forward);
  if (!call_succeeded(spec.forward, result, &outcome)) return outcome;
  const BackwardReference reference = backward_reference_of(c, forward);
  const BackwardVerdict verdict = judge_backward(c, result, reference);
  outcome.numbers = numbers_of(c, verdict) + result.kernels;
  outcome.fault = verdict.fault;
  if (outcome.fault.empty()) outcome.fault = check_wanted(spec, c, reference);
  for (int64_t n = 1; n < spec.forward.repeat && outcome.fault.empty(); ++n) {
    if (!same_bits(result, call_attention_backward(handle, c, forward)))
      outcome.fault = "call " + std::to_string(n + 1) + " gave other bits than the first";
  }
  if (spec.forward.same_when_tight && outcome.fault.empty()) {
    const BackwardCase tight_case = tight(c);
    const BackwardResult dense = call_attention_backward(handle, tight_case, forward);
    if (!call_succeeded(spec.forward, dense, &outcome)) return outcome;
    BackwardResult compared = result;
    if (!tight_case.wanted[kDbias]) compared.bits[kDbias].clear();
    // Aligned tensors may have faster kernels, which round otherwise.
    outcome.fault = judge_backward(tight_case, dense, reference).fault;
    const bool same_kernels = result.kernels.starts_with(dense.kernels);  // but the bias'
    if (outcome.fault.empty() && same_kernels && !same_bits(compared, dense))
      outcome.fault = "dense tensors gave other bits";
  }
  return outcome;
}

}  // namespace flydsl::verify
