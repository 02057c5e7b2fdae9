// attention_forward for long rows of head dims 128 and 192 (of V 128): the formula and the rules of the result are those of
// attention_forward.hip.h, the schedule is for the matrix unit to wait for nothing.
//
// A work-group of 4 waves, one a SIMD, computes 256 query rows, 64 a wave: each fragment of K or V that
// is read from LDS meets two halves of 32 rows, which halves what the LDS has to move. One step:
//
//   O^T += V^T P^T of tile i     | maxima, exponents, some weights of tile i + 1
//   S^T = K Q^T of tile i + 2    | the other weights of tile i + 1, their sum, P
//
// Vector instructions stand between the matrix instructions in the order in which they are to be issued.
#pragma once

#include "attention_forward/exact.hip.h"
#include "attention_forward/outputs.hip.h"
#include "attention_forward/pipelined/softmax.hip.h"
#include "attention_forward/pipelined/tiles.hip.h"
#include "attention_forward/plain_row.hip.h"
#include "attention_forward/queries.hip.h"
#include "attention_forward/scores.hip.h"

namespace flydsl::kernels::pipelined {

constexpr i32 kRows = 64;  // of a wave
constexpr i32 kRowsOfGroup = kRows * kWaves;
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
  const Problem<mask> &work;
  KeySource<head_dim> keys;
  ValueSource<head_dim_v> values;
  i64 k_row_bytes, v_row_bytes;
  u32 lane;
  i32 first_row;
  float c;  // weights are 2^(score c - reference)
  i32 tiles, complete_tiles;
  HalfTile<Element> half[2];
  f32x16 next[2][2];  // scores of the tile after that in `half`
  u32x4 ring[kAhead + 1];
  u64 exceeding;  // lanes whose tile sum is too large

  FLYDSL_DEVICE Wave(const Problem<mask> &work, u32 wave, u32 lane)
      : work(work),
        keys(work.k_row(0), wave, lane),
        values(work.v_row(0), wave, lane),
        k_row_bytes(2 * fresh_arguments()->k_stride_s),
        v_row_bytes(2 * fresh_arguments()->v_stride_s),
        lane(lane),
        c(fresh_arguments()->scale_log2) {
    first_row = work.first_row + static_cast<i32>(wave) * kRows;
  }

  FLYDSL_DEVICE i32 row_of(int h) const { return first_row + 32 * h + static_cast<i32>(lane % 32); }

  FLYDSL_DEVICE void load_q() {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      u32x4 q[head_dim / 16];
      load_queries<Element, head_dim>(work, row_of(h), lane, q);
      const auto hide = [&](auto number) {
        constexpr int n = decltype(number)::value;
        if (h == 0)
          write_hidden<q_register<kScoreSteps>(0, 0) + n>(q[n / 4][n % 4]);
        else
          write_hidden<q_register<kScoreSteps>(1, 0) + n>(q[n / 4][n % 4]);
      };
      each<4 * kScoreSteps>(hide);
    }
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
  template <bool full>
  FLYDSL_DEVICE void copy_k(i32 tile, int line, lds_ptr<char> to) {
    if constexpr (full)
      keys.copy_next(line, k_row_bytes, to);
    else
      keys.copy(tile, line, work.seq_k, k_row_bytes, to);
  }
  template <bool full>
  FLYDSL_DEVICE void copy_v(i32 tile, int line, lds_ptr<char> to) {
    if constexpr (full)
      values.copy_next(line, v_row_bytes, to);
    else
      values.copy(tile, line, work.seq_k, v_row_bytes, to);
  }
  FLYDSL_DEVICE void copy_tile_k(i32 tile, lds_ptr<char> to) {
#pragma unroll
    for (int line = 0; line < keys.lines; ++line) copy_k<false>(tile, line, to);
  }
  FLYDSL_DEVICE void copy_tile_v(i32 tile, lds_ptr<char> to) {
#pragma unroll
    for (int line = 0; line < values.lines; ++line) copy_v<false>(tile, line, to);
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

  FLYDSL_DEVICE void mask_scores(i32 tile) {
    const i32 first_key = tile * kKeysOfTile;
    if (first_key + kKeysOfTile - 1 <= work.last_key(first_row)) return;
    wait_for_products();
#pragma unroll
    for (int h = 0; h < 2; ++h)
      mask_tile(work.last_key(row_of(h)) - static_cast<i32>(lane / 32 * 4) - first_key, half[h].s);
  }

  // Waits for the copies, frees what was read.
  FLYDSL_DEVICE void exchange() {
    __builtin_amdgcn_s_waitcnt(0x0070);  // vmcnt(0) lgkmcnt(0)
    barrier();
  }

  // Tile i in `now`, i + 2 in now.k, i + 1 in other; K of i + 3 and V of i + 1 land during the step. `full`: all tiles up to
  // i + 3 are complete and seen by all rows.
  template <bool full>
  FLYDSL_DEVICE void step(i32 i, Buffers now, Buffers other) {
    const KeyLanes<head_dim> k_lanes(now.k, lane);
    const lds_ptr<const char> v_lane = now.v + Values::v_lane(lane),
                              v_other = other.v + Values::v_lane(lane);
    take_next();
    if constexpr (!full) mask_scores(i + 1);
    accumulate<true>(
        v_lane, [&](auto m) { early_work<decltype(m)::value>(); },
        [&](auto number) {
          constexpr int n = decltype(number)::value;
          if constexpr (n % 2 == 0) {
            constexpr int line = n / 4;
            if constexpr (n % 4 == 0)
              copy_k<full>(i + 3, line, other.k);
            else
              copy_v<full>(i + 1, line, other.v);
          }
          if constexpr (n >= kValuePairs - kAhead) read_k<n + kAhead - kValuePairs>(k_lanes);
        });
    score_tile<true>(
        k_lanes, [&](auto m) { late_work<decltype(m)::value>(); },
        [&](auto number) {
          constexpr int n = decltype(number)::value;
          // Lines of K that found no place above.
          constexpr int line = kValuePairs / 4 + n / 2;
          if constexpr (n % 2 == 0 && line < KeySource<head_dim>::lines)
            copy_k<full>(i + 3, line, other.k);
          // Past the last complete tile, which is then no longer needed, it is copied again.
          if constexpr (n == kExchange - 1 && full) keys.end_tile(i + 4 < complete_tiles, k_row_bytes);
          if constexpr (n == kExchange + 1 && full)
            values.end_tile(i + 2 < complete_tiles, v_row_bytes);
          if constexpr (n == kExchange) exchange();
          slot();
          if constexpr (n >= kExchange) read_v<n - kExchange>(v_other);
        });
    finish_weights();
    if constexpr (!full) wait_for_reads<0>();
  }

  // The first tile's weights; nothing is hidden behind anything.
  FLYDSL_DEVICE void first_weights() {
    take_next();
    mask_scores(0);
    wait_for_products();
    half[0].set_reference(c);
    half[1].set_reference(c);
    each<2 * kValuePairs>([&](auto m) { early_work<decltype(m)::value>(); });
    each<2 * kScorePairs>([&](auto m) { late_work<decltype(m)::value>(); });
    half[0].sum = half[0].tile_sum;
    half[1].sum = half[1].tile_sum;
  }

  FLYDSL_DEVICE void prologue(Buffers even, Buffers odd) {
    copy_tile_k(0, even.k);
    copy_tile_k(1, odd.k);
    copy_tile_v(0, even.v);
    load_q();
    exchange();
    const KeyLanes<head_dim> k0(even.k, lane), k1(odd.k, lane);
    const auto nothing = [](auto) {};
    read_k<0>(k0), read_k<1>(k0), read_k<2>(k0);
    score_tile<false>(k0, nothing, nothing);
    barrier();
    copy_tile_k(2, even.k);
    read_k<0>(k1), read_k<1>(k1), read_k<2>(k1);
    wait_for_products();
    first_weights();
    score_tile<false>(k1, nothing, nothing);
    exchange();
    const lds_ptr<const char> v0 = even.v + Values::v_lane(lane);
    read_v<0>(v0), read_v<1>(v0), read_v<2>(v0);
    wait_for_reads<0>();
    // Of the first tiles that step() copies.
    const auto complete = [&](i32 tile) {
      const i32 last = complete_tiles < 1 ? 0 : complete_tiles - 1;
      return smaller(tile, last);
    };
    keys.seek(complete(3), k_row_bytes);
    values.seek(complete(1), v_row_bytes);
  }

  FLYDSL_DEVICE void last(Buffers now) {
    const lds_ptr<const char> v_lane = now.v + Values::v_lane(lane);
    accumulate<false>(
        v_lane, [](auto) {}, [](auto) {});
    wait_for_products();
  }

  // All tiles. Those before `full_tiles` are seen completely by all rows.
  FLYDSL_DEVICE void run(Buffers even, Buffers odd, i32 full_tiles) {
    // Steps that mask nothing, and whose copies are of complete tiles or not needed.
    i32 steps = full_tiles - 1;
    if (complete_tiles < tiles) steps = smaller(steps, complete_tiles - 3);
    if (steps < 0) steps = 0;

    // An odd step comes first, so that the others pair.
    const bool from_odd = steps % 2 != 0;
    prologue(from_odd ? odd : even, from_odd ? even : odd);
    i32 i = 0;
    if (FLYDSL_LIKELY(steps > 0)) {
      i = from_odd ? -1 : 0;
      do {
        if (FLYDSL_LIKELY(i >= 0)) step<true>(i, even, odd);
        step<true>(i + 1, odd, even);
        i += 2;
      } while (i < steps);
    }
    bool at_odd = false;
#pragma unroll 1
    for (; i + 1 < tiles; ++i) {
      step<false>(i, at_odd ? odd : even, at_odd ? even : odd);
      at_odd = !at_odd;
    }
    last(at_odd ? odd : even);
  }

  template <int h>
  FLYDSL_DEVICE u32 store() {
    f32x16 o[Values::value_blocks];
    each<64>([&](auto n) {
      constexpr int i = decltype(n)::value;
      o[i / 16][i % 16] = read_hidden<o_register(h, 0) + i>();
    });
    return store_rows(half[h].reference, half[h].sum, first_row + 32 * h, o);
  }

  // Rows that need the slow path.
  FLYDSL_DEVICE u32 store_rows(float reference, float half_sum, i32 first,
                               const f32x16 (&o)[Values::value_blocks]) {
    const i32 row = first + static_cast<i32>(lane % 32);
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
  FLYDSL_DEVICE void store_all() {
    u64 exact_rows = store<0>();
    exact_rows |= static_cast<u64>(store<1>()) << 32;
#pragma unroll 1
    for (; FLYDSL_UNLIKELY(exact_rows != 0); exact_rows &= exact_rows - 1)
      exact_row(PlainRow<Element, head_dim, mask, head_dim_v>(
                    work, first_row + __builtin_ctzll(exact_rows)),
                lane);
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

  Problem<mask> work;
  if (!find_work(work, kRowsOfGroup)) return;
  const u32 item = __builtin_amdgcn_workitem_id_x();
  W wave(work, uniform(item / kWaveLanes), item % kWaveLanes);
  // Tiles with a key that any row of the work-group sees, that all rows see completely, that exist completely.
  wave.tiles = (work.last_key(work.first_row + kRowsOfGroup - 1) + kKeysOfTile) / kKeysOfTile;
  const i32 full_tiles = (work.last_key(work.first_row) + 1) / kKeysOfTile;
  wave.complete_tiles = work.seq_k / kKeysOfTile;
  wave.clear_o();
  if (FLYDSL_LIKELY(wave.tiles > 0)) wave.run(even, odd, full_tiles);
  wave.store_all();
}

}  // namespace flydsl::kernels::pipelined
