#include "test/support/attention_forward_reference.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "test/support/float16.h"

namespace flydsl::test {
namespace {

// One head's (S, D) slice in float64.
std::vector<double> head_of(flydsl_aot_dtype dtype, const HostView &view, int64_t batch,
                            int64_t head) {
  std::vector<double> values(static_cast<size_t>(view.sizes[2] * view.sizes[3]));
  size_t next = 0;
  for (int64_t s = 0; s < view.sizes[2]; ++s) {
    for (int64_t d = 0; d < view.sizes[3]; ++d) {
      values[next++] = to_float(dtype, view.data[batch * view.strides[0] + head * view.strides[1] +
                                                 s * view.strides[2] + d * view.strides[3]]);
    }
  }
  return values;
}

bool mask_allows(const flydsl_aot_mask &mask, int64_t i, int64_t j, int64_t rows, int64_t keys) {
  const int64_t position = mask.anchor == FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT ? i + keys - rows : i;
  if (mask.left != FLYDSL_AOT_UNLIMITED && position - j > mask.left) return false;
  if (mask.right != FLYDSL_AOT_UNLIMITED && j - position > mask.right) return false;
  return true;
}

}  // namespace

AttentionReference attention_forward_reference(flydsl_aot_dtype dtype, const HostView &q,
                                               const HostView &k, const HostView &v, double scale,
                                               const flydsl_aot_mask &mask) {
  const int64_t batches = q.sizes[0], heads = q.sizes[1], rows = q.sizes[2], head_dim = q.sizes[3];
  const int64_t kv_heads = k.sizes[1], keys = k.sizes[2], value_dim = v.sizes[3];
  AttentionReference result;
  result.out.assign(static_cast<size_t>(batches * heads * rows * value_dim), 0.0);
  result.magnitude.assign(result.out.size(), 0.0);
  result.lse.assign(static_cast<size_t>(batches * heads * rows), -INFINITY);
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
          double score = -INFINITY;
          if (mask_allows(mask, i, j, rows, keys)) {
            double dot = 0;
            for (int64_t d = 0; d < head_dim; ++d) {
              dot += head_q[static_cast<size_t>(i * head_dim + d)] *
                     head_k[static_cast<size_t>(j * head_dim + d)];
            }
            score = scale * dot;
          }
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
        if (maximum == -INFINITY) continue;  // sees no key: out 0, lse -inf
        double sum = 0;
        for (const double score : scores) sum += std::exp(score - maximum);
        result.lse[row] = maximum + std::log(sum);
        for (int64_t j = 0; j < keys; ++j) {
          if (scores[static_cast<size_t>(j)] == -INFINITY)
            continue;  // not visible: whatever v holds
          const double weight = std::exp(scores[static_cast<size_t>(j)] - maximum) / sum;
          const double *value = head_v.data() + j * value_dim;
          for (int64_t d = 0; d < value_dim; ++d) {
            out[d] += weight * value[d];
            magnitude[d] += weight * std::fabs(value[d]);
          }
        }
      }
    }
  }
  return result;
}

Judgement judge_out(flydsl_aot_dtype dtype, const std::vector<uint16_t> &out,
                    const AttentionReference &reference, int64_t head_dim) {
  const double unit = dtype == FLYDSL_AOT_BF16 ? 0x1p-8 : 0x1p-11;
  const double tiny = dtype == FLYDSL_AOT_BF16 ? 0x1p-134 : 0x1p-25;
  Judgement judgement;
  char text[256] = "no elements";
  if (out.size() != reference.out.size()) return {false, INFINITY, 0, "wrong number of elements"};
  double error_squares = 0, scale_squares = 0, reference_squares = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    const double got = to_float(dtype, out[i]);
    const double expected = reference.out[i];
    double ratio;
    if (std::isfinite(expected)) {
      const bool empty_row = reference.lse[i / static_cast<size_t>(head_dim)] == -INFINITY;
      const double bound =
          empty_row ? 0 : 1.25 * unit * (std::fabs(expected) + reference.magnitude[i]) + tiny;
      const double error = std::fabs(got - expected);
      ratio = error <= bound                  ? (bound > 0 ? error / bound : 0)
              : bound > 0 && error < INFINITY ? error / bound
                                              : INFINITY;
      if (std::isfinite(got)) {
        error_squares += error * error;
        reference_squares += expected * expected;
        const double scale = std::fabs(expected) + reference.magnitude[i] + tiny / unit;
        scale_squares += scale * scale;
      }
    } else {
      ratio = std::isnan(got) || got == expected ? 0 : INFINITY;
    }
    if (i == 0 || ratio > judgement.worst_ratio) {
      judgement.worst_ratio = ratio;
      std::snprintf(text, sizeof text,
                    "element %zu (row %zu, column %zu): %.9g, reference %.9g, %.3g of the bound", i,
                    i / static_cast<size_t>(head_dim), i % static_cast<size_t>(head_dim), got,
                    expected, ratio);
    }
  }
  judgement.text = text;
  judgement.frobenius = reference_squares > 0 ? std::sqrt(error_squares / reference_squares) : 0;
  judgement.ok = judgement.worst_ratio <= 1;
  if (std::sqrt(error_squares) > 0.75 * unit * std::sqrt(scale_squares)) {
    judgement.ok = false;
    judgement.text +=
        "; norm of the error over its bound: " +
        std::to_string(std::sqrt(error_squares) / (0.75 * unit * std::sqrt(scale_squares)));
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
    double ratio;
    if (std::isfinite(expected)) {
      const float magnitude = std::fabs(static_cast<float>(expected));
      const double spacing = static_cast<double>(std::nextafter(magnitude, INFINITY)) - magnitude;
      const double error = std::fabs(got - expected) / std::max(1e-4, spacing);
      ratio = std::isnan(error) ? INFINITY : error;
    } else {
      ratio = (std::isnan(expected) && std::isnan(got)) || got == expected ? 0 : INFINITY;
    }
    if (i == 0 || ratio > judgement.worst_ratio) {
      judgement.worst_ratio = ratio;
      std::snprintf(text, sizeof text, "row %zu: %.9g, reference %.9g, %.3g of the bound", i, got,
                    expected, ratio);
    }
  }
  judgement.text = text;
  judgement.ok = judgement.worst_ratio <= 1;
  return judgement;
}

}  // namespace flydsl::test
