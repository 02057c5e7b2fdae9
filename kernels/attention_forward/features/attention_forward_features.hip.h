// attention_forward with every feature on 16-bit elements in 16-byte aligned rows: the algorithm and the tiles of
// attention_forward.hip.h, and between the products what a problem has of soft cap, ALiBi, bias, boolean
// mask and dropout, each a straight piece of code for a whole tile behind one wave-uniform branch.
#pragma once

#include "attention_forward/attention_forward.hip.h"
#include "attention_forward/features/aside.hip.h"
#include "attention_forward/features/copies.hip.h"
#include "attention_forward/features/dropout.hip.h"
#include "attention_forward/features/terms.hip.h"
#include "attention_forward/features/weights.hip.h"
#include "attention_forward/general/exact_row.hip.h"

namespace flydsl::kernels {

template <class Terms>
constexpr bool kHasPairs = true;
template <class Element>
constexpr bool kHasPairs<PairTerms<Element, Pairs::none>> = false;

template <class Element, int head_dim_qk, int head_dim_v>
struct FeatureWave {
  using Layout = ColumnTile<head_dim_qk, head_dim_v>;
  static constexpr int kAhead = kFragmentsAhead;
  // Put aside: the work, what dropout needs, the soft cap, and the wave's number.
  Aside aside;
  static constexpr int kDropoutAside = Aside::words_of<GeneralWork>;
  static constexpr int kCapAside = kDropoutAside + Aside::words_of<DropoutScalars>;
  static constexpr int kWaveAside = kCapAside + Aside::words_of<SoftCap>;
  enum Has : u32 { kCap = 1, kAlibi = 2, kDropout = 4 };
  u32 has;
  u32 row_in_problem;  // for dropout
  u32 lane;
  i32 tiles;  // of the work-group
  float c;  // weights are 2^(s c + ...); a soft cap leaves s in units of log2
  float slope_log2, slope_ratio;  // the latter in units of what c multiplies
  // Where rows sit on the keys' axis: the wave's first and last, and this lane's, counted from its first key of tile 0.
  i32 first_position, last_position, lane_position;
  i32 first_row_first_key, last_row_first_key, first_row_last_key, last_row_last_key;
  i32 lane_first_key, lane_last_key;  // counted in the same way
  u32x4 q[head_dim_qk / 16];
  RowState state;
  f32x16 o[head_dim_v / 32] = {};

  FLYDSL_DEVICE FeatureWave(const GeneralWork &work, u32 wave, u32 lane)
      : row_in_problem(dropout_row(work, row_of(work, wave, lane))), lane(lane) {
    const Arguments args = fresh_arguments();
    has = (args->softcap_log2 > 0.0f ? kCap : 0) | (args->alibi_slopes ? kAlibi : 0) |
          (args->dropout_threshold ? kDropout : 0);
    c = has & kCap ? 1.0f : args->scale_log2;
    if (has & kAlibi) {
      slope_log2 =
          kLog2E *
          ((global_ptr<const float>)args
               ->alibi_slopes)[work.batch * args->alibi_stride_b + work.head * args->alibi_stride_h];
      slope_ratio = slope_log2 / c;
    }
    const i32 row = row_of(work, wave, lane), first_row = row_of(work, wave, 0);
    const i32 last_row = first_row + kRowsOfWave - 1;
    const i32 lane_begin = static_cast<i32>(lane / 32 * 4);
    first_row_first_key = work.first_key(first_row);
    last_row_first_key = work.first_key(last_row);
    first_row_last_key = work.last_key(first_row);
    last_row_last_key = work.last_key(last_row);
    lane_first_key = work.first_key(row) - lane_begin;
    lane_last_key = work.last_key(row) - lane_begin;
    first_position = work.real_row(first_row) + work.diagonal;
    last_position = work.real_row(last_row) + work.diagonal;
    lane_position = work.real_row(row) + work.diagonal - lane_begin;
    tiles =
        (work.last_key(work.first_row + kRowsOfWorkGroup - 1) + kKeysOfTile) / kKeysOfTile;
    state.reference = kUnseen;
    aside.put<0>(work);
    aside.put<kDropoutAside>(dropout_scalars());
    aside.put<kWaveAside>(wave);
    aside.put<kCapAside>(SoftCap{2.0f * kLog2E * args->softcap_ratio, args->softcap_log2});
  }
  static FLYDSL_DEVICE i32 row_of(const GeneralWork &work, u32 wave, u32 lane) {
    return work.first_row + static_cast<i32>(wave) * kRowsOfWave + static_cast<i32>(lane % 32);
  }

  // As load_class_queries.
  FLYDSL_DEVICE void load_queries(const GeneralWork &work, i32 row) {
    constexpr int chunks = head_dim_qk / 16;
    const Arguments args = fresh_arguments();
    const i32 first = static_cast<i32>(16 * (lane / 32));
    const auto from = work.q_row(work.real_row(row)) + first;
#pragma unroll
    for (int i = 0; i < chunks; ++i) {
      q[i] = u32x4{};
      if (i < chunks - 2 || 32 * i + first < 2 * args->head_dim_qk)
        q[i] = load_16_bytes(from + 32 * i);
    }
    apply_sign<Element>(args->q_and, args->q_xor, q);
  }

  template <class Copies, class Terms>
  FLYDSL_DEVICE void step(Copies &copies, Terms &terms, i32 tile, lds_ptr<char> k_now, lds_ptr<char> v_now,
                          lds_ptr<char> k_next, lds_ptr<char> v_next) {
    wait_for_copies();
    barrier();
    const bool more = tile + 1 < tiles;
    if (FLYDSL_LIKELY(more)) copies.begin(tile + 1, tiles, k_next, v_next);
    const i32 first_key = tile * kKeysOfTile, last_key = first_key + kKeysOfTile - 1;
    // Other waves of the work-group may see a tile of which this one sees nothing. (With pairs to fetch it computes it:
    // one place that fetches the next ones, or clang 22.1 spills.)
    if (kHasPairs<Terms> || (first_key <= last_row_last_key && last_key >= first_row_first_key)) {
      f32x16 s[2];
      score_tile<Element, kAhead>(typename Layout::Keys(k_now, lane), q, s);
      prefer_products(false);
      u32x4 p[4];
      weigh(terms, first_key, last_key, s, p);
      if (FLYDSL_LIKELY(more)) terms.begin(tile + 1);
      fragment_slot();
      const typename Layout::Values values(v_now, lane);
      ValueFragments<typename Layout::Values, head_dim_v / 32, kAhead> v(values);
      prefer_products(true);
      v.template accumulate<Element>(p, o);
    }
  }

  template <class Terms>
  FLYDSL_DEVICE void weigh(const Terms &terms, i32 first_key, i32 last_key, f32x16 (&s)[2], u32x4 (&p)[4]) {
    const bool cut = first_key < last_row_first_key || last_key > first_row_last_key;
    float shift = 0.0f;
    if (has & kCap) aside.get<kCapAside, SoftCap>().apply(s);
    if (has & kAlibi) {
      const float from = static_cast<float>(lane_position - first_key);
      const bool left = last_key <= first_position;
      if (!cut && (left || first_key >= last_position))
        shift = add_distances(left, slope_log2, slope_ratio, from, s);
      else
        add_distances(slope_ratio, from, s);
    }
    if constexpr (Terms::is_bias)
      terms.add_bias(kLog2E / c, s);
    else if constexpr (kHasPairs<Terms>)
      terms.hide(s);
    if (cut) mask_tile(lane_first_key - first_key, lane_last_key - first_key, s);
    weigh_shifted<Element>(s, c, shift, lane, state, o, p);
    if (has & kDropout) drop_weights_of(aside.get<kDropoutAside, DropoutScalars>(), row_in_problem, lane, first_key, p);
  }

  // All tiles, from `tile` on.
  template <Pairs pairs, bool paged>
  FLYDSL_DEVICE void run(const GeneralWork &work, u32 wave, i32 tile, lds_ptr<char> k0, lds_ptr<char> v0, lds_ptr<char> k1,
                         lds_ptr<char> v1) {
    FeatureCopies<head_dim_qk, head_dim_v, paged> copies(work, wave, lane, tile);
    const i32 row = row_of(work, wave, lane);
    PairTerms<Element, pairs> terms(work, row, lane);
    if (tile < tiles) {
      copies.look_up(tile);
      copies.begin(tile, tiles, k0, v0);
      terms.begin(tile);
      load_queries(work, row);
    }
    for (; tile < tiles; tile += 2) {
      step(copies, terms, tile, k0, v0, k1, v1);
      if (tile + 1 < tiles) step(copies, terms, tile + 1, k1, v1, k0, v0);
    }
    if constexpr (PairTerms<Element, pairs>::is_bias) {
      const bool suspect = seen_nothing() && lane_first_key <= lane_last_key;
      if (FLYDSL_UNLIKELY(ballot(suspect) != 0) && (rows_with_finite_bias(terms) >> lane & 1))
        state.sum = suspect ? __builtin_nanf("") : state.sum;  // for the slow path
    }
  }

  FLYDSL_DEVICE bool seen_nothing() const {
    return state.reference == kUnseen && sum_of_halves(state.sum) == 0.0f;
  }
  // Of a row that has seen nothing: whether some key's bias is finite, since those below -2.358e38 |scale| are -inf in the
  // units of s.
  template <class Terms>
  FLYDSL_DEVICE u64 rows_with_finite_bias(Terms &terms) {
    float top = -kInfinity;
#pragma unroll 1
    for (i32 tile = first_row_first_key / kKeysOfTile; tile * kKeysOfTile <= last_row_last_key; ++tile) {
      f32x16 s[2] = {};
      terms.begin(tile);
      terms.add_bias(kLog2E, s);
      mask_tile(lane_first_key - tile * kKeysOfTile, lane_last_key - tile * kKeysOfTile, s);
#pragma unroll
      for (const f32x16 &block : s) {
#pragma unroll
        for (int i = 0; i < 16; ++i) top = larger(top, block[i]);
      }
    }
    const u64 lanes = ballot(top > -kInfinity);
    return lanes | lanes << 32 | lanes >> 32;
  }

  FLYDSL_DEVICE void store() {
    const u32 wave = aside.get<kWaveAside, u32>();
    const GeneralWork work = aside.get<0, GeneralWork>();
    const i32 row = row_of(work, wave, lane);
    const float all = sum_of_halves(state.sum);
    const bool empty = state.reference == kUnseen && all == 0.0f;
    const RowEnd end = add_sink(work, state.reference, all, o);
    const bool in_range = row < work.seq_q;
    u32 exact_rows = untrusted_rows(in_range, empty, state.reference, end.sum, o);
    const bool write = in_range && !(exact_rows >> lane % 32 & 1);
    const float scale = fresh_arguments()->dropout_scale;
    store_class_row<Element>(work.out_row(row), lane, write,
                             empty ? 0.0f : scale * end.out_factor * reciprocal(end.sum), o);
    if (write && lane < 32)
      work.store_lse(row, (empty ? end.sink : end.reference + log2(end.sum)) * kLn2);

#pragma unroll 1
    for (; FLYDSL_UNLIKELY(exact_rows != 0); exact_rows &= exact_rows - 1) {
      const GeneralWork here = aside.get<0, GeneralWork>();
      const i32 exact = row_of(here, aside.get<kWaveAside, u32>(), 0) + __builtin_ctz(exact_rows);
      exact_row(GeneralRow<Element, head_dim_v>(here, exact), lane);
    }
    const GeneralWork here = aside.get<0, GeneralWork>();
    store_kept(here, row_of(here, aside.get<kWaveAside, u32>(), lane), lane / 32);
  }
};

template <class Element, int head_dim_qk, int head_dim_v>
FLYDSL_DEVICE void attention_forward_features(const flydsl_aot_attention_forward_kernarg &) {
  using Layout = ColumnTile<head_dim_qk, head_dim_v>;
  // As in attention_forward: one array per buffer, each named by its own code.
  FLYDSL_SHARED static char k_even[Layout::k_bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char v_even[Layout::v_bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char k_odd[Layout::k_bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char v_odd[Layout::v_bytes] __attribute__((aligned(16)));
  const auto k0 = (lds_ptr<char>)k_even, v0 = (lds_ptr<char>)v_even;
  const auto k1 = (lds_ptr<char>)k_odd, v1 = (lds_ptr<char>)v_odd;

  const u32 item = __builtin_amdgcn_workitem_id_x();
  if (__builtin_amdgcn_workgroup_id_x() == 0 && __builtin_amdgcn_workgroup_id_y() == 0 && item == 0)
    store_dropout_state();
  GeneralWork work;
  if (!find_general_work(work)) return;
  work.column = 0;

  // Tiles with a key that some row of the work-group sees.
  i32 tile = work.first_key(work.first_row) / kKeysOfTile;
  const u32 number = uniform(item / kWaveLanes);
  FeatureWave<Element, head_dim_qk, head_dim_v> wave(work, number, item % kWaveLanes);
  prefer_products(true);
  // A loop for each: in one for all of them clang 22.1 spills.
  const Pairs pairs = pairs_of_problem();
  const auto run = [&]<Pairs p, bool paged>() {
    wave.template run<p, paged>(work, number, tile, k0, v0, k1, v1);
  };
  if (pairs == Pairs::fp32_bias)
    run.template operator()<Pairs::fp32_bias, false>();
  else if (pairs == Pairs::element_bias)
    run.template operator()<Pairs::element_bias, false>();
  else if (pairs == Pairs::visible)
    run.template operator()<Pairs::visible, false>();
  else if (fresh_arguments()->block_table)
    run.template operator()<Pairs::none, true>();
  else
    run.template operator()<Pairs::none, false>();
  wave.store();
}

}  // namespace flydsl::kernels
