// From q . k to scores: soft cap, ALiBi, masks, sinks (include/flydsl_aot/attention_decode.h).
#pragma once

#include "attention_decode/places.hip.h"
#include "common/math.hip.h"

namespace flydsl::kernels {

// What is needed to turn products of one row into scores.
struct RowTerms {
  i32 first_key, last_key;  // that the row sees
  i32 position;             // the key at which the row sits
  float slope_log2;         // ALiBi

  FLYDSL_DEVICE RowTerms() = default;
  FLYDSL_DEVICE RowTerms(const Row &row, const Sequence &sequence,
                         Arguments args = fresh_arguments())
      : first_key(sequence.first_key(row.query)),
        last_key(sequence.last_key(row.query)),
        position(row.query + sequence.diagonal),
        slope_log2(0.0f) {
    if (args->alibi_slopes)
      slope_log2 =
          ((global_ptr<const float>)args
               ->alibi_slopes)[row.batch * args->alibi_stride_b + row.head * args->alibi_stride_h] *
          kLog2E;
  }
};

// Scores are more than q . k with the scale's sign, and then in units of log2: weights are
// 2^(score c), c from here.
FLYDSL_DEVICE bool has_terms(Arguments args = fresh_arguments()) {
  return args->score_terms != 0;
}
FLYDSL_DEVICE float weight_factor(Arguments args = fresh_arguments()) {
  return has_terms(args) ? 1.0f : args->scale_log2;
}

// What 8-bit keys or values of a head are multiplied by.
FLYDSL_DEVICE float descale_of(const float *from, i64 element) {
  return from ? ((global_ptr<const float>)from)[element] : 1.0f;
}
FLYDSL_DEVICE float value_descale(u32 batch, u32 kv_head) {
  const Arguments args = fresh_arguments();
  return descale_of(args->v_descale,
                    batch * args->v_descale_stride_b + kv_head * args->v_descale_stride_h);
}
// What products are multiplied by before anything else: the scale's sign, and keys' descale.
FLYDSL_DEVICE float product_factor(u32 batch, u32 kv_head, Arguments args = fresh_arguments()) {
  return args->scale_sign * descale_of(args->k_descale, batch * args->k_descale_stride_b +
                                                            kv_head * args->k_descale_stride_h);
}

// `score(i)` and `key(i)` for i < count: the products and their keys.
template <class Score, class Key>
FLYDSL_DEVICE void add_score_terms(const RowTerms &row, int count, const Score &score,
                                   const Key &key) {
  const Arguments args = fresh_arguments();
  if (args->softcap_log2 > 0.0f) {
    const float ratio = args->softcap_ratio, cap = args->softcap_log2;
#pragma unroll
    for (int i = 0; i < count; ++i) score(i) = cap * tanh(score(i) * ratio);
  } else {
    const float scale = args->scale_log2;
#pragma unroll
    for (int i = 0; i < count; ++i) score(i) *= scale;
  }
  if (!args->alibi_slopes) return;
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const i32 distance = row.position < key(i) ? key(i) - row.position : row.position - key(i);
    score(i) = fma(-row.slope_log2, static_cast<float>(distance), score(i));
  }
}

// The head's sink in units of log2; -inf without one. NaN stands for +inf too: both make the rows NaN.
FLYDSL_DEVICE float sink_of(u32 head) {
  const Arguments args = fresh_arguments();
  if (!args->sinks) return -kInfinity;
  const float sink = ((global_ptr<const float>)args->sinks)[head * args->sinks_stride_h] * kLog2E;
  return sink < kInfinity ? sink : __builtin_nanf("");
}

}  // namespace flydsl::kernels
