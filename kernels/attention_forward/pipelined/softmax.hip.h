// The online softmax of softmax.hip.h, cut into pieces that are issued between matrix instructions.
// The tile's scores become weights in place, and then pairs in the input type.
#pragma once

#include "attention_forward/pipelined/accumulators.hip.h"
#include "attention_forward/softmax.hip.h"

namespace flydsl::kernels::pipelined {

// Keeps a value from being computed later than here.
FLYDSL_DEVICE void by_now(float x) {
  asm volatile("" ::"v"(x));
}
FLYDSL_DEVICE void by_now(u32 x) {
  asm volatile("" ::"v"(x));
}
FLYDSL_DEVICE void by_now(u64 x) {
  asm volatile("" ::"s"(x));
}

// A row's reference exponent (softmax.hip.h) is the maximum of its first tile. After that no maximum is
// taken: when the weights of a tile add up to more than this, the reference moves, before they are used.
// fp16 weights are then still below 65504. Where they overflow fp32 the row goes the slow path.

// One half of a wave's rows: 32, a lane one, keys as in scores.hip.h.
template <class Element, int key_blocks = 2>
struct HalfTile {
  f32x16 s[key_blocks];
  u32x4 p[2 * key_blocks];
  float tile_sum = 0.0f;
  float reference = kNoReference, sum = 0.0f;

  template <int e>
  FLYDSL_DEVICE float at() const {
    return s[e / 16][e % 16];
  }
  FLYDSL_DEVICE void set_reference(float c) {
    const float top = max_of_halves(largest_of(s));
    // No score, or only -inf: stays.
    if (fma(top, c, -reference) > 0.0f) reference = fma(top, c, -kShift<Element>);
  }
  template <int e>
  FLYDSL_DEVICE void exponent(float c) {
    s[e / 16][e % 16] = fma(at<e>(), c, -reference);
    by_now(at<e>());
  }
  template <int e>
  FLYDSL_DEVICE void weigh() {
    s[e / 16][e % 16] = exp2(at<e>());
    by_now(at<e>());
  }
  // Weights 2 n and 2 n + 1.
  template <int n>
  FLYDSL_DEVICE void round() {
    p[n / 4][n % 4] = round_pair<Element>(at<2 * n>(), at<2 * n + 1>());
    by_now(p[n / 4][n % 4]);
  }
  template <int e>
  FLYDSL_DEVICE void add() {
    tile_sum = e == 0 ? at<0>() : tile_sum + at<e>();
    by_now(tile_sum);
  }
  // Moves the reference of rows whose tile sum is too large, and all that is relative to it but O, whose
  // factor it returns: a power of two, so that nothing is rounded, and 1 for the other rows.
  FLYDSL_DEVICE float move_reference() {
    const float largest = max_of_halves(tile_sum);
    const bool exceeds = largest > kLargestTileSum<Element> && largest < kInfinity;
    const i32 up =
        exceeds ? __builtin_amdgcn_frexp_expf(largest) - static_cast<i32>(kShift<Element>) : 0;
    const float factor = __builtin_ldexpf(1.0f, -up);
    reference += static_cast<float>(up);
    sum *= factor;
    tile_sum *= factor;
#pragma unroll
    for (int n = 0; n < 8 * key_blocks; ++n)
      p[n / 4][n % 4] =
          round_pair<Element>(s[n / 8][n % 8 * 2] * factor, s[n / 8][n % 8 * 2 + 1] * factor);
    return factor;
  }
};

}  // namespace flydsl::kernels::pipelined
