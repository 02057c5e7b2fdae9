// attention_forward for a whole head-dim class: any head dims up to the class's, and every feature
// behind a wave-uniform switch. The same algorithm as attention_forward.hip.h, simpler: tiles pass
// through registers into one LDS buffer, two barriers a step.
#pragma once

#include "attention_forward/exact.hip.h"
#include "attention_forward/finish_row.hip.h"
#include "attention_forward/general/exact_row.hip.h"
#include "attention_forward/general/staging.hip.h"
#include "attention_forward/outputs.hip.h"
#include "attention_forward/scores.hip.h"
#include "attention_forward/softmax.hip.h"

namespace flydsl::kernels {

template <class Element, int head_dim_qk, int head_dim_v, int keys>
struct GeneralWave {
  using Layout = PaddedTile<head_dim_qk, head_dim_v, keys>;
  // Where registers are scarce, fewer fragments.
  static constexpr int kAhead = head_dim_qk > 256 ? 1 : kFragmentsAhead;
  const GeneralWork &work;
  u32 lane;
  i32 first_row, row;  // of the wave, of this lane
  bool has_terms;      // scores are more than q . k
  bool has_mask, has_dropout;
  float c;  // weights are 2^(score c)
  u32x4 q[head_dim_qk / 16];
  RowState state;
  f32x16 o[head_dim_v / 32] = {};

  FLYDSL_DEVICE GeneralWave(const GeneralWork &work, u32 wave, u32 lane)
      : work(work),
        lane(lane),
        has_terms(fresh_arguments()->score_terms),
        has_mask(fresh_arguments()->visible),
        has_dropout(fresh_arguments()->dropout_threshold != 0),
        c(has_terms ? 1.0f : fresh_arguments()->scale_log2) {
    first_row = work.first_row + static_cast<i32>(wave) * kRowsOfWave;
    row = first_row + static_cast<i32>(lane % 32);
  }

  // As load_queries, the row padded with zeros.
  FLYDSL_DEVICE void load_queries() {
    const Arguments args = fresh_arguments();
    const auto from = work.q_row(work.real_row(row));
    const i32 first = static_cast<i32>(computed_here(lane / 32 * 8));
#pragma unroll
    for (int i = 0; i < head_dim_qk / 16; ++i)
      q[i] = load_widened<Element>(from, 16 * i + first, args->head_dim_qk,
                                   static_cast<Format>(args->q_format));
    apply_sign<Element>(args->q_and, args->q_xor, q);
  }

  FLYDSL_DEVICE void compute(i32 tile, lds_ptr<const char> k_tile, lds_ptr<const char> v_tile) {
    const i32 tile_begin = tile * keys, tile_last = tile_begin + keys - 1;
    const i32 last_row = first_row + kRowsOfWave - 1;
    // Other waves of the work-group may see a tile of which this one sees nothing.
    if (tile_begin > work.last_key(last_row) || tile_last < work.first_key(first_row)) return;
    f32x16 s[keys / 32];
    score_tile<Element, kAhead>(typename Layout::Keys(k_tile, lane), q, s);
    const i32 lane_begin = tile_begin + static_cast<i32>(lane / 32 * 4);
    if (has_terms) add_score_terms<Element>(work, row, EachOfTile<keys / 32>{s, lane_begin});
    if (has_mask) hide_masked(work, row, EachOfTile<keys / 32>{s, lane_begin});
    if (tile_begin < work.first_key(last_row) || tile_last > work.last_key(first_row))
      mask_tile(work.first_key(row) - lane_begin, work.last_key(row) - lane_begin, s);
    u32x4 p[keys / 16];
    weigh_tile<Element>(s, c, state, o, p);
    if (has_dropout) drop_weights(work, row, lane_begin, p);
    const typename Layout::Values values(v_tile, lane);
    ValueFragments<typename Layout::Values, head_dim_v / 32, kAhead> v(values);
    v.template accumulate<Element>(p, o);
  }

  FLYDSL_DEVICE void store() {
    const bool empty = state.highest == -kInfinity;  // and no NaN, or the probe tells
    const RowEnd end = add_sink(work, state.reference, sum_of_halves(state.sum), o);
    const float scale = fresh_arguments()->dropout_scale * value_descale(work);
    const bool in_range = row < work.seq_q;
    u32 exact_rows = untrusted_rows(in_range, empty, state.reference, end.sum, o);

    const bool write = in_range && !(exact_rows >> lane % 32 & 1);
    u32x4 pieces[head_dim_v / 16];
    pieces_of_row<Element>(empty ? 0.0f : scale * end.out_factor * reciprocal(end.sum), o, pieces);
    if (write) {
      const Arguments args = fresh_arguments();
      const auto to = work.out_row(row);
      const i32 first = static_cast<i32>(computed_here(lane / 32 * 8));
#pragma unroll
      for (int piece = 0; piece < head_dim_v / 16; ++piece)
        store_elements(to, 16 * piece + first, args->head_dim_v - work.column, pieces[piece]);
      if (lane < 32) work.store_lse(row, (empty ? end.sink : end.reference + log2(end.sum)) * kLn2);
    }

#pragma unroll 1
    for (; FLYDSL_UNLIKELY(exact_rows != 0); exact_rows &= exact_rows - 1) {
      const i32 exact = first_row + __builtin_ctz(exact_rows);
      exact_row(GeneralRow<Element, head_dim_v>(work, exact), lane);
    }
  }
};

// The output columns from work.column on, head_dim_v of them.
template <class Element, int head_dim_qk, int head_dim_v, int keys>
FLYDSL_DEVICE void compute_columns(const GeneralWork &work, u32 item, lds_ptr<char> k,
                                   lds_ptr<char> v) {
  // The next tile is fetched into registers while one is computed, if they hold it beside the rest.
  constexpr bool ahead = head_dim_qk <= 256;
  GeneralWave<Element, head_dim_qk, head_dim_v, keys> wave(work, uniform(item / kWaveLanes),
                                                           item % kWaveLanes);
  GeneralStager<Element, head_dim_qk, head_dim_v, keys> stager(work, item);

  // Tiles with a key that some row of the work-group sees.
  i32 tile = work.first_key(work.first_row) / keys;
  const i32 end = (work.last_key(work.first_row + kRowsOfWorkGroup - 1) + keys) / keys;
  if (tile < end) {
    if (ahead) stager.begin(tile);
    wave.load_queries();
  }
  for (; tile < end; ++tile) {
    if (ahead) {
      barrier();  // the previous tile has been read
      stager.write(k, v);
      barrier();
      if (tile + 1 < end) stager.begin(tile + 1);
    } else {
      stager.begin_k(tile);
      barrier();
      stager.write_k(k);
      stager.begin_v(tile);
      stager.write_v(v);
      barrier();
    }
    wave.compute(tile, k, v);
  }
  wave.store();
}

// `columns` is what a pass over the keys computes of the class's `head_dim_v`; `keys`: of a tile, 64 or where LDS is small 32.
template <class Element, int head_dim_qk, int head_dim_v, int columns, int keys = kKeysOfTile>
FLYDSL_DEVICE void attention_forward_general(const flydsl_aot_attention_forward_kernarg &) {
  static_assert(head_dim_v % columns == 0, "passes are alike");
  using Layout = PaddedTile<head_dim_qk, columns, keys>;
  static_assert(Layout::k_bytes + Layout::v_bytes <= kLdsBytes, "a work-group's LDS");
  FLYDSL_SHARED static char k_bytes[Layout::k_bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char v_bytes[Layout::v_bytes] __attribute__((aligned(16)));
  const auto k = (lds_ptr<char>)k_bytes, v = (lds_ptr<char>)v_bytes;

  GeneralWork work;
  const u32 item = __builtin_amdgcn_workitem_id_x();
  if (__builtin_amdgcn_workgroup_id_x() == 0 && __builtin_amdgcn_workgroup_id_y() == 0 && item == 0)
    store_dropout_state();
  if (!find_general_work(work)) return;
  work.column = 0;
#pragma unroll 1
  do {
    compute_columns<Element, head_dim_qk, columns, keys>(work, item, k, v);
    work.column += columns;
  } while (columns != head_dim_v && work.column < fresh_arguments()->head_dim_v);
  const u32 lane = item % kWaveLanes;
  const i32 row = work.first_row + static_cast<i32>(item / kWaveLanes) * kRowsOfWave +
                  static_cast<i32>(lane % 32);
  store_kept(work, row, lane / 32);
}

}  // namespace flydsl::kernels
