#include "tools/verify/attention_forward_reference.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tools/verify/float16.h"

namespace flydsl::verify {

AttentionReference attention_forward_reference(flydsl_aot_dtype dtype, const HostView &q,
                                               const HostView &k, const HostView &v, double scale,
                                               const flydsl_aot_mask &mask,
                                               const ReferenceTerms &terms) {
  const int64_t batches = q.sizes[0], heads = q.sizes[1], rows = q.sizes[2], head_dim = q.sizes[3];
  const int64_t kv_heads = k.sizes[1], keys = k.sizes[2], value_dim = v.sizes[3];
  AttentionReference result;
  result.out.assign(static_cast<size_t>(batches * heads * rows * value_dim), 0.0);
  result.magnitude.assign(result.out.size(), 0.0);
  result.lse.assign(static_cast<size_t>(batches * heads * rows), -INFINITY);
  result.underflow.assign(result.out.size(), 0.0);
  result.score_scale.assign(result.lse.size(), 0.0);
  result.empty.assign(result.lse.size(), false);
  std::vector<double> scores(static_cast<size_t>(keys));

  for (int64_t b = 0; b < batches; ++b) {
    std::vector<double> head_k, head_v;
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t group = h / (heads / kv_heads);
      if (h % (heads / kv_heads) == 0) {
        head_k = head_of(dtype, k, b, group);
        head_v = head_of(dtype, v, b, group);
      }
      const std::vector<double> head_q = head_of(dtype, q, b, h);
      for (int64_t i = 0; i < rows; ++i) {
        const size_t row = static_cast<size_t>((b * heads + h) * rows + i);
        double maximum = -INFINITY;
        bool poisoned = false;  // a NaN or +inf among the visible scores
        for (int64_t j = 0; j < keys; ++j) {
          const auto [score, score_magnitude, derivative] = attention_score(
              head_q.data() + i * head_dim, head_k.data() + j * head_dim, head_dim, scale, mask,
              terms, {b, h, i, j, rows, keys});
          if (score != -INFINITY && std::isfinite(score_magnitude))
            result.score_scale[row] = std::max(result.score_scale[row], score_magnitude);
          scores[static_cast<size_t>(j)] = score;
          poisoned = poisoned || std::isnan(score) || score == INFINITY;
          maximum = std::max(maximum, score);
        }
        double *out = result.out.data() + row * static_cast<size_t>(value_dim);
        double *magnitude = result.magnitude.data() + row * static_cast<size_t>(value_dim);
        if (poisoned) {
          std::fill(out, out + value_dim, NAN);
          result.lse[row] = NAN;
          continue;
        }
        const double sink = terms.sink ? terms.sink(h) : -INFINITY;
        if (maximum == -INFINITY) {  // sees no key: out 0
          result.lse[row] = sink;
          result.empty[row] = true;
          continue;
        }
        const double largest_score = maximum;
        maximum = std::max(maximum, sink);
        double sum = std::exp(sink - maximum);
        for (const double score : scores) sum += std::exp(score - maximum);
        result.lse[row] = maximum + std::log(sum);
        const double largest_weight = std::exp(largest_score - maximum) / sum;
        double *underflow = result.underflow.data() + row * static_cast<size_t>(value_dim);
        for (int64_t j = 0; j < keys; ++j) {
          if (scores[static_cast<size_t>(j)] == -INFINITY)
            continue;  // not visible: whatever v holds
          double factor = terms.value_factor ? terms.value_factor(b, h) : 1;
          if (terms.dropout) factor *= terms.dropout(b, h, i, j);
          const double weight = std::exp(scores[static_cast<size_t>(j)] - maximum) / sum * factor;
          const double *value = head_v.data() + j * value_dim;
          for (int64_t d = 0; d < value_dim; ++d) {
            out[d] += weight * value[d];
            magnitude[d] += std::fabs(weight * value[d]);
            underflow[d] += std::fabs(largest_weight * factor * value[d]);
          }
        }
      }
    }
  }
  return result;
}

Judgement judge_out(flydsl_aot_dtype dtype, const std::vector<uint16_t> &out,
                    const AttentionReference &reference, int64_t head_dim) {
  const bool fp16 = dtype == FLYDSL_AOT_FP16;
  const double unit = fp16 ? 0x1p-11 : 0x1p-8;
  const double tiny = fp16 ? 0x1p-25 : 0x1p-134;
  Judgement judgement;
  char text[256] = "no elements";
  if (out.size() != reference.out.size()) return {false, INFINITY, 0, "wrong number of elements"};
  double error_squares = 0, bound_squares = 0, reference_squares = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    const double got = to_float(dtype, out[i]);
    const double expected = reference.out[i];
    double ratio, bound = 0;
    if (std::isfinite(expected)) {
      const size_t row = i / static_cast<size_t>(head_dim);
      const bool empty_row = reference.lse[row] == -INFINITY || reference.empty[row];
      const double rounding = unit * (std::fabs(expected) + reference.magnitude[i]);
      const double rest = 0x4p-24 * reference.score_scale[row] * reference.magnitude[i] + tiny +
                          (fp16 ? tiny * reference.underflow[i] : 0);
      bound = empty_row ? 0 : 1.25 * rounding + rest;
      const double error = std::fabs(got - expected);
      ratio = error <= bound                  ? (bound > 0 ? error / bound : 0)
              : bound > 0 && error < INFINITY ? error / bound
                                              : INFINITY;
      if (std::isfinite(got)) {
        error_squares += error * error;
        reference_squares += expected * expected;
        bound_squares += std::pow(0.75 * rounding + rest, 2);
      }
    } else {
      ratio = std::isnan(got) || got == expected ? 0 : INFINITY;
    }
    if (i == 0 || ratio > judgement.worst_ratio) {
      judgement.worst_ratio = ratio;
      std::snprintf(
          text, sizeof text,
          "element %zu (row %zu, column %zu): %.9g, reference %.9g, bound %.3g, error %.3g "
          "of the bound",
          i, i / static_cast<size_t>(head_dim), i % static_cast<size_t>(head_dim), got, expected,
          bound, ratio);
    }
  }
  judgement.text = text;
  judgement.frobenius = reference_squares > 0 ? std::sqrt(error_squares / reference_squares) : 0;
  judgement.ok = judgement.worst_ratio <= 1;
  const double norm_ratio = std::sqrt(error_squares) / std::sqrt(bound_squares);
  if (error_squares > bound_squares) {
    judgement.ok = false;
    judgement.text += "; norm of the error over its bound: " + std::to_string(norm_ratio);
  }
  return judgement;
}

Judgement judge_lse(const std::vector<float> &lse, const AttentionReference &reference) {
  Judgement judgement;
  char text[256] = "no rows";
  if (lse.size() != reference.lse.size()) return {false, INFINITY, 0, "wrong number of rows"};
  for (size_t i = 0; i < lse.size(); ++i) {
    const double got = lse[i];
    const double expected = reference.lse[i];
    double ratio, bound = 0;
    if (std::isfinite(expected)) {
      const float magnitude = std::fabs(static_cast<float>(expected));
      const double spacing = static_cast<double>(std::nextafter(magnitude, INFINITY)) - magnitude;
      bound = std::max(1e-4, spacing) + 0x4p-24 * reference.score_scale[i];
      ratio = std::fabs(got - expected) / bound;
      if (std::isnan(ratio)) ratio = INFINITY;
    } else {
      ratio = (std::isnan(expected) && std::isnan(got)) || got == expected ? 0 : INFINITY;
    }
    if (i == 0 || ratio > judgement.worst_ratio) {
      judgement.worst_ratio = ratio;
      std::snprintf(text, sizeof text,
                    "row %zu: %.9g, reference %.9g, bound %.3g, error %.3g of the bound", i, got,
                    expected, bound, ratio);
    }
  }
  judgement.text = text;
  judgement.ok = judgement.worst_ratio <= 1;
  return judgement;
}

}  // namespace flydsl::verify
