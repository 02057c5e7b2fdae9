#include "tools/verify/attention_terms.h"

#include "tools/verify/float16.h"

namespace flydsl::verify {

ReferenceTerms terms_of(const AttentionCase &c, int64_t b) {
  ReferenceTerms terms;
  const auto at = [&c, b](int64_t h, int64_t i, int64_t j) {
    return static_cast<size_t>(((b * c.heads_q + h) * c.seq_q + i) * c.seq_k + j);
  };
  terms.softcap = static_cast<double>(c.softcap);
  if (!c.bias.empty()) {
    terms.bias = [&c, at](int64_t, int64_t h, int64_t i, int64_t j) {
      const float value = c.bias[at(h, i, j)];
      return static_cast<double>(
          c.bias_dtype == FLYDSL_AOT_FP32 ? value : to_float(c.dtype, from_float(c.dtype, value)));
    };
  }
  if (!c.visible.empty()) {
    terms.visible = [&c, at](int64_t, int64_t h, int64_t i, int64_t j) {
      return c.visible[at(h, i, j)] != 0;
    };
  }
  if (!c.alibi_slopes.empty()) {
    const bool per_batch = c.alibi_slopes.size() != static_cast<size_t>(c.heads_q);
    terms.slope = [&c, b, per_batch](int64_t, int64_t h) {
      return static_cast<double>(
          c.alibi_slopes[static_cast<size_t>((per_batch ? b * c.heads_q : 0) + h)]);
    };
  }
  const int64_t group = c.heads_q / c.heads_kv;
  if (!c.q_descale.values.empty() || !c.k_descale.values.empty()) {
    terms.score_factor = [&c, b, group](int64_t, int64_t h) {
      const bool by_kv = !c.q_descale.sizes.empty() && c.q_descale.sizes.back() == c.heads_kv;
      return c.q_descale.of(b, by_kv ? h / group : h) * c.k_descale.of(b, h / group);
    };
  }
  if (!c.v_descale.values.empty()) {
    terms.value_factor = [&c, b, group](int64_t, int64_t h) {
      return c.v_descale.of(b, h / group);
    };
  }
  if (c.dropout_p > 0) {
    terms.dropout = [&c, b](int64_t, int64_t h, int64_t i, int64_t j) {
      return c.keeps(b, h, i, j) ? 1 / (1 - static_cast<double>(c.dropout_p)) : 0;
    };
  }
  if (!c.sinks.empty()) {
    terms.sink = [&c](int64_t h) { return static_cast<double>(c.sinks[static_cast<size_t>(h)]); };
  }
  return terms;
}

}  // namespace flydsl::verify
