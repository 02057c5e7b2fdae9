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

#include "attention_forward/exact.hip.h"
#include "attention_forward/outputs.hip.h"
#include "attention_forward/pipelined/items.hip.h"
#include "attention_forward/pipelined/softmax.hip.h"
#include "attention_forward/pipelined/tiles.hip.h"
#include "attention_forward/plain_row.hip.h"
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
  bool more = false;        // there is a next one
  KeySource<head_dim> keys;
  ValueSource<head_dim_v> values;
  i64 k_row_bytes, v_row_bytes;
  u32 wave, lane;
  float c;        // weights are 2^(score c - reference)
  bool as_it_is;  // Q: no sign of the scale to apply
  HalfTile<Element> half[2];
  f32x16 next[2][2];  // scores of the tile after that in `half`
  float done_reference[2], done_sum[2];
  u32x4 ring[kAhead + 1];
  u64 exceeding;  // lanes whose tile sum is too large

  FLYDSL_DEVICE Wave(const Item<mask> &first, u32 wave, u32 lane)
      : work(first),
        keys(first.k_row(0), wave, lane),
        values(first.v_row(0), wave, lane),
        k_row_bytes(2 * fresh_arguments()->k_stride_s),
        v_row_bytes(2 * fresh_arguments()->v_stride_s),
        wave(wave),
        lane(lane) {
    const Arguments args = fresh_arguments();
    c = args->scale_log2;
    as_it_is = args->q_and == ~0u && args->q_xor == 0;
  }

  static FLYDSL_DEVICE i32 first_row_of(const Problem<mask> &item, u32 wave, int h) {
    return item.first_row + kRowsOfHalf * h + kRowsOfWave * static_cast<i32>(wave);
  }
  FLYDSL_DEVICE i32 first_row_of(const Problem<mask> &item, int h) const {
    return first_row_of(item, wave, h);
  }
  FLYDSL_DEVICE i32 row_of(const Problem<mask> &item, int h) const {
    return first_row_of(item, h) + static_cast<i32>(lane % 32);
  }

  FLYDSL_DEVICE void load_q(const Problem<mask> &item) {
    const auto row = [&](int h) {
      return item.q_row(item.real_row(row_of(item, h))) + 16 * (lane / 32);
    };
    const auto q0 = row(0), q1 = row(1);
    each<kScoreSteps>([&](auto number) {
      constexpr int step = decltype(number)::value;
      load_hidden<q_register<kScoreSteps>(0, step), 32 * step>(q0);
    });
    each<kScoreSteps>([&](auto number) {
      constexpr int step = decltype(number)::value;
      load_hidden<q_register<kScoreSteps>(1, step), 32 * step>(q1);
    });
  }
  // When its loads have landed.
  FLYDSL_DEVICE void finish_q() {
    if (FLYDSL_LIKELY(as_it_is)) return;
    const Arguments args = fresh_arguments();
    const u32 q_and = args->q_and, q_xor = args->q_xor;
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
#pragma unroll
    for (int line = 0; line < keys.lines; ++line)
      keys.copy(tile, line, work.seq_k, k_row_bytes, to);
  }
  FLYDSL_DEVICE void copy_tile_v(i32 tile, lds_ptr<char> to) {
#pragma unroll
    for (int line = 0; line < values.lines; ++line)
      values.copy(tile, line, work.seq_k, v_row_bytes, to);
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
      exceeding = ballot(larger(half[0].tile_sum, half[1].tile_sum) > kLargestTileSum);
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
    const i32 seen_by_all =
        of_next ? coming.last_key(first_row_of(coming, 0)) : work.last_key(first_row_of(work, 0));
    if (first_key + kKeysOfTile - 1 <= seen_by_all) return;
    wait_for_products();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      i32 last = of_next ? coming.last_key(row_of(coming, h)) : work.last_key(row_of(work, h));
      last -= static_cast<i32>(lane / 32 * 4) + first_key;
      // Compared where it is needed: 32 lane masks would be kept.
      asm volatile("" : "+v"(last));
      mask_tile(last, half[h].s);
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
    const bool new_q = !full && more && i + 2 == work.tiles;
    take_next();
    if constexpr (!full) {
      if (more && k_tile >= work.tiles) {
        if (k_tile == work.tiles) keys = KeySource<head_dim>(coming.k_row(0), wave, lane);
        k_tile -= work.tiles;
        k_end = coming.seq_k;
      }
      const bool starts = v_tile == work.tiles;
      if (starts) {
        values = ValueSource<head_dim_v>(coming.v_row(0), wave, lane);
        v_tile = 0;
        v_end = coming.seq_k;
        end_rows();
      }
      mask_scores(starts, v_tile);
      if (starts) begin_rows();
      if (new_q) load_q(coming);
    }
    const auto copy_k = [&](int line) {
      if constexpr (full)
        keys.copy_next(line, k_row_bytes, other.k);
      else
        keys.copy(k_tile, line, k_end, k_row_bytes, other.k);
    };
    const auto copy_v = [&](int line) {
      if constexpr (full)
        values.copy_next(line, v_row_bytes, other.v);
      else
        values.copy(v_tile, line, v_end, v_row_bytes, other.v);
    };
    accumulate<true>(
        v_lane, [&](auto m) { early_work<decltype(m)::value>(); },
        [&](auto number) {
          constexpr int n = decltype(number)::value;
          if constexpr (n % 4 == 0) copy_k(n / 4);
          if constexpr (n % 4 == 2) copy_v(n / 4);
          if constexpr (n >= kValuePairs - kAhead) read_k<n + kAhead - kValuePairs>(k_lanes);
        });
    if (new_q) {
      __builtin_amdgcn_s_waitcnt(0x0f70 | kValuePairs / 2);  // vmcnt: all but the copies above
      finish_q();
    }
    score_tile<true>(
        k_lanes, [&](auto m) { late_work<decltype(m)::value>(); },
        [&](auto number) {
          constexpr int n = decltype(number)::value;
          // Lines of K that found no place above.
          constexpr int line = kValuePairs / 4 + n / 2;
          if constexpr (n % 2 == 0 && line < KeySource<head_dim>::lines) copy_k(line);
          // Past the last complete tile, which is then no longer needed, it is copied again.
          if constexpr (n == kExchange - 1 && full)
            keys.end_tile(i + 4 < work.complete_tiles, k_row_bytes);
          if constexpr (n == kExchange + 1 && full)
            values.end_tile(i + 2 < work.complete_tiles, v_row_bytes);
          if constexpr (n == kExchange) exchange();
          slot();
          if constexpr (n >= kExchange) read_v<n - kExchange>(v_other);
        });
    finish_weights();
    if constexpr (!full) wait_for_reads<0>();
  }

  // Steps of an item that mask nothing, and whose copies are of complete tiles of it, or of no use.
  FLYDSL_DEVICE i32 full_steps(bool may_have_more) const {
    i32 steps = work.full_tiles - 1;
    if (may_have_more || work.complete_tiles < work.tiles)
      steps = smaller(steps, smaller(work.complete_tiles, work.tiles) - 3);
    return steps < 0 ? 0 : steps;
  }

  // The first item, up to where its first step finds what it needs; nothing is hidden behind anything.
  FLYDSL_DEVICE void start(Buffers now, Buffers other) {
    copy_tile_k(0, now.k);
    copy_tile_k(1, other.k);
    copy_tile_v(0, now.v);
    load_q(work);
    clear_o();
    exchange();
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

  // All items. Steps of a loop come in pairs, whose buffers are known.
  FLYDSL_DEVICE void run(Items<mask> &items, Buffers even, Buffers odd) {
    bool at_odd = full_steps(items.may_have_more()) % 2 != 0;
    start(at_odd ? odd : even, at_odd ? even : odd);
#pragma unroll 1
    do {
      i32 steps = full_steps(items.may_have_more());
      if (steps % 2 != at_odd) --steps;
      i32 i = 0;
      if (FLYDSL_LIKELY(steps > 0)) {
        const auto complete = [&](i32 tile) {
          return smaller(tile, work.complete_tiles < 1 ? 0 : work.complete_tiles - 1);
        };
        keys.seek(complete(3), k_row_bytes);
        values.seek(complete(1), v_row_bytes);
        i = at_odd ? -1 : 0;
        do {
          if (FLYDSL_LIKELY(i >= 0)) step<true>(i, even, odd);
          step<true>(i + 1, odd, even);
          i += 2;
        } while (i < steps);
        at_odd = false;
      }
      more = items.next(coming, [&](const Problem<mask> &item) { store_empty(item, wave, lane); });
      const i32 end = more ? work.tiles : work.tiles - 1;
#pragma unroll 1
      for (; i < end; ++i) {
        step<false>(i, at_odd ? odd : even, at_odd ? even : odd);
        at_odd = !at_odd;
      }
      if (!more) last(at_odd ? odd : even);
      wait_for_products();
      store_all();
      if (more) {
        clear_o();
        work = coming;
      }
    } while (more);
  }

  template <int h>
  FLYDSL_DEVICE u32 store() {
    f32x16 o[Values::value_blocks];
    each<64>([&](auto n) {
      constexpr int i = decltype(n)::value;
      o[i / 16][i % 16] = read_hidden<o_register(h, 0) + i>();
    });
    return store_rows(done_reference[h], done_sum[h], row_of(work, h), o);
  }

  // Rows that need the slow path.
  FLYDSL_DEVICE u32 store_rows(float reference, float half_sum, i32 row,
                               const f32x16 (&o)[Values::value_blocks]) {
    const float sum = sum_of_halves(half_sum);
    // Not finite anywhere <=> this is NaN: 0 * x is 0 for finite x only.
    float probe = sum * 0.0f;
#pragma unroll
    for (int block = 0; block < Values::value_blocks; ++block) {
#pragma unroll
      for (int i = 0; i < 16; ++i) probe = fma(o[block][i], 0.0f, probe);
    }
    const bool empty = work.last_key(row) < 0;
    const bool trusted = probe == 0.0f && (empty || __builtin_fabsf(reference) < kLargestReference);
    const bool in_range = row < work.seq_q;
    const u64 distrust = ballot(in_range && !trusted);
    const u32 exact_rows = static_cast<u32>(distrust) | static_cast<u32>(distrust >> 32);

    const bool write = in_range && !(exact_rows >> lane % 32 & 1);
    const float factor = empty ? 0.0f : reciprocal(sum);
    store_row<Element>(work.out_row(row), lane, write, factor, o);
    if (write && lane < 32)
      work.store_lse(row, empty ? -kInfinity : (reference + log2(sum)) * kLn2);
    return exact_rows;
  }
  template <int h>
  FLYDSL_DEVICE void store_half() {
    u32 exact_rows = store<h>();
#pragma unroll 1
    for (; FLYDSL_UNLIKELY(exact_rows != 0); exact_rows &= exact_rows - 1)
      exact_row(PlainRow<Element, head_dim, mask, head_dim_v>(
                    work, first_row_of(work, h) + __builtin_ctz(exact_rows)),
                lane);
  }
  FLYDSL_DEVICE void store_all() {
    store_half<0>();
    store_half<1>();
  }
  // Of an item whose rows see no key.
  static FLYDSL_DEVICE void store_empty(const Problem<mask> &item, u32 wave, u32 lane) {
#pragma unroll 1
    for (int h = 0; h < 2; ++h) {
      const i32 row = first_row_of(item, wave, h) + static_cast<i32>(lane % 32);
      if (row >= item.seq_q) continue;
#pragma unroll 1
      for (u32 byte = 16 * (lane / 32); byte < 2 * head_dim_v; byte += 32)
        store_16_bytes(item.out_row(row) + byte, u32x4{});
      if (lane < 32) item.store_lse(row, -kInfinity);
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
  const typename W::Buffers even{(lds_ptr<char>)k_even, (lds_ptr<char>)v_even};
  const typename W::Buffers odd{(lds_ptr<char>)k_odd, (lds_ptr<char>)v_odd};

  const u32 thread = __builtin_amdgcn_workitem_id_x(), wave = uniform(thread / kWaveLanes),
            lane = thread % kWaveLanes;
  Items<mask> items;
  Item<mask> first;
  if (!items.next(first, [&](const Problem<mask> &item) { W::store_empty(item, wave, lane); }))
    return;
  W(first, wave, lane).run(items, even, odd);
}

}  // namespace flydsl::kernels::pipelined
