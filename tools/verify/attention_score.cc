#include "tools/verify/attention_score.h"

#include "tools/verify/float16.h"

namespace flydsl::verify {
namespace {

// The key at which query i sits. Without an anchor there are no bounds, and ALiBi counts from the
// bottom right.
int64_t position_of(const flydsl_aot_mask &mask, int64_t i, int64_t rows, int64_t keys) {
  return mask.anchor == FLYDSL_AOT_ANCHOR_TOP_LEFT ? i : i + keys - rows;
}

}  // namespace

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
  const int64_t position = position_of(mask, i, rows, keys);
  if (mask.left != FLYDSL_AOT_UNLIMITED && position - j > mask.left) return false;
  if (mask.right != FLYDSL_AOT_UNLIMITED && j - position > mask.right) return false;
  return true;
}

Score attention_score(const double *q, const double *k, int64_t head_dim, double scale,
                      const flydsl_aot_mask &mask, const ReferenceTerms &terms,
                      const ScorePlace &place) {
  const auto [b, h, i, j, rows, keys] = place;
  Score score;
  if (!mask_allows(mask, i, j, rows, keys) || (terms.visible && !terms.visible(b, h, i, j)))
    return score;
  double dot = 0;
  for (int64_t d = 0; d < head_dim; ++d) {
    const double product = q[d] * k[d];
    dot += product;
    score.magnitude += std::fabs(product);
  }
  const double factor = terms.score_factor ? scale * terms.score_factor(b, h) : scale;
  score.value = factor * dot;
  score.magnitude *= std::fabs(factor);
  if (terms.softcap > 0) {
    const double capped = std::tanh(score.value / terms.softcap);
    score.value = terms.softcap * capped;
    score.derivative = 1 - capped * capped;
  }
  const auto add = [&](double term) {
    score.value += term;
    score.magnitude += std::fabs(term);
  };
  if (terms.bias) add(terms.bias(b, h, i, j));
  if (terms.slope) {
    const int64_t distance = std::abs(position_of(mask, i, rows, keys) - j);
    add(-terms.slope(b, h) * static_cast<double>(distance));
  }
  return score;
}

}  // namespace flydsl::verify
