// What a wave needs to compute the scores of its own 32 rows with others again, and from them weights and derivatives.
#pragma once

#include "attention_backward/own_operand.hip.h"
#include "attention_backward/staging.hip.h"
#include "attention_backward/weights.hip.h"
#include "attention_forward/fragments.hip.h"
#include "common/mfma.hip.h"

namespace flydsl::kernels {

constexpr i32 kOwnOfWave = 32;
constexpr i32 kOwnOfWorkGroup = 4 * kOwnOfWave;

// use(n, fragment(n)) for n < count, each fragment read some products before its use.
template <int count, int ahead, class Fragment, class Use>
FLYDSL_DEVICE void each_fragment(const Fragment &fragment, const Use &use) {
  u32x4 held[ahead + 1];
#pragma unroll
  for (int n = 0; n < ahead; ++n) {
    if (n < count) held[n] = fragment(n);
  }
#pragma unroll
  for (int n = 0; n < count; ++n) {
    if (n + ahead < count) held[(n + ahead) % (ahead + 1)] = fragment(n + ahead);
    fragment_slot();
    use(n, held[n % (ahead + 1)]);
    fragment_slot();
  }
}

template <class Element, int head_dim_qk, int head_dim_v, Pass pass, bool general>
struct ScoreWave {
  using Tile1 = TwoWayTile<head_dim_qk>;
  using Tile2 = TwoWayTile<head_dim_v>;
  // Keys have both gradients to accumulate; with the features' code the largest classes leave registers for one operand only.
  static constexpr bool kFewRegisters = pass == Pass::keys && head_dim_qk + head_dim_v > 400;
  using Own1 = OwnOperand<head_dim_qk / 16, false>;
  using Own2 = OwnOperand<head_dim_v / 16, general && kFewRegisters>;
  static constexpr int kAhead = kFewRegisters ? 2 : kFragmentsAhead;
  const Work<pass> &work;
  u32 kept_lane;
  i32 first_own;  // of the wave
  Range seen_by_any, seen_by_all;
  float c;
  Own1 own_1;
  Own2 own_2;
  float own_lse = 0.0f, own_delta = 0.0f;

  FLYDSL_DEVICE ScoreWave(const Work<pass> &work, u32 wave, u32 lane, lds_ptr<char> own_of_group)
      : work(work),
        kept_lane(lane),
        c(signed_scale_log2()),
        own_1(nullptr, lane),
        own_2(own_of_group + wave * Own2::lds_bytes, lane) {
    take_own(work.first_own + static_cast<i32>(wave) * kOwnOfWave);
  }

  // What a lane can compute again is not kept where registers are scarce.
  FLYDSL_DEVICE u32 lane() const { return kFewRegisters ? lane_number_here() : kept_lane; }
  FLYDSL_DEVICE i32 own() const { return first_own + static_cast<i32>(lane() % 32); }

  FLYDSL_DEVICE void take_own(i32 first) {
    first_own = first;
    const Range of_first = work.others_of(first_own),
                of_last = work.others_of(first_own + kOwnOfWave - 1);
    seen_by_any = {of_first.first, of_last.last};
    seen_by_all = {of_last.first, of_first.last};
  }

  FLYDSL_DEVICE void load_own() {
    const i32 row = work.real_own(own());
    own_1.template load<!general>(work.own_row_1(row), fresh_arguments()->head_dim_qk, lane());
    own_2.template load<!general>(work.own_row_2(row), fresh_arguments()->head_dim_v, lane());
    if constexpr (pass == Pass::queries) {
      own_lse = work.lse_of_rows()[own()];
      own_delta = work.delta_of_rows()[own()];
    }
  }

  // Other waves of the work-group may meet others of which this one sees none.
  FLYDSL_DEVICE bool meets(i32 first_other) const {
    return first_other <= seen_by_any.last && first_other + 31 >= seen_by_any.first;
  }

  // The others of a half tile, from `first_other` on: `ds` their derivatives of the scores, not rounded, and what they are
  // to be multiplied by if it says so; p the weights that meet dout, but for dropout's factor.
  FLYDSL_DEVICE bool derive(i32 half, i32 first_other, TilePlaces tile, u32x4 (&p)[2], f32x16 &ds,
                            f32x16 &slopes) const {
    const bool masked = first_other < seen_by_all.first || first_other + 31 > seen_by_all.last;
    const i32 first_of_lane = first_other + static_cast<i32>(lane() / 32 * 4);
    Range visible = {};
    if (masked) {
      const Range all = work.others_of(own());
      visible = {all.first - first_of_lane, all.last - first_of_lane};
    }
    f32x16 s;
    score_products(typename Tile1::Rows(tile.tile_1, lane()), half, own_1, s);
    score_products(typename Tile2::Rows(tile.tile_2, lane()), half, own_2, ds);
    if constexpr (pass == Pass::keys) {
      const u32 at = 4 * (32 * static_cast<u32>(half) + lane() / 32 * 4);
      return weigh(TileRows{tile.lse + at, tile.delta + at}, first_of_lane, masked, visible, s, ds,
                   p, slopes);
    } else {
      return weigh(LaneRow{own_lse, own_delta}, first_of_lane, masked, visible, s, ds, p, slopes);
    }
  }

 private:
  template <class Rows, int steps, bool in_lds>
  FLYDSL_DEVICE void score_products(const Rows &rows, i32 half,
                                    const OwnOperand<steps, in_lds> &own, f32x16 &s) const {
    each_fragment<steps, kAhead>([&](int n) { return rows(half, n); },
                                 [&](int n, u32x4 fragment) {
                                   s = mfma_32x32x16<Element>(fragment, own(n),
                                                              n == 0 ? f32x16{} : s);
                                 });
  }
  template <class Rows>
  FLYDSL_DEVICE bool weigh(const Rows &rows, i32 first_of_lane, bool masked, Range visible,
                           f32x16 &s, f32x16 &dp, u32x4 (&p)[2], f32x16 &slopes) const {
    if constexpr (general) {
      const TilePairs<pass> pairs = {own(), first_of_lane};
      return general_weights<Element>(work, pairs, rows, masked, visible, s, dp, slopes, p);
    } else {
      if (masked)
        plain_weights<Element, true>(c, rows, visible, s, dp, p);
      else
        plain_weights<Element, false>(c, rows, visible, s, dp, p);
      return false;
    }
  }
};

}  // namespace flydsl::kernels
