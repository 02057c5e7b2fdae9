// attention_forward: fused attention for gfx950, matrix cores for both products, one pass over the
// keys (Dao et al. 2022, FlashAttention). Rules of the result:
// include/flydsl_aot/attention_forward.h.
//
// A work-group of 4 or 8 waves computes 32 query rows a wave in steps of 64 keys. Keys and values are
// double-buffered in LDS; a step has one barrier:
//
//   wait for the tile's data | barrier | start fetching the next tile | S^T = K Q^T | softmax | O^T
//   += V^T P^T
//
// A lane owns one query column of S^T and O^T, so row maxima, sums and factors stay in the lane
// (and its partner in the other half of the wave), and P feeds the second product from registers.
//
// Head dims are those of a class: multiples of 32, or less by 8, 16 or 24 (column_staging.hip.h).
#pragma once

#include "attention_forward/class_row.hip.h"
#include "attention_forward/column_staging.hip.h"
#include "attention_forward/exact.hip.h"
#include "attention_forward/finish_row.hip.h"
#include "attention_forward/queries.hip.h"
#include "attention_forward/scores.hip.h"
#include "attention_forward/softmax.hip.h"

namespace flydsl::kernels {

// Of the waves on a SIMD those in their products go first: a wave's softmax has something to issue in every
// slot, and beside it the matrix unit would starve.
FLYDSL_DEVICE void prefer_products(bool in_products) {
  if (in_products)
    __builtin_amdgcn_s_setprio(1);
  else
    __builtin_amdgcn_s_setprio(0);
}

template <class Element, int head_dim_qk, int head_dim_v, Mask mask, Staging staging, int waves>
struct Wave {
  using Layout = ColumnTile<head_dim_qk, head_dim_v>;
  static constexpr int kAhead = head_dim_v > 224 ? 1 : kFragmentsAhead;
  // Where registers are scarce, what a lane can compute again is not kept.
  static constexpr bool kFewRegisters = waves == 8;
  const Problem<mask> &work;
  ColumnStager<head_dim_qk, head_dim_v, staging, waves> stager;
  u32 lane;
  i32 first_row, row;  // of the wave, of this lane
  float scale_log2;
  i32 tiles;                          // of the work-group
  i32 lane_first_key, lane_last_key;  // visible, counted from the lane's first key
  i32 first_row_first_key, last_row_first_key, first_row_last_key, last_row_last_key;
  u32x4 q[head_dim_qk / 16];
  RowState state;
  f32x16 o[head_dim_v / 32] = {};

  FLYDSL_DEVICE Wave(const Problem<mask> &work, u32 wave, u32 lane)
      : work(work),
        stager(work, wave, lane),
        lane(lane),
        scale_log2(fresh_arguments()->scale_log2) {
    first_row = work.first_row + static_cast<i32>(wave) * kRowsOfWave;
    row = first_row + static_cast<i32>(lane % 32);
    set_lane_keys(lane);
    const i32 last_row = first_row + kRowsOfWave - 1;
    first_row_first_key = work.first_key(first_row);
    last_row_first_key = work.first_key(last_row);
    first_row_last_key = work.last_key(first_row);
    last_row_last_key = work.last_key(last_row);
  }

  FLYDSL_DEVICE void set_lane_keys(u32 l) {
    const i32 lane_row = first_row + static_cast<i32>(l % 32);
    const i32 lane_begin = static_cast<i32>(l / 32 * 4);
    lane_first_key = work.first_key(lane_row) - lane_begin;
    lane_last_key = work.last_key(lane_row) - lane_begin;
  }
  FLYDSL_DEVICE u32 fresh_lane() const { return kFewRegisters ? computed_here(lane) : lane; }

  // The scores of a tile whose first key is `first_key`, masked.
  template <bool tail>
  FLYDSL_DEVICE void scores(lds_ptr<char> k_now, i32 first_key, f32x16 (&s)[2]) {
    const i32 last_key = first_key + kKeysOfTile - 1;
    constexpr bool window = mask == Mask::window;
    score_tile<Element, kAhead>(typename Layout::Keys(k_now, fresh_lane()), q, s);
    if (kFewRegisters) set_lane_keys(fresh_lane());
    if (window && (first_key < last_row_first_key || last_key > first_row_last_key))
      mask_tile(lane_first_key - first_key, lane_last_key - first_key, s);
    else if (!window && tail && last_key > first_row_last_key)
      mask_tile(lane_last_key - first_key, s);
  }

  // One tile. The tile is in k_now, v_now; the next one goes to k_next, v_next. A tile that some
  // row does not see completely needs tail = true.
  template <bool tail>
  FLYDSL_DEVICE void step(i32 tile, lds_ptr<char> k_now, lds_ptr<char> v_now, lds_ptr<char> k_next,
                          lds_ptr<char> v_next) {
    stager.landed();
    barrier();
    const bool more = tile + 1 < tiles;
    if (FLYDSL_LIKELY(more)) stager.begin(tile + 1, k_next, v_next);
    const i32 first_key = tile * kKeysOfTile, last_key = first_key + kKeysOfTile - 1;
    constexpr bool window = mask == Mask::window;
    // Other waves of the work-group may see a tile of which this one sees nothing.
    if (!tail || (first_key <= last_row_last_key && (!window || last_key >= first_row_first_key))) {
      f32x16 s[2];
      scores<tail>(k_now, first_key, s);
      prefer_products(false);
      const typename Layout::Values values(v_now, fresh_lane());
      u32x4 p[4];
      float tile_sum = weights_of<Element>(s, scale_log2, state.reference, p);
      if (const u64 rows = exceeding_rows<Element>(tile_sum); FLYDSL_UNLIKELY(rows != 0)) {
        // Once for the first tile, and rarely after: from the scores again, so that none has to be kept.
        scores<tail>(k_now, first_key, s);
        move_reference<Element>(rows >> fresh_lane() & 1, s, scale_log2, state, o);
        tile_sum = weights_of<Element>(s, scale_log2, state.reference, p);
      }
      state.sum += tile_sum;
      fragment_slot();
      ValueFragments<typename Layout::Values, head_dim_v / 32, kAhead> v(values);
      prefer_products(true);
      v.template accumulate<Element>(p, o);
    }
    if (more) stager.finish(k_next, v_next);
    // Out of the loop clang 22.1 copies O, in one instance after 11 of the 12 wait states that reading a
    // matrix result takes (found by the emulator's hazard check).
    if (window && !more) asm volatile("s_nop 7\n\ts_nop 7" ::: "memory");
  }

  FLYDSL_DEVICE void store() {
    const bool empty = work.last_key(row) < work.first_key(row);
    u32 exact_rows = finish_row(work, row, lane, empty, state.reference, state.sum, 1.0f, o,
                                [&](bool write, float factor) FLYDSL_INLINED {
                                  store_class_row<Element>(work.out_row(row), lane, write, factor, o);
                                });

#pragma unroll 1
    for (; FLYDSL_UNLIKELY(exact_rows != 0); exact_rows &= exact_rows - 1)
      exact_row(ClassRow<Element, head_dim_v, mask>(work, first_row + __builtin_ctz(exact_rows)),
                lane);
  }
};

template <class Element, int head_dim_qk, int head_dim_v, Mask mask, Staging staging, int waves>
FLYDSL_DEVICE void attention_forward(const flydsl_aot_attention_forward_kernarg &) {
  using Layout = ColumnTile<head_dim_qk, head_dim_v>;
  constexpr i32 rows = waves * kRowsOfWave;
  // One array per buffer, each named by its own code (the loop is unrolled by two): only then does
  // clang 22 see which copies an LDS read has to wait for.
  FLYDSL_SHARED static char k_even[Layout::k_bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char v_even[Layout::v_bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char k_odd[Layout::k_bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char v_odd[Layout::v_bytes] __attribute__((aligned(16)));
  const auto k0 = (lds_ptr<char>)k_even, v0 = (lds_ptr<char>)v_even;
  const auto k1 = (lds_ptr<char>)k_odd, v1 = (lds_ptr<char>)v_odd;

  Problem<mask> work;
  constexpr u32 sharing = kLdsBytes / (2 * (Layout::k_bytes + Layout::v_bytes));
  if (!find_work(work, rows, sharing)) return;
  const u32 item = __builtin_amdgcn_workitem_id_x();
  Wave<Element, head_dim_qk, head_dim_v, mask, staging, waves> wave(
      work, uniform(item / kWaveLanes), item % kWaveLanes);

  // Tiles with a key that any row of the work-group sees, and tiles that all rows see completely.
  wave.tiles = (work.last_key(work.first_row + rows - 1) + kKeysOfTile) / kKeysOfTile;
  if (wave.tiles < 0) wave.tiles = 0;

  prefer_products(true);
  i32 tile = work.first_tile();
  if (tile < wave.tiles) {
    wave.stager.begin(tile, k0, v0);
    load_class_queries<Element>(work, wave.row, wave.lane, wave.q);
    wave.stager.finish(k0, v0);
  }
  if constexpr (mask != Mask::window) {
    // (Few tiles of a window are full, so all pass the loop that masks.)
    const i32 full_tiles = (work.last_key(work.first_row) + 1) / kKeysOfTile;
    for (; tile + 2 <= full_tiles; tile += 2) {
      wave.template step<false>(tile, k0, v0, k1, v1);
      wave.template step<false>(tile + 1, k1, v1, k0, v0);
    }
  }
  for (; tile < wave.tiles; tile += 2) {
    wave.template step<true>(tile, k0, v0, k1, v1);
    if (tile + 1 < wave.tiles) wave.template step<true>(tile + 1, k1, v1, k0, v0);
  }
  wave.store();
}

}  // namespace flydsl::kernels
