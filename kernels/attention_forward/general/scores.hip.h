// From q . k to scores: soft cap, ALiBi, bias, boolean mask
// (include/flydsl_aot/attention_forward.h).
//
// The functions take `each`: each(f) replaces every score of one row by f(score, key), in the fast
// path a tile's 32 of the lane, in the slow path one. Keys may lie past the last one; they are masked
// afterwards and only must not be looked up.
#pragma once

#include "attention_forward/general/descale.hip.h"
#include "attention_forward/general/work.hip.h"
#include "common/elements.hip.h"
#include "common/math.hip.h"
#include "common/memory.hip.h"

namespace flydsl::kernels {

// What `each` must be for a tile: block b, element i of `s` is key
// first_key + 32 b + 8 (i / 4) + i % 4.
template <int blocks>
struct EachOfTile {
  f32x16 (&s)[blocks];
  i32 first_key;
  template <class Function>
  FLYDSL_DEVICE void operator()(const Function &f) const {
#pragma unroll
    for (int block = 0; block < blocks; ++block) {
#pragma unroll
      for (int i = 0; i < 16; ++i)
        s[block][i] = f(s[block][i], first_key + 32 * block + 8 * (i / 4) + i % 4);
    }
  }
  // Calls f(scores, first) for each four neighbouring keys, first_key + `first` and on, where all keys exist.
  template <class Function>
  FLYDSL_DEVICE bool by_four(i32 keys, const Function &f) const {
    if (first_key + 32 * blocks - 4 > keys) return false;
#pragma unroll
    for (int block = 0; block < blocks; ++block) {
#pragma unroll
      for (int i = 0; i < 16; i += 4) {
        const f32x4 four = f(f32x4{s[block][i], s[block][i + 1], s[block][i + 2], s[block][i + 3]},
                             32 * block + 2 * i);
#pragma unroll
        for (int j = 0; j < 4; ++j) s[block][i + j] = four[j];
      }
    }
    return true;
  }
};

struct EachOfOne {
  float &score;
  i32 first_key;
  template <class Function>
  FLYDSL_DEVICE void operator()(const Function &f) const {
    score = f(score, first_key);
  }
  template <class Function>
  FLYDSL_DEVICE bool by_four(i32, const Function &) const {
    return false;
  }
};

// Turns q . k into the score in units of log2, for problems whose scores have any of these terms.
template <class Element, class Each>
FLYDSL_DEVICE void add_score_terms(const GeneralWork &work, i32 row, const Each &each) {
  const Arguments args = fresh_arguments();
  const float descale = score_descale(work);
  if (args->softcap_log2 > 0.0f) {
    const float ratio = args->softcap_ratio * descale, cap = args->softcap_log2;
    each([&](float dot, i32) { return cap * tanh(dot * ratio); });
  } else {
    const float scale = args->scale_log2 * descale;
    each([&](float dot, i32) { return dot * scale; });
  }
  const i32 real_row = work.real_row(row);
  if (args->alibi_slopes) {
    const float slope =
        ((global_ptr<const float>)args
             ->alibi_slopes)[work.batch * args->alibi_stride_b + work.head * args->alibi_stride_h];
    const float slope_log2 = slope * kLog2E;
    const i32 position = real_row + work.diagonal;
    const float from = static_cast<float>(position - each.first_key);
    each([&](float score, i32 key) {
      const float distance = __builtin_fabsf(from - static_cast<float>(key - each.first_key));
      return fma(-slope_log2, distance, score);
    });
  }
  if (args->bias) {
    const i64 first = work.batch * args->bias_stride_b + work.head * args->bias_stride_h +
                      real_row * args->bias_stride_q;
    const i64 stride = args->bias_stride_k;
    if (args->bias_is_fp32) {
      const auto bias = (global_ptr<const float>)args->bias + first;
      const auto row = (global_ptr<const char>)(bias + each.first_key);
      const bool done = stride == 1 && each.by_four(work.seq_k, [&](f32x4 scores, int key) {
        const u32x4 four = load_16_bytes(row + 4 * key);
#pragma unroll
        for (int i = 0; i < 4; ++i) scores[i] = fma(bits_as<float>(four[i]), kLog2E, scores[i]);
        return scores;
      });
      if (!done) {
        each([&](float score, i32 key) {
          return fma(bias[work.real_key(key) * stride], kLog2E, score);
        });
      }
    } else {
      const auto bias = (global_ptr<const u16>)args->bias + first;
      const auto row = (global_ptr<const char>)(bias + each.first_key);
      const bool done = stride == 1 && each.by_four(work.seq_k, [&](f32x4 scores, int key) {
        const u32x2 pairs = load_8_bytes(row + 2 * key);
        const u32x4 chunk = {pairs[0], pairs[1], 0, 0};
#pragma unroll
        for (int i = 0; i < 4; ++i)
          scores[i] = fma(element_of<Element>(chunk, i), kLog2E, scores[i]);
        return scores;
      });
      if (!done) {
        each([&](float score, i32 key) {
          return fma(to_float<Element>(bias[work.real_key(key) * stride]), kLog2E, score);
        });
      }
    }
  }
}

// Hides the keys that the boolean mask does not let through.
template <class Each>
FLYDSL_DEVICE void hide_masked(const GeneralWork &work, i32 row, const Each &each) {
  const Arguments args = fresh_arguments();
  if (!args->visible) return;
  const auto visible = (global_ptr<const u8>)args->visible + work.batch * args->visible_stride_b +
                       work.head * args->visible_stride_h +
                       work.real_row(row) * args->visible_stride_q;
  const i64 stride = args->visible_stride_k;
  const auto bytes = (global_ptr<const char>)(visible + each.first_key);
  const bool done = stride == 1 && each.by_four(work.seq_k, [&](f32x4 scores, int key) {
    const u32 four = load_4_bytes(bytes + key);
#pragma unroll
    for (int i = 0; i < 4; ++i) scores[i] = four >> 8 * i & 0xff ? scores[i] : -kInfinity;
    return scores;
  });
  if (done) return;
  each([&](float score, i32 key) {
    return visible[work.real_key(key) * stride] ? score : -kInfinity;
  });
}

// The head's sink in units of log2; -inf without one. NaN stands for +inf too: both make the rows NaN.
FLYDSL_DEVICE float sink_of(const GeneralWork &work) {
  const Arguments args = fresh_arguments();
  if (!args->sinks) return -kInfinity;
  const float sink =
      ((global_ptr<const float>)args->sinks)[work.head * args->sinks_stride_h] * kLog2E;
  return sink < kInfinity ? sink : __builtin_nanf("");
}

// The end of a row with the head's sink, if it has one.
struct RowEnd {
  float reference, sum;
  float out_factor;  // besides 1 / sum, of which a part is in o
  float sink;        // -inf: none
};
template <class Block, int blocks>
FLYDSL_DEVICE RowEnd add_sink(const GeneralWork &work, float reference, float sum,
                              Block (&o)[blocks]) {
  RowEnd end = {reference, sum, 1.0f, sink_of(work)};
  if (end.sink == -kInfinity) return end;
  // The sink is one more weight, which meets no value. What it scales the others by goes to O in two
  // factors: one alone would underflow where the sink is 2^126 times the largest weight.
  end.reference = larger(reference, end.sink);
  end.out_factor = exp2((reference - end.reference) * 0.5f);
  end.sum = fma(sum, end.out_factor * end.out_factor, exp2(end.sink - end.reference));
#pragma unroll
  for (Block &block : o) block *= end.out_factor;
  return end;
}

}  // namespace flydsl::kernels
