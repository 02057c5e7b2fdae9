// attention_backward's passes over keys (dk and dv) and over queries (dq): a work-group owns 32 rows a wave of one of them
// and meets the others in tiles of 64, whose scores it computes again (Dao et al. 2022, FlashAttention, appendix B).
// Rules of the result: include/flydsl_aot/attention_backward.h.
//
// A lane owns one row, a column of the score products S and dP; its gradients are a column of the transposed gradients:
//
//   pass keys     S = Q K^T    dP = dO V^T     dV^T += dO^T P     dK^T += Q^T dS
//   pass queries  S^T = K Q^T  dP^T = V dO^T                      dQ^T += K^T dS^T
//
// The accumulators of the score products hold the others in the order in which the transposed reads of a tile bring them,
// so that weights and derivatives feed the second products from registers. Own operands stay in registers; a tile is
// read from LDS along its rows for the score products and along its columns for the gradients.
//
// This is the simple form, for any head dims up to the class's, any alignment and every feature behind a wave-uniform switch;
// attention_backward_plain.hip.h is the fast one for problems without features.
#pragma once

#include "attention_backward/gradient_sums.hip.h"
#include "attention_backward/score_wave.hip.h"
#include "attention_backward/steps.hip.h"

namespace flydsl::kernels {

template <class Element, int head_dim_qk, int head_dim_v, Pass pass>
struct GeneralWave : ScoreWave<Element, head_dim_qk, head_dim_v, pass> {
  using Scores = ScoreWave<Element, head_dim_qk, head_dim_v, pass>;
  using Scores::lane, typename Scores::Stager;
  GradientSums<Element, head_dim_qk, head_dim_v, pass, true> sums;

  using Scores::Scores;

  // The others of a half tile, from `first_other` on.
  FLYDSL_DEVICE void compute(i32 half, i32 first_other, TilePlaces tile, const Stager &stager) {
    if (!this->meets(first_other)) return;
    u32x4 p[2], rounded[2];
    f32x16 ds, slopes;
    // What is hidden, or has lost its weight, stays 0 whatever its slope is.
    if (this->derive(half, first_other, tile, stager, p, ds, slopes)) ds *= slopes;
    round_all<Element>(ds, rounded);
    if constexpr (pass == Pass::keys)
      accumulate(typename Scores::Tile2::Columns(tile.tile_2, lane()), half, p, sums.of_2);
    accumulate(typename Scores::Tile1::Columns(tile.tile_1, lane()), half, rounded, sums.of_1);
  }

 private:
  template <class Columns, int blocks>
  FLYDSL_DEVICE void accumulate(const Columns &columns, i32 half, const u32x4 (&weights)[2],
                                f32x16 (&sum)[blocks]) const {
    each_fragment<2 * blocks, Scores::kAhead>(
        [&](auto n) FLYDSL_INLINED { return columns(2 * half + n / blocks, n % blocks); },
        [&](auto n, u32x4 fragment) FLYDSL_INLINED {
          sum[n % blocks] = mfma_32x32x16<Element>(fragment, weights[n / blocks], sum[n % blocks]);
        });
  }
};

// One LDS buffer, two barriers a step; any alignment, any feature.
template <class Element, int head_dim_qk, int head_dim_v, Pass pass>
FLYDSL_DEVICE void attention_backward_general(const flydsl_aot_attention_backward_kernarg &) {
  FLYDSL_SHARED static char tile_1[TwoWayTile<head_dim_qk>::bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char tile_2[TwoWayTile<head_dim_v>::bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char lse[4 * kRowsOfTile] __attribute__((aligned(16)));
  FLYDSL_SHARED static char delta[4 * kRowsOfTile] __attribute__((aligned(16)));
  using Wave = GeneralWave<Element, head_dim_qk, head_dim_v, pass>;
  FLYDSL_SHARED static char own[larger(1, Wave::lds_bytes)] __attribute__((aligned(16)));
  const TilePlaces places = {(lds_ptr<char>)tile_1, (lds_ptr<char>)tile_2, (lds_ptr<char>)lse,
                             (lds_ptr<char>)delta};

  Work<pass> work;
  if (!find_work(work, kOwnOfWorkGroup)) return;
  const u32 item = __builtin_amdgcn_workitem_id_x();
  Steps<pass> steps(work);
  Wave wave(work, uniform(item / kWaveLanes), item % kWaveLanes, (lds_ptr<char>)own);
  if (!steps.empty()) {
    wave.load_own();
    typename Wave::Stager stager(work, item);
    bool more;
#pragma unroll 1
    do {
      stager.begin(steps.tile);
      wave.bring(stager, places);
#pragma unroll 1
      for (i32 half = 0; half < 2; ++half)
        wave.compute(half, steps.tile * kRowsOfTile + 32 * half, places, stager);
      more = steps.advance();
      if (!more) sums_settle();
    } while (more);
  }
  wave.sums.store(work, wave.first_own, wave.lane(), fresh_arguments()->scale);
}

}  // namespace flydsl::kernels
