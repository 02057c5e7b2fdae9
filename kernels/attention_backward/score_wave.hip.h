// The scores of a wave's own 32 rows with others, computed again, and from them weights and derivatives; any feature.
#pragma once

#include "attention_backward/fragments.hip.h"
#include "attention_backward/own_rows.hip.h"
#include "attention_backward/staging.hip.h"
#include "attention_backward/weights.hip.h"
#include "common/mfma.hip.h"

namespace flydsl::kernels {

template <class Element, int head_dim_qk, int head_dim_v, Pass pass>
struct ScoreWave : OwnRows<head_dim_qk, head_dim_v, pass, true> {
  using Own = OwnRows<head_dim_qk, head_dim_v, pass, true>;
  using Own::lane, Own::own, Own::work;
  using Tile1 = TwoWayTile<head_dim_qk>;
  using Tile2 = TwoWayTile<head_dim_v>;
  static constexpr int kAhead = Own::kFewRegisters ? 2 : kFragmentsAhead;

  using Own::Own;

  // The others of a half tile, from `first_other` on: `ds` their derivatives of the scores, not rounded, and what they are
  // to be multiplied by if it says so; p the weights that meet dout.
  FLYDSL_DEVICE bool derive(i32 half, i32 first_other, TilePlaces tile, u32x4 (&p)[2], f32x16 &ds,
                            f32x16 &slopes) const {
    f32x16 s;
    score_products(typename Tile1::Rows(tile.tile_1, lane()), half, this->own_1, s);
    score_products(typename Tile2::Rows(tile.tile_2, lane()), half, this->own_2, ds);
    const bool masked = !this->meets_all(first_other, 32);
    const Range visible = masked ? this->visible(first_other) : Range{};
    const TilePairs<pass> pairs = {own(), this->first_of_lane(first_other)};
    if constexpr (pass == Pass::keys) {
      const u32 at = 4 * (32 * static_cast<u32>(half) + lane() / 32 * 4);
      return general_weights<Element>(work, pairs, TileRows{tile.lse + at, tile.delta + at}, masked,
                                      visible, s, ds, slopes, p);
    } else {
      return general_weights<Element>(work, pairs, LaneRow{this->own_lse, this->own_delta}, masked,
                                      visible, s, ds, slopes, p);
    }
  }

 private:
  template <class Rows, int steps, bool in_lds>
  FLYDSL_DEVICE void score_products(const Rows &rows, i32 half,
                                    const OwnOperand<steps, in_lds> &own_operand, f32x16 &s) const {
    each_fragment<steps, kAhead>([&](auto n) FLYDSL_INLINED { return rows(half, n); },
                                 [&](auto n, u32x4 fragment) FLYDSL_INLINED {
                                   s = mfma_32x32x16<Element>(fragment, own_operand(n),
                                                              n == 0 ? f32x16{} : s);
                                 });
  }
};

}  // namespace flydsl::kernels
