// Scores with a soft cap or ALiBi, as weights.
//
// A score in units of log2 is s c + shift, c and shift the row's. ALiBi's distance is split into that of the
// tile, in `shift`, and that of the key in the tile, in s.
#pragma once

#include "attention_forward/softmax.hip.h"

namespace flydsl::kernels {

// The reference of a row that has seen no score: a finite one, however low, makes the first sum positive.
constexpr float kUnseen = -3.402823466e38f;

// cap tanh(x) as cap - 2 cap / (1 + e^2x): off by less than cap 2^-22 where tanh is small, too. The
// library takes these instances for caps up to 128 only, whose error is below 2^-15.
struct SoftCap {
  float exponent_ratio;  // 2 |scale| log2(e) / cap, per unit of q . k
  float cap;             // in units of log2

  FLYDSL_DEVICE void apply(f32x16 (&s)[2]) const {
    const float twice = -2.0f * cap;
#pragma unroll
    for (f32x16 &block : s) {
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        const float e = exp2(block[i] * exponent_ratio);
        block[i] = fma(twice, reciprocal(e + 1.0f), cap);
      }
    }
  }
};

// -slope |position - key| for each key: what is not added to s comes back, in units of log2. `ratio`: slope in units of
// s; `from`: position - the lane's first key. All of the tile's keys lie left of the wave's rows, or right of them:
FLYDSL_DEVICE float add_distances(bool left, float slope_log2, float ratio, float from, f32x16 (&s)[2]) {
  const float signed_ratio = left ? ratio : -ratio;
#pragma unroll
  for (int n = 0; n < 32; ++n) {
    const float key = static_cast<float>(n / 4 * 8 + n % 4);
    s[n / 16][n % 16] = fma(signed_ratio, key, s[n / 16][n % 16]);
  }
  return (left ? -slope_log2 : slope_log2) * from;
}
// Anywhere.
FLYDSL_DEVICE void add_distances(float ratio, float from, f32x16 (&s)[2]) {
#pragma unroll
  for (int n = 0; n < 32; ++n) {
    const float distance = __builtin_fabsf(from - static_cast<float>(n / 4 * 8 + n % 4));
    s[n / 16][n % 16] = fma(-ratio, distance, s[n / 16][n % 16]);
  }
}

// As weigh_tile, without a maximum unless the sum of a row's weights is too large (softmax.hip.h).
template <class Element, int blocks>
FLYDSL_DEVICE void weigh_shifted(const f32x16 (&s)[2], float c, float shift, u32 lane, RowState &row,
                                 f32x16 (&o)[blocks], u32x4 (&p)[4]) {
  float tile_sum = weights_of<Element>(s, c, row.reference - shift, p);
  if (const u64 rows = exceeding_rows<Element>(tile_sum); FLYDSL_UNLIKELY(rows != 0)) {
    // (The shift of a row's two lanes differs: each has keys of its own.)
    float top = larger(s[0][0], s[1][0]);
#pragma unroll
    for (int i = 1; i < 16; ++i) top = larger(larger(top, s[0][i]), s[1][i]);
    top = max_of_halves(fma(top, c, shift));
    const float reference = rows >> lane & 1 ? top - kShift<Element> : row.reference;
    const float factor = exp2(row.reference - reference);
    row.reference = reference;
    row.sum *= factor;
#pragma unroll
    for (f32x16 &block : o) block *= factor;
    tile_sum = weights_of<Element>(s, c, row.reference - shift, p);
  }
  row.sum += tile_sum;
}

}  // namespace flydsl::kernels
