// Online softmax in base 2: weights p = 2^(s c - r) with c = |scale| log2(e) and r the row's
// reference exponent, near the largest s c seen.
//
// r is stale on purpose: it moves only when a score exceeds it by more than 2^kHeadroom (then sum
// and outputs are rescaled), since any r gives the same quotient. s c - r is one fused
// multiply-add, so the rounding of r itself is common to the row and cancels; log-sum-exp is r +
// log2(sum) exactly.
#pragma once

#include "common/elements.hip.h"
#include "common/isa.hip.h"
#include "common/lanes.hip.h"
#include "common/math.hip.h"

namespace flydsl::kernels {

// The reference of a row that has seen no score yet: below any score the fast path is trusted with.
constexpr float kNoReference = -1e38f;
// References beyond this have a rounding residue of more than 2 (in log2): see exact.hip.h.
constexpr float kLargestReference = 67108864.0f;  // 2^26

// Weights are shifted up, so that fewer of them flush to 0. fp16 by 2^4: below 2^-28, and the largest, 2^(4 + 8 + 2 for the
// residue), is far below 65504. bf16 by 2^24: below 2^-150, where only values beyond 2^17 would still show in
// bf16; sums over all keys stay finite for values up to 2^64, rows with larger ones go the slow path.
// Where products flush subnormals, fp16 weights below 2^-14, they are shifted further, and may grow less: below 2^-25 of the largest.
template <class Element>
constexpr bool kFlushesWeights = kFlushesSubnormals && __is_same(Element, fp16);
template <class Element>
constexpr float kShift = kFlushesWeights<Element> ? 11.0f : __is_same(Element, fp16) ? 4.0f : 24.0f;
template <class Element>
constexpr float kHeadroom = (kFlushesWeights<Element> ? 2.0f : 8.0f) + kShift<Element>;

struct RowState {
  float reference = kNoReference;
  float sum = 0.0f;            // of the unrounded weights, this half-wave's keys only
  float highest = -kInfinity;  // score; NaNs left out
};

// The largest score of a lane; NaNs left out.
FLYDSL_DEVICE float largest_of(const f32x16 (&s)[2]) {
  float top = larger(s[0][0], s[1][0]);
#pragma unroll
  for (int i = 1; i < 16; ++i) top = larger(larger(top, s[0][i]), s[1][i]);
  return top;
}
FLYDSL_DEVICE float largest_of(const f32x16 (&s)[1]) {
  float top = s[0][0];
#pragma unroll
  for (int i = 1; i < 16; ++i) top = larger(top, s[0][i]);
  return top;
}

// Turns scores into the B operands of O^T = V^T P^T (order of keys: TileLayout::v_lane).
template <class Element, int score_blocks, int blocks>
FLYDSL_DEVICE void weigh_tile(const f32x16 (&s)[score_blocks], float c, RowState &row,
                              f32x16 (&o)[blocks], u32x4 (&p)[2 * score_blocks]) {
  const float top = max_of_halves(largest_of(s));
  row.highest = larger(row.highest, top);

  const bool exceeds = fma(top, c, -row.reference) > kHeadroom<Element>;
  if (FLYDSL_UNLIKELY(ballot(exceeds) != 0)) {
    // Rows of the wave that do not exceed keep theirs: a row's bits do not depend on its
    // neighbours.
    const float reference = exceeds ? fma(top, c, -kShift<Element>) : row.reference;
    const float factor = exp2(row.reference - reference);
    row.reference = reference;
    row.sum *= factor;
#pragma unroll
    for (int block = 0; block < blocks; ++block) o[block] *= factor;
  }

  float tile_sum = 0.0f;
#pragma unroll
  for (int step = 0; step < 2 * score_blocks; ++step) {
#pragma unroll
    for (int j = 0; j < 8; j += 2) {
      const float low = exp2(fma(s[step / 2][step % 2 * 8 + j], c, -row.reference));
      const float high = exp2(fma(s[step / 2][step % 2 * 8 + j + 1], c, -row.reference));
      tile_sum += low;
      tile_sum += high;
      p[step][j / 2] = round_pair<Element>(low, high);
    }
  }
  row.sum += tile_sum;
}

// ---- the same without a maximum for each tile: the reference moves when a tile's weights add up to more than this,
// before they are used. fp16 weights are then still below 65504. 64 equal ones fit after a move.
template <class Element>
constexpr float kLargestTileSum = kFlushesWeights<Element> ? 0x1p15f : __is_same(Element, fp16) ? 0x1p14f : 0x1p38f;
template <class Element>
constexpr float kShiftOfMove = kFlushesWeights<Element> ? 8.0f : kShift<Element>;

// Weights of a tile relative to the row's reference, and their sum.
template <class Element>
FLYDSL_DEVICE float weights_of(const f32x16 (&s)[2], float c, float reference, u32x4 (&p)[4]) {
  float sum = 0.0f;
#pragma unroll
  for (int step = 0; step < 4; ++step) {
#pragma unroll
    for (int j = 0; j < 8; j += 2) {
      const float low = exp2(fma(s[step / 2][step % 2 * 8 + j], c, -reference));
      const float high = exp2(fma(s[step / 2][step % 2 * 8 + j + 1], c, -reference));
      sum += low;
      sum += high;
      p[step][j / 2] = round_pair<Element>(low, high);
    }
  }
  return sum;
}

// Lanes whose row has too large a sum, in either half.
template <class Element>
FLYDSL_DEVICE u64 exceeding_rows(float tile_sum) {
  const u64 lanes = ballot(!(tile_sum <= kLargestTileSum<Element>));  // NaN too
  return lanes | lanes << 32 | lanes >> 32;
}

// Moves the reference of these rows to the maximum of the scores, and what is relative to it. A row that has seen
// no score has a reference so low that its first sum is infinite.
template <class Element, int blocks>
FLYDSL_DEVICE void move_reference(bool exceeds, const f32x16 (&s)[2], float c, RowState &row,
                                  f32x16 (&o)[blocks]) {
  const float top = max_of_halves(largest_of(s));
  const float reference = exceeds ? fma(top, c, -kShiftOfMove<Element>) : row.reference;
  const float factor = exp2(row.reference - reference);
  row.reference = reference;
  row.sum *= factor;
#pragma unroll
  for (int block = 0; block < blocks; ++block) o[block] *= factor;
}

}  // namespace flydsl::kernels
