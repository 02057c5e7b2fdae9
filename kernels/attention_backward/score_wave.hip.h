// The scores of a wave's own 32 rows with others, computed again, and from them weights and derivatives; any feature.
#pragma once

#include "attention_backward/fragments.hip.h"
#include "attention_backward/own_rows.hip.h"
#include "attention_backward/staging.hip.h"
#include "attention_backward/weights.hip.h"
#include "common/mfma.hip.h"

namespace flydsl::kernels {

// From both products of 32 others, from `first_other` on, half `half` of a tile: `ds` becomes their derivatives of the scores, not
// rounded, `slopes` what they are to be multiplied by if it says so; p the weights that meet dout.
template <class Element, Pass pass, bool few_registers>
FLYDSL_DEVICE bool weights_of_products(const OwnPlaces<pass, few_registers> &own, i32 half,
                                       i32 first_other, TilePlaces tile, f32x16 &s, f32x16 &ds,
                                       f32x16 &slopes, u32x4 (&p)[2]) {
  const bool masked = !own.meets_all(first_other, 32);
  const Range visible = masked ? own.visible(first_other) : Range{};
  const TilePairs<pass> pairs = {own.own(), own.first_of_lane(first_other)};
  if constexpr (pass == Pass::keys) {
    const u32 at = 4 * (32 * static_cast<u32>(half) + own.lane() / 32 * 4);
    return general_weights<Element>(own.work, pairs, TileRows{tile.lse + at, tile.delta + at},
                                    masked, visible, s, ds, slopes, p);
  } else {
    return general_weights<Element>(own.work, pairs, LaneRow{own.own_lse, own.own_delta}, masked,
                                    visible, s, ds, slopes, p);
  }
}

template <class Element, int head_dim_qk, int head_dim_v, Pass pass>
struct ScoreWave : OwnRows<head_dim_qk, head_dim_v, pass, true> {
  using Own = OwnRows<head_dim_qk, head_dim_v, pass, true>;
  using Own::lane;
  using Tile1 = TwoWayTile<head_dim_qk>;
  using Tile2 = TwoWayTile<head_dim_v>;
  static constexpr int kAhead = Own::kFewRegisters ? 2 : kFragmentsAhead;
  using Stager = StagerThroughRegisters<pass, head_dim_qk, head_dim_v>;
  static constexpr i32 kOwnOfGroup = kOwnOfWorkGroup;
  static constexpr int lds_bytes = 4 * Own::Own2::lds_bytes;  // of the work-group
  static constexpr int tile_2_at = Tile1::bytes, tiles_bytes = tile_2_at + Tile2::bytes;

  using Own::Own;

  static FLYDSL_DEVICE void bring(const Stager &stager, TilePlaces to) {
    barrier();  // the previous tile has been read
    stager.write(to);
    barrier();
  }

  // The others of a half tile, from `first_other` on: see weights_of_products.
  FLYDSL_DEVICE bool derive(i32 half, i32 first_other, TilePlaces tile, const Stager &,
                            u32x4 (&p)[2], f32x16 &ds, f32x16 &slopes) const {
    f32x16 s;
    score_products(typename Tile1::Rows(tile.tile_1, lane()), half, this->own_1, s);
    score_products(typename Tile2::Rows(tile.tile_2, lane()), half, this->own_2, ds);
    return weights_of_products<Element>(*this, half, first_other, tile, s, ds, slopes, p);
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
