// attention_backward's passes over keys and over queries for problems without features but bounds and lengths, rows 16-byte
// aligned: the algorithm of attention_backward_general.hip.h, copies a tile ahead in two LDS buffers, a barrier a step.
//
// A tile that every row of the wave meets completely is computed as two halves whose vector work stands beside the other's
// matrix products:
//
//   scores of half 0 | scores of half 1, weights of half 0 | gradients from half 0, weights of half 1 | gradients from half 1
//
// The own operand of dP is negated and dP starts from delta, so that the product is delta - dP and derivatives are
// negative, which the scale takes back: what is left for the vector unit is an fma, an exp2, a product and two halves of
// conversions a pair.
#pragma once

#include "attention_backward/copies.hip.h"
#include "attention_backward/fragments.hip.h"
#include "attention_backward/gradient_sums.hip.h"
#include "attention_backward/own_rows.hip.h"
#include "attention_backward/steps.hip.h"
#include "attention_backward/weights.hip.h"
#include "common/mfma.hip.h"

namespace flydsl::kernels {

template <class Element, int head_dim_qk, int head_dim_v, Pass pass>
struct PlainWave : OwnRows<head_dim_qk, head_dim_v, pass, false> {
  using Own = OwnRows<head_dim_qk, head_dim_v, pass, false>;
  using Own::lane, Own::own_1, Own::own_2;
  using Tile1 = TwoWayTile<head_dim_qk>;
  using Tile2 = TwoWayTile<head_dim_v>;
  static constexpr int kAhead = Own::kFewRegisters ? 2 : kFragmentsAhead;
  // Where registers hold two halves: of one wave a SIMD, with more than 256, clang 22 spends what is won on copies between the
  // register files.
  static constexpr bool kTakesTurns = head_dim_qk + head_dim_v >= 128 &&
                                      head_dim_qk + head_dim_v <= (pass == Pass::keys ? 128 : 192);
  // Matrix products of a half tile.
  static constexpr int kSteps1 = head_dim_qk / 16, kScores = kSteps1 + head_dim_v / 16;
  static constexpr int kBlocks1 = head_dim_qk / 32,
                       kBlocks2 = pass == Pass::keys ? head_dim_v / 32 : 0;
  static constexpr int kGradients = 2 * (kBlocks1 + kBlocks2);
  float c;
  GradientSums<Element, head_dim_qk, head_dim_v, pass, false> sums;

  FLYDSL_DEVICE PlainWave(const Work<pass> &work, u32 wave, u32 lane)
      : Own(work, wave, lane, nullptr), c(signed_scale_log2()) {}

  FLYDSL_DEVICE void load_own() {
    Own::load_own();
#pragma unroll
    for (u32x4 &fragment : own_2.held) fragment ^= 0x80008000;
  }

  FLYDSL_DEVICE void compute(i32 first_other, TilePlaces places) {
    if (kTakesTurns && this->meets_all(first_other, kRowsOfTile)) {
      compute_whole(places);
    } else {
      compute_half(0, first_other, places);
      compute_half(1, first_other + 32, places);
    }
  }
  FLYDSL_DEVICE void store() const {
    sums.store(this->work, this->first_own, lane(), -fresh_arguments()->scale);
  }

 private:
  // A half tile between its score products and its gradients.
  struct Half {
    f32x16 s, dp;
    f32x16 lse;
    u32x4 p[2], ds[2];
  };
  struct Operands {
    typename Tile1::Rows rows_1;
    typename Tile2::Rows rows_2;
    typename Tile1::Columns columns_1;
    typename Tile2::Columns columns_2;
    FLYDSL_DEVICE Operands(TilePlaces places, u32 lane)
        : rows_1(places.tile_1, lane),
          rows_2(places.tile_2, lane),
          columns_1(places.tile_1, lane),
          columns_2(places.tile_2, lane) {}
  };

  // lse, and dp as it starts.
  FLYDSL_DEVICE void begin_half(int number, TilePlaces places, Half &half) const {
    if constexpr (pass == Pass::keys) {
      const u32 at = 4 * (32 * static_cast<u32>(number) + lane() / 32 * 4);
      const TileRows rows = {places.lse + at, places.delta + at};
      rows.lse(half.lse);
      rows.delta(half.dp);
    } else {
      half.lse = this->own_lse;
      half.dp = this->own_delta;
    }
  }
  // Matrix product n of the kScores, or of the kGradients, and its operand.
  static FLYDSL_DEVICE u32x4 score_fragment(const Operands &from, int number, int n) {
    return n < kSteps1 ? from.rows_1(number, n) : from.rows_2(number, n - kSteps1);
  }
  FLYDSL_DEVICE void score_product(int n, u32x4 fragment, Half &half) const {
    if (n < kSteps1)
      half.s = mfma_32x32x16<Element>(fragment, own_1(n), n == 0 ? f32x16{} : half.s);
    else
      half.dp = mfma_32x32x16<Element>(fragment, own_2(n - kSteps1), half.dp);
  }
  static FLYDSL_DEVICE u32x4 gradient_fragment(const Operands &from, int number, int n) {
    if constexpr (kBlocks2 != 0) {
      if (n < 2 * kBlocks2) return from.columns_2(2 * number + n / kBlocks2, n % kBlocks2);
      n -= 2 * kBlocks2;
    }
    return from.columns_1(2 * number + n / kBlocks1, n % kBlocks1);
  }
  FLYDSL_DEVICE void gradient_product(int n, u32x4 fragment, const Half &half) {
    if constexpr (kBlocks2 != 0) {
      if (n < 2 * kBlocks2) {
        f32x16 &sum = sums.of_2[n % kBlocks2];
        sum = mfma_32x32x16<Element>(fragment, half.p[n / kBlocks2], sum);
        return;
      }
      n -= 2 * kBlocks2;
    }
    f32x16 &sum = sums.of_1[n % kBlocks1];
    sum = mfma_32x32x16<Element>(fragment, half.ds[n / kBlocks1], sum);
  }
  // Elements i and i + 1.
  FLYDSL_DEVICE void weigh_pair(int i, Half &half) const {
    const float low = exp2(fma(half.s[i], c, -half.lse[i]));
    const float high = exp2(fma(half.s[i + 1], c, -half.lse[i + 1]));
    half.p[i / 8][i % 8 / 2] = round_pair<Element>(low, high);
    half.ds[i / 8][i % 8 / 2] = round_pair<Element>(low * half.dp[i], high * half.dp[i + 1]);
  }
  // The part of the 8 pairs that stands beside product n of `products`; the first products are left out: what they wait for
  // has just been computed.
  template <int products, int n>
  FLYDSL_DEVICE void weigh_beside(Half &half) const {
    constexpr int first = products > 10 ? 2 : 1, room = products - first;
    if constexpr (n >= first) {
#pragma unroll
      for (int pair = 8 * (n - first) / room; pair < 8 * (n - first + 1) / room; ++pair)
        weigh_pair(2 * pair, half);
    }
  }

  FLYDSL_DEVICE void compute_whole(TilePlaces places) {
    const Operands from(places, lane());
    Half halves[2];
    begin_half(0, places, halves[0]);
    begin_half(1, places, halves[1]);
    each_fragment<2 * kScores + 2 * kGradients, kAhead>(
        [&](auto n) FLYDSL_INLINED {
          if constexpr (n < 2 * kScores) {
            return score_fragment(from, n / kScores, n % kScores);
          } else {
            constexpr int gradient = n - 2 * kScores;
            return gradient_fragment(from, gradient / kGradients, gradient % kGradients);
          }
        },
        [&](auto n, u32x4 fragment) FLYDSL_INLINED {
          if constexpr (n < 2 * kScores) {
            score_product(n % kScores, fragment, halves[n / kScores]);
            if constexpr (n >= kScores) weigh_beside<kScores, n - kScores>(halves[0]);
          } else {
            constexpr int gradient = n - 2 * kScores;
            gradient_product(gradient % kGradients, fragment, halves[gradient / kGradients]);
            if constexpr (gradient < kGradients) weigh_beside<kGradients, gradient>(halves[1]);
          }
        });
  }

  FLYDSL_DEVICE void compute_half(int number, i32 first_other, TilePlaces places) {
    if (!this->meets(first_other)) return;
    const Operands from(places, lane());
    Half half;
    begin_half(number, places, half);
    each_fragment<kScores, kAhead>(
        [&](auto n) FLYDSL_INLINED { return score_fragment(from, number, n); },
        [&](auto n, u32x4 fragment) FLYDSL_INLINED { score_product(n, fragment, half); });
    if (!this->meets_all(first_other, 32)) {
      const Range visible = this->visible(first_other);
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        // A weight of 0 and, whatever the pair's values are, a derivative of 0.
        half.lse[i] = sees(visible, i) ? half.lse[i] : kInfinity;
        half.s[i] = sees(visible, i) ? half.s[i] : 0.0f;
        half.dp[i] = sees(visible, i) ? half.dp[i] : 0.0f;
      }
    }
#pragma unroll
    for (int i = 0; i < 16; i += 2) weigh_pair(i, half);
    each_fragment<kGradients, kAhead>(
        [&](auto n) FLYDSL_INLINED { return gradient_fragment(from, number, n); },
        [&](auto n, u32x4 fragment) FLYDSL_INLINED { gradient_product(n, fragment, half); });
  }
};

template <class Element, int head_dim_qk, int head_dim_v, Pass pass>
FLYDSL_DEVICE void attention_backward_plain(const flydsl_aot_attention_backward_kernarg &) {
  // One array per buffer, each named by its own code (the loop is unrolled by two): only then does
  // clang 22 see which copies an LDS read has to wait for.
  FLYDSL_SHARED static char even_1[TwoWayTile<head_dim_qk>::bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char even_2[TwoWayTile<head_dim_v>::bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char odd_1[TwoWayTile<head_dim_qk>::bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char odd_2[TwoWayTile<head_dim_v>::bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char even_lse[4 * kRowsOfTile] __attribute__((aligned(16)));
  FLYDSL_SHARED static char even_delta[4 * kRowsOfTile] __attribute__((aligned(16)));
  FLYDSL_SHARED static char odd_lse[4 * kRowsOfTile] __attribute__((aligned(16)));
  FLYDSL_SHARED static char odd_delta[4 * kRowsOfTile] __attribute__((aligned(16)));
  using Wave = PlainWave<Element, head_dim_qk, head_dim_v, pass>;

  Work<pass> work;
  if (!find_work(work, kOwnOfWorkGroup)) return;
  const u32 item = __builtin_amdgcn_workitem_id_x();
  const u32 wave_number = uniform(item / kWaveLanes);
  Steps<pass> steps(work);
  Wave wave(work, wave_number, item % kWaveLanes);
  if (!steps.empty()) {
    StagerByCopies<pass, head_dim_qk, head_dim_v, Wave::kFewRegisters> stager(work, wave_number);
    const TilePlaces even = {(lds_ptr<char>)even_1, (lds_ptr<char>)even_2, (lds_ptr<char>)even_lse,
                             (lds_ptr<char>)even_delta};
    const TilePlaces odd = {(lds_ptr<char>)odd_1, (lds_ptr<char>)odd_2, (lds_ptr<char>)odd_lse,
                            (lds_ptr<char>)odd_delta};
    // Computes on the tile in `now`, while the next one comes to `next`; false: there is none.
    const auto step = [&](const TilePlaces &now, const TilePlaces &next) FLYDSL_INLINED {
      stager.landed();
      barrier();
      const i32 first_other = steps.tile * kRowsOfTile;
      const u32 head = steps.head;
      const bool more = steps.advance();
      if (FLYDSL_LIKELY(more)) {
        if (steps.head != head) stager.go_to(steps.tile);
        stager.begin(steps.tile, next);
      }
      wave.compute(first_other, now);
      return more;
    };
    stager.go_to(steps.tile);
    stager.begin(steps.tile, even);
    wave.load_own();
    while (step(even, odd) && step(odd, even)) {
    }
  }
  wave.store();
}

}  // namespace flydsl::kernels
