#include "tools/verify/attention_backward_verdict.h"

#include <algorithm>
#include <bit>

#include "tools/verify/attention_forward_verdict.h"
#include "tools/verify/attention_terms.h"
#include "tools/verify/float16.h"

namespace flydsl::verify {
namespace {

double to_bf16(double value) {
  return bf16_to_float(float_to_bf16(static_cast<float>(value)));
}
double to_fp16(double value) {
  return fp16_to_float(float_to_fp16(static_cast<float>(value)));
}
double to_fp32(double value) {
  return static_cast<float>(value);
}

using Rounding = double (*)(double);

Rounding rounding_to(flydsl_aot_dtype dtype) {
  return dtype == FLYDSL_AOT_BF16 ? to_bf16 : dtype == FLYDSL_AOT_FP16 ? to_fp16 : to_fp32;
}

double unit_of(flydsl_aot_dtype dtype) {
  return dtype == FLYDSL_AOT_BF16 ? 0x1p-8 : dtype == FLYDSL_AOT_FP16 ? 0x1p-11 : 0x1p-24;
}

// Half the smallest subnormal.
double tiny_of(flydsl_aot_dtype dtype) {
  return dtype == FLYDSL_AOT_BF16 ? 0x1p-134 : dtype == FLYDSL_AOT_FP16 ? 0x1p-25 : 0x1p-149;
}

// Heads of one batch in float64, its rows in use.
std::vector<double> part(flydsl_aot_dtype dtype, const std::vector<uint16_t> &values, int64_t batch,
                         int64_t heads, int64_t positions, int64_t length, int64_t channels) {
  std::vector<double> result;
  result.reserve(static_cast<size_t>(heads * length * channels));
  for (int64_t h = 0; h < heads; ++h) {
    const int64_t head = (batch * heads + h) * positions;
    for (int64_t n = head * channels; n < (head + length) * channels; ++n)
      result.push_back(to_float(dtype, values[static_cast<size_t>(n)]));
  }
  return result;
}

BackwardProblem problem_of(const BackwardCase &c, int64_t b) {
  const AttentionCase &f = c.forward;
  BackwardProblem p;
  p.heads_q = f.heads_q;
  p.heads_kv = f.heads_kv;
  p.rows = f.rows_of(b);
  p.keys = f.keys_of(b);
  p.head_dim = f.head_dim;
  p.value_dim = f.value_dim();
  p.q = part(f.dtype, f.q, b, f.heads_q, f.seq_q, p.rows, p.head_dim);
  p.k = part(f.dtype, f.k, b, f.heads_kv, f.seq_k, p.keys, p.head_dim);
  p.v = part(f.dtype, f.v, b, f.heads_kv, f.seq_k, p.keys, p.value_dim);
  p.dout = part(f.dtype, c.dout, b, f.heads_q, f.seq_q, p.rows, p.value_dim);
  p.scale = static_cast<double>(f.scale);
  p.mask = f.mask;
  p.terms = terms_of(f, b);
  p.want_score_gradient = c.wanted[kDbias];
  return p;
}

// Rows (heads, length) of one batch to their place in (B, heads, positions).
void put(std::vector<double> &to, const std::vector<double> &from, int64_t batch, int64_t heads,
         int64_t positions, int64_t length, int64_t columns) {
  for (int64_t h = 0; h < heads; ++h)
    std::copy_n(from.begin() + h * length * columns, length * columns,
                to.begin() + (batch * heads + h) * positions * columns);
}

// Adds the scores' gradients (Hq, rows, keys) of one batch to dbias, whose axes may be sums.
void add_scores(const BackwardCase &c, std::vector<double> &to, const std::vector<double> &from,
                int64_t batch) {
  const AttentionCase &f = c.forward;
  const std::vector<int64_t> sizes = c.dbias_sizes();
  const int64_t rows = f.rows_of(batch), keys = f.keys_of(batch);
  for (int64_t h = 0; h < f.heads_q; ++h) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < keys; ++j) {
        const int64_t place[4] = {batch, h, i, j};
        int64_t element = 0;
        for (size_t axis = 0; axis < 4; ++axis)
          element = element * sizes[axis] + (c.dbias_sum[axis] ? 0 : place[axis]);
        to[static_cast<size_t>(element)] += from[static_cast<size_t>((h * rows + i) * keys + j)];
      }
    }
  }
}

// Of the rows of dq, dk or dv: whether a sequence has it.
std::vector<bool> used_rows(const AttentionCase &c, size_t gradient) {
  const bool of_keys = gradient != kDq;
  const int64_t heads = of_keys ? c.heads_kv : c.heads_q, positions = of_keys ? c.seq_k : c.seq_q;
  std::vector<bool> used;
  for (int64_t row = 0; row < c.batches * heads * positions; ++row) {
    const int64_t batch = row / positions / heads;
    used.push_back(row % positions < (of_keys ? c.keys_of(batch) : c.rows_of(batch)));
  }
  return used;
}

}  // namespace

double gradient_value(flydsl_aot_dtype dtype, uint32_t bits) {
  return dtype == FLYDSL_AOT_FP32 ? std::bit_cast<float>(bits)
                                  : to_float(dtype, static_cast<uint16_t>(bits));
}

ForwardOutputs exact_forward(const BackwardCase &c) {
  const AttentionCase &f = c.forward;
  const AttentionReference exact = reference_of(f);
  ForwardOutputs result;
  for (const double value : exact.out)
    result.out.push_back(from_float(f.dtype, static_cast<float>(value)));
  for (const double value : exact.lse) result.lse.push_back(static_cast<float>(value));
  return result;
}

BackwardReference backward_reference_of(const BackwardCase &c, const ForwardOutputs &forward) {
  const AttentionCase &f = c.forward;
  BackwardReference result;
  const auto prepare = [&](size_t n, int64_t rows, int64_t columns) {
    GradientReference &g = result.gradients[n];
    if (!c.wanted[n]) return;
    g.columns = columns;
    g.exact.assign(static_cast<size_t>(rows * columns), 0);
    g.rounded = g.exact;
    g.floor.assign(static_cast<size_t>(rows), 0);
    g.deviation = g.floor;
    g.unit = unit_of(c.dtype_of(n));
    g.tiny = std::max(tiny_of(c.dtype_of(n)), c.dtype_of(n) == FLYDSL_AOT_FP16 ? 0 : 0x1p-126);
    if (n <= kDv) g.used = used_rows(f, n);
  };
  prepare(kDq, f.batches * f.heads_q * f.seq_q, f.head_dim);
  prepare(kDk, f.batches * f.heads_kv * f.seq_k, f.head_dim);
  prepare(kDv, f.batches * f.heads_kv * f.seq_k, f.value_dim());
  const std::vector<int64_t> dbias = c.dbias_sizes();
  prepare(kDbias, dbias[0] * dbias[1] * dbias[2], dbias[3]);
  prepare(kDsinks, f.heads_q, 1);
  auto &[dq, dk, dv, dscore, dsinks] = result.gradients;
  dscore.unrounded_operands = dscore.exact;
  std::vector<double> score_floor = dscore.exact, score_variance = dscore.exact;

  for (int64_t b = 0; b < f.batches; ++b) {
    const BackwardProblem p = problem_of(c, b);
    const auto store = [&](const Gradients &from, std::vector<double> GradientReference::*to) {
      if (c.wanted[kDq]) put(dq.*to, from.dq, b, f.heads_q, f.seq_q, p.rows, f.head_dim);
      if (c.wanted[kDk]) put(dk.*to, from.dk, b, f.heads_kv, f.seq_k, p.keys, f.head_dim);
      if (c.wanted[kDv]) put(dv.*to, from.dv, b, f.heads_kv, f.seq_k, p.keys, f.value_dim());
      if (c.wanted[kDbias]) add_scores(c, dscore.*to, from.score, b);
      for (size_t h = 0; h < from.dsink.size() && c.wanted[kDsinks]; ++h)
        (dsinks.*to)[h] += from.dsink[h];
    };
    const auto put_rows = [&](const std::vector<double> &of_q, const std::vector<double> &of_k,
                              const std::vector<double> &of_v,
                              std::vector<double> GradientReference::*to) {
      if (c.wanted[kDq]) put(dq.*to, of_q, b, f.heads_q, f.seq_q, p.rows, 1);
      if (c.wanted[kDk]) put(dk.*to, of_k, b, f.heads_kv, f.seq_k, p.keys, 1);
      if (c.wanted[kDv]) put(dv.*to, of_v, b, f.heads_kv, f.seq_k, p.keys, 1);
    };
    const Gradients exact = attention_gradients(p, {});
    store(exact, &GradientReference::exact);
    put_rows(exact.dq_floor, exact.dk_floor, exact.dv_floor, &GradientReference::floor);
    for (size_t h = 0; h < exact.dsink_floor.size() && c.wanted[kDsinks]; ++h)
      dsinks.floor[h] += exact.dsink_floor[h];

    const std::vector<double> out =
        part(f.dtype, forward.out, b, f.heads_q, f.seq_q, p.rows, p.value_dim);
    std::vector<double> lse;
    for (int64_t row = 0; row < f.heads_q * p.rows; ++row)
      lse.push_back(
          forward
              .lse[static_cast<size_t>((b * f.heads_q + row / p.rows) * f.seq_q + row % p.rows)]);
    const Gradients rounded = attention_gradients(
        p, {rounding_to(f.dtype), unit_of(f.dtype), tiny_of(f.dtype), &out, &lse});
    store(rounded, &GradientReference::rounded);
    put_rows(rounded.dq_variance, rounded.dk_variance, rounded.dv_variance,
             &GradientReference::deviation);
    if (!c.wanted[kDbias]) continue;
    add_scores(c, dscore.unrounded_operands,
               attention_gradients(p, {nullptr, 0, 0, &out, &lse}).score, b);
    add_scores(c, score_floor, exact.score_floor, b);
    add_scores(c, score_variance, rounded.score_variance, b);
  }
  for (size_t n = 0; n < kGradients; ++n) {
    for (double &value : result.gradients[n].rounded) value = rounding_to(c.dtype_of(n))(value);
    for (double &value : result.gradients[n].unrounded_operands)
      value = rounding_to(c.dtype_of(n))(value);
  }
  for (size_t n = 0; n < score_floor.size(); ++n) {  // norms of the rows
    const size_t row = n / static_cast<size_t>(dbias[3]);
    dscore.floor[row] = std::hypot(dscore.floor[row], score_floor[n]);
    dscore.deviation[row] += score_variance[n];
  }
  for (GradientReference &gradient : result.gradients)
    for (double &deviation : gradient.deviation) deviation = std::sqrt(deviation);
  return result;
}

BackwardVerdict judge_backward(const BackwardCase &c, const BackwardResult &result,
                               const BackwardReference &reference) {
  BackwardVerdict verdict;
  for (size_t n = 0; n < kGradients; ++n) {
    if (!c.wanted[n]) continue;
    const GradientReference &gradient = reference.gradients[n];
    const flydsl_aot_dtype dtype = c.dtype_of(n);
    std::vector<double> values;
    for (const uint32_t bits : result.bits[n]) values.push_back(gradient_value(dtype, bits));
    verdict.judgements[n] =
        judge_gradient(values, gradient, c.forward.dtype == FLYDSL_AOT_FP16 ? 2e-3 : 1e-2);
    if (!verdict.judgements[n].ok && verdict.fault.empty())
      verdict.fault = std::string(kGradientNames[n]) + ": " + verdict.judgements[n].text;
    const auto poison = static_cast<uint16_t>(kOutputPoison);
    const auto columns = static_cast<size_t>(gradient.columns);
    for (size_t element = 0; n <= kDv && element < result.bits[n].size(); ++element) {
      if (gradient.used[element / columns] || result.bits[n][element] == poison) continue;
      if (verdict.fault.empty())
        verdict.fault = std::string(kGradientNames[n]) + ": row " +
                        std::to_string(element / columns) +
                        " is past its sequence's length and was written";
    }
  }
  if (verdict.fault.empty()) verdict.fault = result.stray_write;
  return verdict;
}

BackwardResult as_result(const BackwardCase &c, const BackwardReference &reference) {
  BackwardResult result;
  for (size_t n = 0; n < kGradients; ++n) {
    const GradientReference &gradient = reference.gradients[n];
    const flydsl_aot_dtype dtype = c.dtype_of(n);
    for (size_t element = 0; element < gradient.exact.size(); ++element) {
      const float value = static_cast<float>(gradient.rounded[element]);
      const bool used = n > kDv || gradient.used[element / static_cast<size_t>(gradient.columns)];
      result.bits[n].push_back(!used                      ? static_cast<uint16_t>(kOutputPoison)
                               : dtype == FLYDSL_AOT_FP32 ? std::bit_cast<uint32_t>(value)
                                                          : from_float(dtype, value));
    }
  }
  return result;
}

}  // namespace flydsl::verify
