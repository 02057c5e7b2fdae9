// From the two score products of 32 others and 32 own rows to weights p and derivatives ds of the scores, problems with any
// feature. Rounded to the element type they are operands of the gradients, in the order that TwoWayTile::Columns has.
#pragma once

#include "attention_backward/dropout.hip.h"
#include "attention_backward/scores.hip.h"

namespace flydsl::kernels {

template <class Element>
FLYDSL_DEVICE void round_all(const f32x16 &x, u32x4 (&rounded)[2]) {
#pragma unroll
  for (int i = 0; i < 16; i += 2) rounded[i / 8][i % 8 / 2] = round_pair<Element>(x[i], x[i + 1]);
}

// lse and delta of an element's row: one of the lane, where it owns a query, or of the element.
struct LaneRow {
  float lse_of_lane, delta_of_lane;
  FLYDSL_DEVICE void lse(f32x16 &to) const { to = lse_of_lane; }
  FLYDSL_DEVICE void delta(f32x16 &to) const { to = delta_of_lane; }
};
FLYDSL_DEVICE void read_rows(lds_ptr<const char> from, f32x16 &to) {
#pragma unroll
  for (int i = 0; i < 16; i += 4) {
    const u32x4 four = read_b128(from + 4 * other_of_element(i));
#pragma unroll
    for (int j = 0; j < 4; ++j) to[i + j] = bits_as<float>(four[j]);
  }
}
struct TileRows {
  lds_ptr<const char> lse_of_lane, delta_of_lane;  // of its first row

  FLYDSL_DEVICE void lse(f32x16 &to) const { read_rows(lse_of_lane, to); }
  FLYDSL_DEVICE void delta(f32x16 &to) const { read_rows(delta_of_lane, to); }
};

// The visible others of a lane, counted from its first.
FLYDSL_DEVICE bool sees(Range visible, int i) {
  return visible.first <= other_of_element(i) && other_of_element(i) <= visible.last;
}

// `s` becomes the weight that meets dout, `dp` the derivative of the score. True if they are to be multiplied by `slopes`.
template <class Element, class Pairs, class Rows>
FLYDSL_DEVICE bool general_weights(const GradientHead &work, const Pairs &pairs, const Rows &rows,
                                   bool masked, Range visible, f32x16 &s, f32x16 &dp,
                                   f32x16 &slopes, u32x4 (&p)[2]) {
  bool capped = false;
  if (fresh_arguments()->score_terms) {
    scores_of_products<Element>(work, pairs, s, slopes);
    capped = fresh_arguments()->softcap_log2 > 0.0f;
  } else {
    s *= signed_scale_log2();
  }
  hide_masked(work, pairs, s);
  if (masked) {
#pragma unroll
    for (int i = 0; i < 16; ++i) s[i] = sees(visible, i) ? s[i] : -kInfinity;
  }
  u32 kept = 0xffff;
  float scale = 1.0f;
  if (fresh_arguments()->dropout_threshold != 0) {
    kept = kept_pairs(work, pairs);
    scale = fresh_arguments()->dropout_scale;
#pragma unroll
    for (int i = 0; i < 16; ++i) dp[i] *= kept >> i & 1 ? scale : 0.0f;
  }
  f32x16 lse, delta;
  rows.lse(lse);
  rows.delta(delta);
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const bool hidden = s[i] == -kInfinity;
    const float weight = exp2(not_above_0(s[i] - lse[i]));
    const float derivative = weight * (dp[i] - delta[i]);
    dp[i] = hidden ? 0.0f : derivative;
    s[i] = hidden ? 0.0f : weight * (kept >> i & 1 ? scale : 0.0f);
  }
  round_all<Element>(s, p);
  return capped;
}

}  // namespace flydsl::kernels
