// What a problem has for each pair of a row and a key: a bias or a boolean mask. A tile's is fetched one tile ahead: four
// neighbouring keys at a time where a row's keys lie side by side and all exist, else one by one.
//
// Of the lane's 32 elements, element 4 n + j is key 8 n + j, counted from the lane's first (scores.hip.h).
#pragma once

#include "attention_forward/general/work.hip.h"
#include "common/elements.hip.h"
#include "common/math.hip.h"
#include "common/memory.hip.h"

namespace flydsl::kernels {

enum class Pairs { none, fp32_bias, element_bias, visible };

FLYDSL_DEVICE Pairs pairs_of_problem() {
  const Arguments args = fresh_arguments();
  if (args->visible) return Pairs::visible;
  if (!args->bias) return Pairs::none;
  return args->bias_is_fp32 ? Pairs::fp32_bias : Pairs::element_bias;
}

// `pairs`: not none.
template <class Element, Pairs pairs>
struct PairTerms {
  static constexpr bool is_bias = pairs != Pairs::visible;
  static constexpr i64 element_bytes =
      pairs == Pairs::fp32_bias ? 4 : pairs == Pairs::element_bias ? 2 : 1;
  static constexpr int words_of_four = static_cast<int>(element_bytes);
  i32 seq_k, lane_first;           // the lane's first key in tile 0
  global_ptr<const char> first;    // of the lane's row, the element of key 0
  i64 stride;                      // from key to key
  u32 words[8][words_of_four];     // of four keys each

  FLYDSL_DEVICE PairTerms(const GeneralWork &work, i32 row, u32 lane)
      : seq_k(work.seq_k), lane_first(static_cast<i32>(lane / 32 * 4)) {
    const Arguments args = fresh_arguments();
    const i64 real_row = work.real_row(row);
    if constexpr (is_bias) {
      first = (global_ptr<const char>)args->bias +
              element_bytes * (work.batch * args->bias_stride_b + work.head * args->bias_stride_h +
                               real_row * args->bias_stride_q);
      stride = args->bias_stride_k;
    } else {
      first = (global_ptr<const char>)args->visible + work.batch * args->visible_stride_b +
              work.head * args->visible_stride_h + real_row * args->visible_stride_q;
      stride = args->visible_stride_k;
    }
  }

  // Starts fetching a tile.
  FLYDSL_DEVICE void begin(i32 tile) {
    const i32 tile_begin = tile * kKeysOfTile;
    if (FLYDSL_LIKELY(tile_begin + kKeysOfTile <= seq_k && stride == 1)) {
      const auto from = first + element_bytes * (tile_begin + lane_first);
#pragma unroll
      for (int n = 0; n < 8; ++n) load_four(from + 8 * n * element_bytes, words[n]);
      return;
    }
    const i32 key = static_cast<i32>(computed_here(static_cast<u32>(tile_begin + lane_first)));
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const u32 element = load_one(smaller(key + 8 * n + j, seq_k - 1));
        constexpr int elements_of_word = 4 / words_of_four;
        const int bit = j % elements_of_word * 8 * static_cast<int>(element_bytes);
        u32 &word = words[n][j / elements_of_word];
        word = bit == 0 ? element : word | element << bit;
      }
      __builtin_amdgcn_sched_barrier(0);  // a few at a time: their addresses would fill the registers
    }
  }

  // `ratio`: of units of s to the bias's.
  FLYDSL_DEVICE void add_bias(float ratio, f32x16 (&s)[2]) const {
#pragma unroll
    for (int n = 0; n < 32; ++n) {
      float bias;
      if constexpr (pairs == Pairs::fp32_bias)
        bias = bits_as<float>(words[n / 4][n % 4]);
      else
        bias = to_float<Element>(static_cast<u16>(words[n / 4][n % 4 / 2] >> n % 2 * 16));
      s[n / 16][n % 16] = fma(ratio, bias, s[n / 16][n % 16]);
    }
  }
  FLYDSL_DEVICE void hide(f32x16 (&s)[2]) const {
    u32 all = 0x01010101;
#pragma unroll
    for (const auto &word : words) all &= word[0];
    if (ballot(all != 0x01010101) == 0) return;
#pragma unroll
    for (int n = 0; n < 32; ++n) {
      const bool seen = words[n / 4][0] & 0xffu << n % 4 * 8;
      s[n / 16][n % 16] = seen ? s[n / 16][n % 16] : -kInfinity;
    }
  }

 private:
  static FLYDSL_DEVICE void load_four(global_ptr<const char> from, u32 (&to)[words_of_four]) {
    if constexpr (words_of_four == 4) {
      const u32x4 four = load_16_bytes(from);
#pragma unroll
      for (int j = 0; j < 4; ++j) to[j] = four[j];
    } else if constexpr (words_of_four == 2) {
      const u32x2 four = load_8_bytes(from);
      to[0] = four[0];
      to[1] = four[1];
    } else {
      to[0] = load_4_bytes(from);
    }
  }
  FLYDSL_DEVICE u32 load_one(i32 key) const {
    const auto from = first + element_bytes * (key * stride);
    if constexpr (element_bytes == 4) return *(global_ptr<const u32>)from;
    if constexpr (element_bytes == 2) return *(global_ptr<const u16>)from;
    return *(global_ptr<const u8>)from;
  }
};
template <class Element>
struct PairTerms<Element, Pairs::none> {
  static constexpr bool is_bias = false;
  FLYDSL_DEVICE PairTerms(const GeneralWork &, i32, u32) {}
  FLYDSL_DEVICE void begin(i32) {}
};

}  // namespace flydsl::kernels
