// attention_backward's passes over keys and over queries for problems without features but bounds and lengths, rows 16-byte
// aligned: the algorithm of attention_backward_general.hip.h, copies a tile ahead in two LDS buffers, a barrier a step.
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
  // Of one wave a SIMD, in whose products nothing else stands beside the reads, or of more.
  static constexpr bool kOneWave = pass == Pass::keys
                                       ? head_dim_qk + head_dim_v > 256
                                       : head_dim_qk > 192 || head_dim_qk + head_dim_v > 320;
  static constexpr int kAhead = kOneWave && !Own::kFewRegisters ? kFragmentsAhead : 2;
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
    compute_half(0, first_other, places);
    compute_half(1, first_other + 32, places);
  }
  FLYDSL_DEVICE void store() const {
    sums.store(this->work, this->first_own, lane(), -fresh_arguments()->scale);
  }

 private:
  // A half tile between its score products and its gradients.
  struct Half {
    f32x16 s, dp;
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

  // dp as it starts.
  FLYDSL_DEVICE void begin_half(int number, TilePlaces places, Half &half) const {
    if constexpr (pass == Pass::keys)
      read_rows(places.delta + row_of_lane(number), half.dp);
    else
      half.dp = this->own_delta;
  }
  // Byte of the lane's first row of a half tile.
  FLYDSL_DEVICE u32 row_of_lane(int number) const {
    return 4 * (32 * static_cast<u32>(number) + lane() / 32 * 4);
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
  // Elements i and i + 1. `masked`: not all pairs are visible.
  template <bool masked>
  FLYDSL_DEVICE void weigh_pair(int i, float low_lse, float high_lse, Range visible,
                                Half &half) const {
    float weights[2] = {exp2(fma(half.s[i], c, -low_lse)), exp2(fma(half.s[i + 1], c, -high_lse))};
    float derivatives[2] = {weights[0] * half.dp[i], weights[1] * half.dp[i + 1]};
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      if (masked && !sees(visible, i + j)) weights[j] = derivatives[j] = 0.0f;
    }
    half.p[i / 8][i % 8 / 2] = round_pair<Element>(weights[0], weights[1]);
    half.ds[i / 8][i % 8 / 2] = round_pair<Element>(derivatives[0], derivatives[1]);
  }
  template <bool masked>
  FLYDSL_DEVICE void weigh_half(int number, TilePlaces places, Range visible, Half &half) const {
    if constexpr (pass == Pass::keys && !kOneWave) {
      // Four rows after the other: lse of all would take registers that make a wave.
      const auto from = places.lse + row_of_lane(number);
      f32x4 lse = bits_as<f32x4>(read_b128(from));
#pragma unroll
      for (int i = 0; i < 16; i += 4) {
        const f32x4 now = lse;
        if (i + 4 < 16) lse = bits_as<f32x4>(read_b128(from + 4 * other_of_element(i + 4)));
        fragment_slot();
        weigh_pair<masked>(i, now[0], now[1], visible, half);
        weigh_pair<masked>(i + 2, now[2], now[3], visible, half);
      }
    } else if constexpr (pass == Pass::keys) {
      f32x16 lse;
      read_rows(places.lse + row_of_lane(number), lse);
#pragma unroll
      for (int i = 0; i < 16; i += 2) weigh_pair<masked>(i, lse[i], lse[i + 1], visible, half);
    } else {
#pragma unroll
      for (int i = 0; i < 16; i += 2)
        weigh_pair<masked>(i, this->own_lse, this->own_lse, visible, half);
    }
  }
  FLYDSL_DEVICE void compute_half(int number, i32 first_other, TilePlaces places) {
    if (!this->meets(first_other)) return;
    const Operands from(places, lane());
    Half half;
    begin_half(number, places, half);
    each_fragment<kScores, kAhead>(
        [&](auto n) FLYDSL_INLINED { return score_fragment(from, number, n); },
        [&](auto n, u32x4 fragment) FLYDSL_INLINED { score_product(n, fragment, half); });
    if (this->meets_all(first_other, 32))
      weigh_half<false>(number, places, {}, half);
    else
      weigh_half<true>(number, places, this->visible(first_other), half);
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
