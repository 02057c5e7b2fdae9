// attention_forward for long rows of head dims 128 and 192 (of V 128): the formula and the rules of the result are those of
// attention_forward.hip.h, the schedule is for the matrix unit to wait for nothing.
//
// A work-group of 4 waves, one a SIMD, computes 256 query rows, 64 a wave: each fragment of K or V that
// is read from LDS meets two halves of 32 rows, which halves what the LDS has to move. One step:
//
//   O^T += V^T P^T of tile i     | exponents, some weights of tile i + 1
//   S^T = K Q^T of tile i + 2    | the other weights of tile i + 1, their sum, P
//
// The pipeline goes on through the items of the work-group: after the last tile comes the first one of the
// next item. Vector instructions stand between the matrix instructions in the order in which they are to be issued.
#pragma once

#include "attention_forward/class_row.hip.h"
#include "attention_forward/exact.hip.h"
#include "attention_forward/pipelined/finish.hip.h"
#include "attention_forward/pipelined/softmax.hip.h"
#include "attention_forward/pipelined/tiles.hip.h"
#include "attention_forward/queries.hip.h"
#include "attention_forward/scores.hip.h"

namespace flydsl::kernels::pipelined {

constexpr int kAhead = 3;  // fragments that are read before they are needed

FLYDSL_DEVICE void slot() {
  __builtin_amdgcn_sched_barrier(0);
}

template <class Element, int head_dim, int head_dim_v, Mask mask>
struct Wave {
  static_assert(head_dim_v == 128, "accumulators.hip.h");
  using Keys = KeyLayout<head_dim>;
  using Values = TileLayout<head_dim_v>;
  // Pairs of matrix instructions, one for each half of the rows: a fragment of K or V serves both.
  static constexpr int kScoreSteps = Keys::score_steps;
  static constexpr int kScorePairs = 2 * kScoreSteps, kValuePairs = 4 * Values::value_blocks;
  struct Buffers {
    lds_ptr<char> k, v;
  };
  Item<mask> work, coming;  // this item, the next one
  u32 more = 0;             // 1: there is a next one
  i64 k_row_bytes, v_row_bytes;
  KeySource<head_dim> keys;  // at the tile that is copied next, as values
  ValueSource<head_dim_v> values;
  typename KeySource<head_dim>::Skipped k_skipped;
  i64 v_skipped;
  u32 wave, lane;
  float c;  // weights are 2^(score c - reference)
  HalfTile<Element> half[2];
  f32x16 next[2][2];  // scores of the tile after that in `half`
  float done_reference[2], done_sum[2];
  u32x4 ring[kAhead + 1];
  u64 exceeding;  // lanes whose tile sum is too large
  OwnRows own;

  FLYDSL_DEVICE Wave(const Item<mask> &first, u32 wave, u32 lane, lds_ptr<char> own_rows)
      : work(first),
        k_row_bytes(2 * fresh_arguments()->k_stride_s),
        v_row_bytes(2 * fresh_arguments()->v_stride_s),
        keys(first.here().k_row(0), 0, k_row_bytes, wave, lane),
        values(first.here().v_row(0), 0, v_row_bytes, wave, lane),
        k_skipped(k_row_bytes),
        v_skipped(in_lanes(decltype(values)::skipped(v_row_bytes))),
        wave(wave),
        lane(lane),
        own(own_rows, wave, lane) {
    c = fresh_arguments()->scale_log2;
  }

  // Queries: the first 128 elements pass through LDS, a few lines at a time; others go straight to registers.
  static constexpr int kFetchedSteps = OwnRows::Layout::score_steps;
  FLYDSL_DEVICE void begin_queries(const Item<mask> &item) {
    own.begin_queries(item.here().q_row(0), 2 * fresh_arguments()->q_stride_s, item.first_row,
                      item.seq_q - 1);
  }
  FLYDSL_DEVICE void load_q(const Item<mask> &item) {
    if constexpr (kScoreSteps > kFetchedSteps) {
      const auto row = [&](int h) {
        return item.here().q_row(item.real_row(item.lane_row(wave, h, lane))) +
               16 * (fresh_lane(lane) / 32);
      };
      const auto q0 = row(0), q1 = row(1);
      each<kScoreSteps - kFetchedSteps>([&](auto number) {
        constexpr int step = kFetchedSteps + decltype(number)::value;
        load_hidden<q_register<kScoreSteps>(0, step), 32 * step>(q0);
      });
      each<kScoreSteps - kFetchedSteps>([&](auto number) {
        constexpr int step = kFetchedSteps + decltype(number)::value;
        load_hidden<q_register<kScoreSteps>(1, step), 32 * step>(q1);
      });
    }
  }
  FLYDSL_DEVICE void read_q() {
    const lds_ptr<const char> rows = own.lane_rows();
    each<kFetchedSteps>([&](auto number) {
      constexpr int step = decltype(number)::value;
      OwnRows::read_query<q_register<kScoreSteps>(0, step), 0, step>(rows);
      OwnRows::read_query<q_register<kScoreSteps>(1, step), 1, step>(rows);
    });
  }
  // When its loads have landed.
  FLYDSL_DEVICE void finish_q() {
    const Arguments args = fresh_arguments();
    const u32 q_and = args->q_and, q_xor = args->q_xor;
    if (FLYDSL_LIKELY(q_and == ~0u && q_xor == 0)) return;
    each<2 * kScoreSteps>([&](auto number) {
      constexpr int first = q_register<kScoreSteps>(0, 0) + 4 * decltype(number)::value;
      u32x4 q[1];
      each<4>([&](auto i) {
        q[0][decltype(i)::value] = bits_as<u32>(read_hidden<first + decltype(i)::value>());
      });
      apply_sign<Element>(q_and, q_xor, q);
      each<4>([&](auto i) { write_hidden<first + decltype(i)::value>(q[0][decltype(i)::value]); });
    });
    asm volatile("s_nop 3");
    keep_hidden();
  }
  FLYDSL_DEVICE void clear_o() {
    each<128>([](auto number) { write_hidden<decltype(number)::value>(0); });
  }

  // ---- fragments: K by (key block, step), V by (step, block), one a pair. Inline assembly: clang 22 would wait
  // for all copies before some of the reads, and counts copies as LDS reads, so that it waits too little
  // for others. wait_for_reads() is what there is; nothing may touch a fragment before it.
  template <int n>
  FLYDSL_DEVICE void read_k(const KeyLanes<head_dim> &k_lanes) {
    constexpr int step = n % kScoreSteps;
    asm volatile("ds_read_b128 %0, %1 offset:%2"
                 : "=v"(ring[n % (kAhead + 1)])
                 : "v"(Keys::in_first(step) ? k_lanes.first : k_lanes.second),
                   "n"(Keys::immediate(n / kScoreSteps, step)));
  }
  template <int n>
  FLYDSL_DEVICE void read_v(lds_ptr<const char> v_lane) {
    u32x2 low, high;
    asm volatile("ds_read_b64_tr_b16 %0, %1 offset:%2"
                 : "=v"(low)
                 : "v"(v_lane), "n"(Values::v_immediate(n / 4, 0, n % 4)));
    asm volatile("ds_read_b64_tr_b16 %0, %1 offset:%2"
                 : "=v"(high)
                 : "v"(v_lane), "n"(Values::v_immediate(n / 4, 1, n % 4)));
    ring[n % (kAhead + 1)] = u32x4{low[0], low[1], high[0], high[1]};
  }
  // Waits until at most `younger` LDS reads are in flight.
  template <int younger>
  FLYDSL_DEVICE void wait_for_reads() {
    __builtin_amdgcn_s_waitcnt(0xc07f | younger << 8);
  }

  // ---- copies of a tile's K or V: lines of the wave
  FLYDSL_DEVICE void copy_tile_k(i32 tile, lds_ptr<char> to) {
    const typename KeySource<head_dim>::Places places(wave);
    KeySource<head_dim> from = keys.clamped(tile, work.seq_k, k_row_bytes, wave, lane);
    keys.next_tile(k_row_bytes);
#pragma unroll
    for (int line = 0; line < keys.lines; ++line) from.copy_clamped(line, k_row_bytes, to, places);
  }
  FLYDSL_DEVICE void copy_tile_v(i32 tile, lds_ptr<char> to) {
    ValueSource<head_dim_v> from = values.clamped(tile, work.seq_k, v_row_bytes, wave, lane);
    values.next += kKeysOfTile * v_row_bytes;
#pragma unroll
    for (int line = 0; line < values.lines; ++line)
      from.copy_clamped(line, v_row_bytes, to + values.place(wave));
  }

  // ---- vector work beside matrix instruction m of the first phase: 64 exponents, some weights
  static constexpr int kEarlyWeights = head_dim == 128 ? 36 : 26;
  template <int first, int last, class Body>
  static FLYDSL_DEVICE void range(Body body) {
    each<last - first>([&](auto i) { body(Number<first + decltype(i)::value>{}); });
  }
  template <int w>
  FLYDSL_DEVICE void weigh() {
    half[w % 2].template weigh<w / 2>();
  }
  template <int m>
  FLYDSL_DEVICE void early_work() {
    constexpr auto before = [](int n) {
      if (kEarlyWeights < 32) return n * kEarlyWeights / 32;
      // One beside each, a second one where neither reads nor copies are (pairs 9, 11, 13 and 15).
      return n == 0 ? 0 : n - 1 + (n > 19) + (n > 23) + (n > 27) + (n > 31) + (n > 31);
    };
    range<before(m), before(m + 1)>([&](auto w) { weigh<decltype(w)::value>(); });
    half[0].template exponent<m>(c);
    half[1].template exponent<m>(c);
  }
  // Of the second phase: the other weights, 64 adds, 32 pairs; done before its end, where it is looked at the sum.
  static constexpr int kLateGaps = 2 * kScorePairs - 2;
  template <int m>
  FLYDSL_DEVICE void late_work() {
    if constexpr (kEarlyWeights + m < 64) weigh<kEarlyWeights + m>();
    if constexpr (m < kLateGaps) {
      range<64 * m / kLateGaps, 64 * (m + 1) / kLateGaps>([&](auto number) {
        constexpr int a = decltype(number)::value;
        half[a % 2].template add<a / 2>();
      });
      range<32 * m / kLateGaps, 32 * (m + 1) / kLateGaps>([&](auto number) {
        constexpr int n = decltype(number)::value;
        half[n % 2].template round<n / 2>();
      });
    }
    if constexpr (m == kLateGaps) {
      exceeding = ballot(larger(half[0].tile_sum, half[1].tile_sum) > kLargestTileSum<Element>);
      by_now(exceeding);
    }
  }

  // S^T of the tile at k_lanes into `next`; work(m) stands beside matrix instruction m, ahead(n) beside pair n. `goes_on`: ahead
  // frees the tile in pair kExchange.
  static constexpr int kExchange = kScorePairs - kAhead;
  template <bool goes_on, class Work, class Ahead>
  FLYDSL_DEVICE void score_tile(const KeyLanes<head_dim> &k_lanes, Work vector_work, Ahead ahead) {
    each<kScorePairs>([&](auto number) {
      constexpr int n = decltype(number)::value;
      slot();
      constexpr bool all_read = n > kExchange;
      if constexpr (n % 2 == 0 && (!all_read || !goes_on)) wait_for_reads<all_read ? 0 : 1>();
      const u32x4 k = ring[n % (kAhead + 1)];
      score<Element, kScoreSteps, 0, n % kScoreSteps>(k, next[0][n / kScoreSteps]);
      slot();
      if constexpr (n + kAhead < kScorePairs) read_k<n + kAhead>(k_lanes);
      slot();
      vector_work(Number<2 * n>{});
      slot();
      score<Element, kScoreSteps, 1, n % kScoreSteps>(k, next[1][n / kScoreSteps]);
      slot();
      ahead(number);
      slot();
      vector_work(Number<2 * n + 1>{});
    });
    keep_hidden();
    slot();
  }
  // O^T += V^T P^T. `goes_on`: ahead reads fragments of K in the last kAhead pairs.
  template <bool goes_on, class Work, class Ahead>
  FLYDSL_DEVICE void accumulate(lds_ptr<const char> v_lane, Work vector_work, Ahead ahead) {
    u32x4 p[2][4];
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
      for (int i = 0; i < 4; ++i) p[h][i] = half[h].p[i];
    each<kValuePairs>([&](auto number) {
      constexpr int n = decltype(number)::value;
      slot();
      constexpr bool all_read = n > kValuePairs - kAhead;
      if constexpr (n % 2 == 0) wait_for_reads<!all_read ? 2 : goes_on ? 1 : 0>();
      const u32x4 v = ring[n % (kAhead + 1)];
      add_to_o<Element, 0, n % 4>(v, p[0][n / 4]);
      slot();
      if constexpr (n + kAhead < kValuePairs) read_v<n + kAhead>(v_lane);
      slot();
      vector_work(Number<2 * n>{});
      slot();
      add_to_o<Element, 1, n % 4>(v, p[1][n / 4]);
      slot();
      ahead(number);
      slot();
      vector_work(Number<2 * n + 1>{});
    });
    keep_hidden();
    slot();
  }
  FLYDSL_DEVICE void take_next() {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      half[h].s[0] = next[h][0];
      half[h].s[1] = next[h][1];
    }
  }
  FLYDSL_DEVICE void finish_weights() {
    if (FLYDSL_UNLIKELY(exceeding != 0)) {
      wait_for_products();
      scale_o<0>(half[0].move_reference());
      scale_o<1>(half[1].move_reference());
      asm volatile("s_nop 3");
      keep_hidden();
    }
    half[0].sum += half[0].tile_sum;
    half[1].sum += half[1].tile_sum;
  }

  // The scores in `half` are those of tile `tile` of this item, or of the next one.
  FLYDSL_DEVICE void mask_scores(bool of_next, i32 tile) {
    const i32 first_key = tile * kKeysOfTile;
    const i32 seen_by_all = (of_next ? coming.last_key(coming.wave_row(wave, 0))
                                     : work.last_key(work.wave_row(wave, 0)));
    if (first_key + kKeysOfTile - 1 <= seen_by_all) return;
    wait_for_products();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const i32 seen = (of_next ? coming.last_key(coming.wave_row(wave, h))
                                : work.last_key(work.wave_row(wave, h))) -
                       first_key;
      i32 last = of_next ? coming.last_key(coming.lane_row(wave, h, lane))
                         : work.last_key(work.lane_row(wave, h, lane));
      last -= static_cast<i32>(fresh_lane(lane) / 32 * 4) + first_key;
#pragma unroll
      for (int block = 0; block < 2; ++block) {
        // Blocks of 32 keys: most are seen by all rows or by none.
        if (seen >= 32 * block + 31) continue;
        // Compared where it is needed: 16 lane masks would be kept.
        asm volatile("" : "+v"(last));
#pragma unroll
        for (int n = 0; n < 16; ++n)
          half[h].s[block][n] =
              32 * block + 8 * (n / 4) + n % 4 <= last ? half[h].s[block][n] : -kInfinity;
      }
    }
  }
  // The scores in `half` are of the first tile.
  FLYDSL_DEVICE void begin_rows() {
    wait_for_products();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      half[h].sum = 0.0f;
      half[h].reference = kNoReference;
      half[h].set_reference(c);
    }
  }
  FLYDSL_DEVICE void end_rows() {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      done_reference[h] = half[h].reference;
      done_sum[h] = half[h].sum;
    }
  }

  // Waits for the copies, frees what was read.
  FLYDSL_DEVICE void exchange() {
    __builtin_amdgcn_s_waitcnt(0x0070);  // vmcnt(0) lgkmcnt(0)
    barrier();
  }

  // Tile i in `now`, i + 2 in now.k, i + 1 in other; K of i + 3 and V of i + 1 land during the step. `full`: these are all of
  // this item, complete, and seen by all rows. If not, they may be of the next item.
  template <bool full>
  FLYDSL_DEVICE void step(i32 i, Buffers now, Buffers other) {
    const KeyLanes<head_dim> k_lanes(now.k, lane);
    const lds_ptr<const char> v_lane = now.v + Values::v_lane(lane),
                              v_other = other.v + Values::v_lane(lane);
    // What is copied, unless `full`: tile, keys that exist.
    i32 k_tile = i + 3, k_end = work.seq_k, v_tile = i + 1, v_end = work.seq_k;
    const bool new_q = !full && more != 0 && i + 2 == work.tiles;
    take_next();
    if constexpr (!full) {
      if (FLYDSL_UNLIKELY(more != 0 && k_tile >= work.tiles)) {
        if (k_tile == work.tiles)
          keys = KeySource<head_dim>(coming.here().k_row(0), 0, k_row_bytes, wave, lane);
        k_tile -= work.tiles;
        k_end = coming.seq_k;
      }
      const bool starts = v_tile == work.tiles;
      if (FLYDSL_UNLIKELY(starts)) {
        values = ValueSource<head_dim_v>(coming.here().v_row(0), 0, v_row_bytes, wave, lane);
        v_tile = 0;
        v_end = coming.seq_k;
        end_rows();
      }
      mask_scores(starts, v_tile);
      if (FLYDSL_UNLIKELY(starts)) begin_rows();
      if (FLYDSL_UNLIKELY(new_q)) load_q(coming);
    }
    KeySource<head_dim> k_from = keys;
    ValueSource<head_dim_v> v_from = values;
    if constexpr (!full) {
      k_from = keys.clamped(k_tile, k_end, k_row_bytes, wave, lane);
      v_from = values.clamped(v_tile, v_end, v_row_bytes, wave, lane);
      keys.next_tile(k_row_bytes);
      values.next += kKeysOfTile * v_row_bytes;
    }
    const typename KeySource<head_dim>::Places k_places(wave);
    const u32 v_place = values.place(wave);
    const auto copy_k = [&](int line) {
      if constexpr (full)
        keys.copy_next(line, k_row_bytes, k_skipped, other.k, k_places);
      else
        k_from.copy_clamped(line, k_row_bytes, other.k, k_places);
    };
    const auto copy_v = [&](int line) {
      if constexpr (full)
        values.copy_next(line, v_row_bytes, v_skipped, other.v + v_place);
      else
        v_from.copy_clamped(line, v_row_bytes, other.v + v_place);
    };
    accumulate<true>(
        v_lane, [&](auto m) { early_work<decltype(m)::value>(); },
        [&](auto number) {
          constexpr int n = decltype(number)::value;
          if constexpr (n % 4 == 0) copy_k(n / 4);
          if constexpr (n % 4 == 2) copy_v(n / 4);
          if constexpr (n >= kValuePairs - kAhead) read_k<n + kAhead - kValuePairs>(k_lanes);
        });
    if (FLYDSL_UNLIKELY(new_q)) {
      read_q();
      // All loads but the copies above; these reads, and those of K before them.
      __builtin_amdgcn_s_waitcnt(0x0070 | kValuePairs / 2);
      finish_q();
    }
    score_tile<true>(
        k_lanes, [&](auto m) { late_work<decltype(m)::value>(); },
        [&](auto number) {
          constexpr int n = decltype(number)::value;
          // Lines of K that found no place above.
          constexpr int line = kValuePairs / 4 + n / 2;
          if constexpr (n % 2 == 0 && line < KeySource<head_dim>::lines) copy_k(line);
          if constexpr (n == kExchange) exchange();
          slot();
          if constexpr (n >= kExchange) read_v<n - kExchange>(v_other);
        });
    finish_weights();
    if constexpr (!full) wait_for_reads<0>();
  }

  // Steps of this item that mask nothing, and whose copies are of complete tiles of it.
  FLYDSL_DEVICE i32 full_steps() const {
    return smaller(static_cast<i32>(uniform(static_cast<u32>(work.undisturbed_steps))),
                   work.tiles - 3);
  }

  // The first item, up to where its first step finds what it needs; nothing is hidden behind anything.
  FLYDSL_DEVICE void start(Buffers now, Buffers other) {
    copy_tile_k(0, now.k);
    copy_tile_k(1, other.k);
    copy_tile_v(0, now.v);
    begin_queries(work);
    for (int n = 0; n < kMoves; ++n) own.fetch_lines();
    load_q(work);
    clear_o();
    exchange();
    read_q();
    wait_for_reads<0>();
    finish_q();
    const KeyLanes<head_dim> k0(now.k, lane), k1(other.k, lane);
    const auto nothing = [](auto) {};
    read_k<0>(k0), read_k<1>(k0), read_k<2>(k0);
    score_tile<false>(k0, nothing, nothing);
    barrier();
    copy_tile_k(2, now.k);
    read_k<0>(k1), read_k<1>(k1), read_k<2>(k1);
    wait_for_products();
    take_next();
    mask_scores(false, 0);
    begin_rows();
    each<2 * kValuePairs>([&](auto m) { early_work<decltype(m)::value>(); });
    each<2 * kScorePairs>([&](auto m) { late_work<decltype(m)::value>(); });
    half[0].sum = half[0].tile_sum;
    half[1].sum = half[1].tile_sum;
    score_tile<false>(k1, nothing, nothing);
    exchange();
    const lds_ptr<const char> v0 = now.v + Values::v_lane(lane);
    read_v<0>(v0), read_v<1>(v0), read_v<2>(v0);
    wait_for_reads<0>();
  }

  FLYDSL_DEVICE void last(Buffers now) {
    const lds_ptr<const char> v_lane = now.v + Values::v_lane(lane);
    accumulate<false>(
        v_lane, [](auto) {}, [](auto) {});
    end_rows();
  }

  // What is done between two pairs of steps, a little at a time because the memory is shared: the last item's outputs
  // are stored, the next item is looked for, its queries are fetched.
  static constexpr i32 kMoves = OwnRows::lines / OwnRows::lines_at_once;
  static constexpr i32 kChores = 2 * kMoves + 1;
  i32 chores = kMoves + 1;  // to do
  FLYDSL_DEVICE void do_chore(Items<mask> &items) {
    if (FLYDSL_UNLIKELY(chores == kMoves + 1)) {
      more = items.next(coming,
                        [&](const Item<mask> &item) { store_empty<head_dim_v>(item, wave, lane); });
      if (more != 0)
        begin_queries(coming);
      else
        chores = 1;
    } else if (chores > kMoves) {
      own.store_lines();
    } else {
      own.fetch_lines();
    }
    --chores;
  }

  // All items. Steps of a loop come in pairs, whose buffers are known.
  FLYDSL_DEVICE void run(Items<mask> &items, Buffers even, Buffers odd) {
    u32 at_odd = 0;
    start(even, odd);
#pragma unroll 1
    do {
      const i32 pairs_end = full_steps() - 1;
      i32 i = 0;
#pragma unroll 1
      for (;;) {
        const bool in_pairs = i < pairs_end;
        if (in_pairs && at_odd == 0) {
          do {
            step<true>(i, even, odd);
            step<true>(i + 1, odd, even);
            i += 2;
          } while (i < pairs_end && chores <= 0);
        }
        if (chores > 0 && !(in_pairs && at_odd != 0)) {
          do_chore(items);
          continue;
        }
        if (i >= (more != 0 ? work.tiles : work.tiles - 1)) break;
        step<false>(i, at_odd != 0 ? odd : even, at_odd != 0 ? even : odd);
        ++i;
        at_odd ^= 1;
      }
      if (more == 0) last(at_odd != 0 ? odd : even);
      wait_for_products();
      finish_item();
      if (more != 0) {
        clear_o();
        work = coming;
      }
    } while (more != 0);
  }

  FLYDSL_DEVICE void finish_item() {
    u64 exact_rows = finish_rows<Element, 0>(work, done_reference[0], done_sum[0], own);
    exact_rows |=
        static_cast<u64>(finish_rows<Element, 1>(work, done_reference[1], done_sum[1], own)) << 32;
    const Problem<mask> problem = work.here();
    own.begin_outputs(problem.out_row(0), 2 * fresh_arguments()->out_stride_s, work.first_row,
                      work.seq_q - 1);
    chores = kChores;
    if (more != 0 && FLYDSL_LIKELY(exact_rows == 0)) return;
#pragma unroll 1
    for (; chores > kMoves + 1; --chores) own.store_lines();
    wait_for_copies();
#pragma unroll 1
    for (; FLYDSL_UNLIKELY(exact_rows != 0); exact_rows &= exact_rows - 1) {
      const int number = __builtin_ctzll(exact_rows);
      exact_row(ClassRow<Element, head_dim_v, mask>(
                    problem, work.wave_row(wave, number / 32) + number % 32),
                fresh_lane(lane));
    }
  }
};

template <class Element, int head_dim, int head_dim_v, Mask mask>
FLYDSL_DEVICE void attention_forward(const flydsl_aot_attention_forward_kernarg &) {
  using W = Wave<Element, head_dim, head_dim_v, mask>;
  // One array per buffer: only then does clang 22 see which copies an LDS read has to wait for.
  FLYDSL_SHARED static char k_even[W::Keys::bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char v_even[W::Values::v_bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char k_odd[W::Keys::bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char v_odd[W::Values::v_bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char own_rows[kWaves * OwnRows::bytes] __attribute__((aligned(16)));
  const typename W::Buffers even{(lds_ptr<char>)k_even, (lds_ptr<char>)v_even};
  const typename W::Buffers odd{(lds_ptr<char>)k_odd, (lds_ptr<char>)v_odd};

  const u32 thread = __builtin_amdgcn_workitem_id_x(), wave = uniform(thread / kWaveLanes),
            lane = thread % kWaveLanes;
  Items<mask> items;
  Item<mask> first;
  if (!items.next(first,
                  [&](const Item<mask> &item) { store_empty<head_dim_v>(item, wave, lane); }))
    return;
  W(first, wave, lane, (lds_ptr<char>)own_rows).run(items, even, odd);
}

}  // namespace flydsl::kernels::pipelined
