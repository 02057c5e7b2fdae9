// attention_forward of e4m3 queries, keys and values: the formula and the rules of the result are those of
// attention_forward.hip.h, the schedule is that of pipelined/ (which explains its parts), with
//
// - scores by 8-bit matrix instructions at twice the rate of 16 bits: products of e4m3 values are exact in fp32, so scores are
//   as accurate as those of widened values;
// - values widened once a work-group, exactly, on their way through registers to LDS, and weights in the output's type: both
//   meet at the 16-bit rate with the error that 16-bit inputs have.
//
// One step of a wave, 64 rows of 64 keys:
//
//   O^T += V^T P^T of tile i     | V of tile i + 1 to LDS, exponents (D 128) and most weights of tile i + 1
//   S^T = K Q^T of tile i + 2    | the other weights of tile i + 1, their sum (D 128), P
//                                | D 64: the sum, exponents of tile i + 2
#pragma once

#include "attention_forward/exact.hip.h"
#include "attention_forward/finish_row.hip.h"
#include "attention_forward/float8/exact_row.hip.h"
#include "attention_forward/float8/products.hip.h"
#include "attention_forward/float8/schedule.hip.h"
#include "attention_forward/float8/tiles.hip.h"
#include "attention_forward/float8/work.hip.h"
#include "attention_forward/pipelined/softmax.hip.h"
#include "attention_forward/scores.hip.h"

namespace flydsl::kernels::float8 {

using pipelined::by_now;
using pipelined::each;
using pipelined::HalfTile;
using pipelined::keep_hidden;
using pipelined::Number;
using pipelined::o_register;
using pipelined::read_hidden;
using pipelined::wait_for_products;
using pipelined::write_hidden;

constexpr i32 kRows = 64;  // of a wave
constexpr i32 kRowsOfGroup = kRows * kWaves;

FLYDSL_DEVICE void slot() {
  __builtin_amdgcn_sched_barrier(0);
}
// body(Number<first>{}) ... body(Number<last - 1>{}).
template <int first, int last, class Body>
FLYDSL_DEVICE void range(Body body) {
  each<last - first>([&](auto i) { body(Number<first + decltype(i)::value>{}); });
}

template <class Element, int head_dim, Mask mask>
struct Wave {
  using Keys = KeyTile<head_dim>;
  using Values = ValueTile<head_dim>;
  struct Buffers {
    lds_ptr<char> k, v;
  };
  using Plan = Schedule<head_dim>;
  static constexpr int steps = Plan::steps, blocks = Plan::blocks;
  static constexpr int k_fragments = Plan::k_fragments, v_fragments = Plan::v_fragments;
  static constexpr int o_gaps = Plan::o_gaps, s_gaps = Plan::s_gaps;
  static constexpr int v_ahead = Plan::v_ahead, k_ahead = Plan::k_ahead;
  static constexpr int k_lines = Plan::k_lines, v_lines = Plan::v_lines;
  static constexpr bool kPacked = Plan::kPacked;

  const Work<mask> &work;
  Rows<Keys> k_rows;
  Rows<Values> v_rows;
  u32 lane, first_k_line, v_place;  // of the wave in a tile of K; of the lane in one of V, in bytes
  i32 first_row;
  bool negate;
  float c, out_factor;  // weights are 2^(score c - reference), values are multiplied by out_factor
  i32 tiles, complete_tiles;
  HalfTile<Element> half[2];
  f32x16 next[2][2];        // scores of the tile after that in `half`
  u32x2 held[v_lines];      // of the tile of V that goes to LDS next
  u32x4 wide[v_lines];      // the same widened
  u32x2 arriving[v_lines];  // of the tile of V after that
  u32x2 v_ring[v_ahead + 1][2];
  u32x4 k_ring[k_ahead + 1][2];
  u64 exceeding;  // lanes whose tile sum is too large

  FLYDSL_DEVICE Wave(const Work<mask> &work, u32 wave, u32 lane)
      : work(work),
        k_rows(work.k_row(0), fresh_arguments()->k_stride_s, wave, lane),
        v_rows(work.v_row(0), fresh_arguments()->v_stride_s, wave, lane),
        lane(lane),
        first_k_line(wave * k_lines),
        v_place(wave * v_lines * Values::v_pitch + 16 * lane) {
    first_row = work.first_row + static_cast<i32>(wave) * kRows;
    const Scale scale(work);
    negate = scale.negative;
    c = scale.magnitude;
    out_factor = value_descale(work);
  }

  FLYDSL_DEVICE i32 row_of(int h) const { return first_row + 32 * h + static_cast<i32>(lane % 32); }

  template <int h>
  FLYDSL_DEVICE void load_q(u32x4 (&q)[head_dim / 32]) const {
    const auto from = work.q_row(work.real_row(row_of(h))) + 16 * (lane / 32);
#pragma unroll
    for (int i = 0; i < head_dim / 32; ++i) q[i] = load_16_bytes(from + 32 * i);
  }
  template <int h>
  FLYDSL_DEVICE void hide_q(const u32x4 (&q)[head_dim / 32]) const {
    const u32 sign = negate ? 0x80808080u : 0u;
    each<head_dim / 8>([&](auto number) {
      constexpr int n = decltype(number)::value;
      write_hidden<q_register<head_dim>(h, 0) + n>(q[n / 4][n % 4] ^ sign);
    });
  }
  template <class Body>
  static FLYDSL_DEVICE void each_of_o(Body body) {
    each<16 * blocks>([&](auto i) { body(i); });
  }
  FLYDSL_DEVICE void clear_o() {
    each_of_o([](auto i) {
      write_hidden<o_register(0, 0) + decltype(i)::value>(0);
      write_hidden<o_register(1, 0) + decltype(i)::value>(0);
    });
  }
  template <int h>
  FLYDSL_DEVICE void scale_o(float factor) {
    each_of_o([&](auto i) {
      constexpr int number = o_register(h, 0) + decltype(i)::value;
      write_hidden<number>(bits_as<u32>(read_hidden<number>() * factor));
    });
  }

  // ---- LDS, in assembly as in pipelined/. wait_for_accesses() is what there is; nothing may touch a fragment before it.
  template <int n, int chunk>
  FLYDSL_DEVICE void read_k(lds_ptr<const char> k_lane) {
    asm volatile("ds_read_b128 %0, %1 offset:%2"
                 : "=v"(k_ring[n % (k_ahead + 1)][chunk])
                 : "v"(k_lane), "n"(Keys::immediate(n / steps, n % steps, chunk)));
  }
  template <int n, int part>
  FLYDSL_DEVICE void read_v(lds_ptr<const char> v_lane) {
    asm volatile("ds_read_b64_tr_b16 %0, %1 offset:%2"
                 : "=v"(v_ring[n % (v_ahead + 1)][part])
                 : "v"(v_lane), "n"(Values::v_immediate(n / blocks, part, n % blocks)));
  }
  FLYDSL_DEVICE void read_first_v(lds_ptr<const char> v_lane) {
    each<2 * v_ahead>([&](auto number) {
      constexpr int n = decltype(number)::value;
      read_v<n / 2, n % 2>(v_lane);
    });
  }
  template <int line>
  FLYDSL_DEVICE void write_v(lds_ptr<char> to) {
    asm volatile("ds_write_b128 %0, %1 offset:%2" ::"v"(to + v_place), "v"(wide[line]),
                 "n"(line * Values::v_pitch));
  }
  // Waits until at most `younger` LDS accesses are in flight.
  template <int younger>
  FLYDSL_DEVICE void wait_for_accesses() {
    __builtin_amdgcn_s_waitcnt(0xc07f | younger << 8);
  }
  FLYDSL_DEVICE u32x8 k_fragment(int n) const {
    const u32x4(&f)[2] = k_ring[n % (k_ahead + 1)];
    return joined(f[0], f[1]);
  }
  FLYDSL_DEVICE u32x4 v_fragment(int n) const {
    const u32x2(&f)[2] = v_ring[n % (v_ahead + 1)];
    return __builtin_shufflevector(f[0], f[1], 0, 1, 2, 3);
  }

  // ---- from memory
  template <bool complete>
  FLYDSL_DEVICE void copy_k(i32 tile, int line, lds_ptr<char> to) {
    copy_b128(to + (first_k_line + line) * Keys::pitch,
              k_rows.template address<complete>(tile, line, work.seq_k));
  }
  FLYDSL_DEVICE void copy_tile_k(i32 tile, lds_ptr<char> to) {
#pragma unroll
    for (int line = 0; line < k_lines; ++line) copy_k<false>(tile, line, to);
  }
  template <bool complete>
  FLYDSL_DEVICE u32x2 load_v(i32 tile, int line) const {
    return load_8_bytes(v_rows.template address<complete>(tile, line, work.seq_k));
  }
  FLYDSL_DEVICE void load_tile_v(i32 tile, u32x2 (&to)[v_lines]) const {
#pragma unroll
    for (int line = 0; line < v_lines; ++line) to[line] = load_v<false>(tile, line);
  }
  template <int word>
  FLYDSL_DEVICE void widen_v() {
    constexpr int line = word / 4, w = word % 4;
    wide[line][w] = widened_pair<Element>(held[line][w / 2], w % 2 != 0);
    by_now(wide[line][w]);
  }

  // ---- vector work, by the gap that it stands in (schedule.hip.h)
  template <int w>
  FLYDSL_DEVICE void weigh() {
    half[w % 2].template weigh<w / 2>();
  }
  template <int m>
  FLYDSL_DEVICE void exponents() {
    if constexpr (!kPacked)
      range<32 * m / o_gaps, 32 * (m + 1) / o_gaps>([&](auto number) {
        half[0].template exponent<decltype(number)::value>(c);
        half[1].template exponent<decltype(number)::value>(c);
      });
  }
  // Of the whole tile; no matrix instruction should run.
  FLYDSL_DEVICE void packed_exponents() {
    each<32>([&](auto number) {
      constexpr int h = decltype(number)::value % 2, e = decltype(number)::value / 2 * 2;
      HalfTile<Element> &t = half[h];
      const f32x2 pair =
          __builtin_elementwise_fma(f32x2{t.template at<e>(), t.template at<e + 1>()}, f32x2{c, c},
                                    f32x2{-t.reference, -t.reference});
      t.s[e / 16][e % 16] = pair[0];
      t.s[e / 16][e % 16 + 1] = pair[1];
      asm volatile("" ::"v"(pair));
    });
  }
  FLYDSL_DEVICE void packed_sums() {
    f32x2 sums[2];
    each<32>([&](auto number) {
      constexpr int h = decltype(number)::value % 2, e = decltype(number)::value / 2 * 2;
      const f32x2 pair = {half[h].template at<e>(), half[h].template at<e + 1>()};
      sums[h] = e == 0 ? pair : sums[h] + pair;
      asm volatile("" ::"v"(sums[h]));
    });
    half[0].tile_sum = sums[0][0] + sums[0][1];
    half[1].tile_sum = sums[1][0] + sums[1][1];
  }
  template <int m>
  FLYDSL_DEVICE void widen_words() {
    range<Plan::words_before(m), Plan::words_before(m + 1)>(
        [&](auto word) { widen_v<decltype(word)::value>(); });
  }
  // All but the last one of the gap, or that one.
  template <int m, bool last>
  FLYDSL_DEVICE void early_weights() {
    constexpr int first = Plan::weights_before(m), end = Plan::weights_before(m + 1);
    constexpr int middle = end > first ? end - 1 : end;
    range<last ? middle : first, last ? end : middle>([&](auto w) { weigh<decltype(w)::value>(); });
  }
  template <int m>
  FLYDSL_DEVICE void late_work() {
    range<Plan::adds_before(m), Plan::adds_before(m + 1)>([&](auto number) {
      constexpr int a = decltype(number)::value;
      half[a % 2].template add<a / 2>();
    });
    if constexpr (m == Plan::add_gaps && !kPacked) test_sums();
    range<Plan::pairs_before(m), Plan::pairs_before(m + 1)>([&](auto number) {
      constexpr int n = decltype(number)::value;
      half[n % 2].template round<n / 2>();
    });
  }
  template <int m>
  FLYDSL_DEVICE void late_weights() {
    range<Plan::late_before(m), Plan::late_before(m + 1)>(
        [&](auto w) { weigh<decltype(w)::value>(); });
  }
  FLYDSL_DEVICE void test_sums() {
    exceeding = ballot(larger(half[0].tile_sum, half[1].tile_sum) > kLargestTileSum<Element>);
    by_now(exceeding);
  }

  // ---- the phases. ahead(gap) are instructions of other units: like reads and waits they cost nothing in the slot after an
  // exponential; so that these come last.
  template <class Ahead>
  FLYDSL_DEVICE void score_tile(lds_ptr<const char> k_lane, Ahead ahead) {
    each<s_gaps>([&](auto number) {
      constexpr int m = decltype(number)::value, n = m / 2;
      slot();
      if constexpr (m % 2 == 0) wait_for_accesses<n + 1 < k_fragments ? 2 : 0>();
      score<head_dim, m % 2, n % steps>(k_fragment(n), next[m % 2][n / steps]);
      slot();
      if constexpr (n + k_ahead < k_fragments) read_k<n + k_ahead, m % 2>(k_lane);
      ahead(number);
      slot();
      late_work<m>();
      slot();
      late_weights<m>();
    });
    keep_hidden();
    slot();
  }
  // `goes_on`: V of the next tile and K of the one after that follow.
  template <bool goes_on, class Ahead>
  FLYDSL_DEVICE void accumulate(lds_ptr<const char> v_lane, Ahead ahead) {
    u32x4 p[2][4];
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
      for (int i = 0; i < 4; ++i) p[h][i] = half[h].p[i];
    each<o_gaps>([&](auto number) {
      constexpr int m = decltype(number)::value, n = m / 2;
      slot();
      // Two fragments of V are younger, or 4 reads of K.
      constexpr int younger = goes_on || n + 2 < v_fragments ? 4 : n + 1 < v_fragments ? 2 : 0;
      if constexpr (m % 2 == 0) wait_for_accesses<younger>();
      pipelined::add_to_o<Element, m % 2, n % blocks>(v_fragment(n), p[m % 2][n / blocks]);
      slot();
      if constexpr (n + v_ahead < v_fragments) read_v<n + v_ahead, m % 2>(v_lane);
      if constexpr (goes_on) {
        ahead(number, Number<0>{});
        slot();
        exponents<m>();
        widen_words<m>();
        slot();
        early_weights<m, false>();
        slot();
        ahead(number, Number<1>{});
        slot();
        early_weights<m, true>();
      }
    });
    keep_hidden();
    slot();
  }

  FLYDSL_DEVICE void take_next() {
#pragma unroll
    for (int line = 0; line < v_lines; ++line) held[line] = arriving[line];
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

  // Waits for copies, loads and LDS accesses, frees what was read.
  FLYDSL_DEVICE void exchange() {
    __builtin_amdgcn_s_waitcnt(0x0070);  // vmcnt(0) lgkmcnt(0)
    barrier();
  }

  // Tile i in `now`, V of i + 1 in `held`, K of i + 2 in now.k; K of i + 3 and V of i + 2 arrive during the step. `full`: all
  // tiles up to i + 3 are complete and seen by all rows.
  template <bool full>
  FLYDSL_DEVICE void step(i32 i, Buffers now, Buffers other) {
    const lds_ptr<const char> k_lane = now.k + Keys::lane_part(lane),
                              v_lane = now.v + Values::v_lane(lane),
                              v_other = other.v + Values::v_lane(lane);
    if constexpr (!kPacked) {
      take_next();
      if constexpr (!full) mask_scores(i + 1);
    }
    accumulate<true>(v_lane, [&](auto number, auto place) {
      constexpr int m = decltype(number)::value, reads = o_gaps - 2 * v_ahead;
      if constexpr (decltype(place)::value == 0) {
        if constexpr (m >= reads && m < reads + 4) read_k<(m - reads) / 2, (m - reads) % 2>(k_lane);
      } else if constexpr (m % 2 == 0) {  // no wait at the end of the gap
        constexpr int copy = Plan::copy_at(m), load = Plan::load_at(m), write = load - v_lines;
        if constexpr (copy >= 0 && copy < k_lines) copy_k<full>(i + 3, copy, other.k);
        if constexpr (load >= 0 && load < v_lines) arriving[load] = load_v<full>(i + 2, load);
        if constexpr (write >= 0 && write < v_lines) write_v<write>(other.v);
        // Past the last complete tile, which is then no longer needed, it is fetched again.
        if constexpr (full && write == v_lines) v_rows.advance(i + 3 < complete_tiles);
        if constexpr (full && write == v_lines + 1) k_rows.advance(i + 4 < complete_tiles);
      }
    });
    score_tile(k_lane, [&](auto number) {
      constexpr int m = decltype(number)::value, frees = s_gaps - v_ahead;
      if constexpr (m == frees && !kPacked) exchange();
      slot();
      if constexpr (m >= frees && !kPacked) {
        read_v<m - frees, 0>(v_other);
        read_v<m - frees, 1>(v_other);
      }
    });
    if constexpr (kPacked) {
      packed_sums();
      slot();
      test_sums();
      exchange();
      read_first_v(v_other);
      slot();
    }
    finish_weights();
    if constexpr (kPacked) {
      slot();
      take_next();
      if constexpr (!full) mask_scores(i + 2);
      packed_exponents();
      slot();
    }
    if constexpr (!full) wait_for_accesses<0>();
  }

  // Before the loop nothing is hidden behind anything.
  FLYDSL_DEVICE void first_scores(lds_ptr<const char> k_lane) {
    each<k_fragments>([&](auto number) {
      constexpr int n = decltype(number)::value;
      read_k<n, 0>(k_lane);
      read_k<n, 1>(k_lane);
      wait_for_accesses<0>();
      slot();
      score<head_dim, 0, n % steps>(k_fragment(n), next[0][n / steps]);
      score<head_dim, 1, n % steps>(k_fragment(n), next[1][n / steps]);
      slot();
    });
    keep_hidden();
  }
  // Weights of tile 0 beside the scores of tile 1.
  FLYDSL_DEVICE void first_weights(lds_ptr<const char> k_lane) {
    take_next();
    read_k<0, 0>(k_lane);
    read_k<0, 1>(k_lane);
    mask_scores(0);
    wait_for_products();
    half[0].set_reference(c);
    half[1].set_reference(c);
    if constexpr (kPacked) packed_exponents();
    each<o_gaps>([&](auto number) {
      constexpr int m = decltype(number)::value, every = o_gaps / s_gaps, n = m / every / 2;
      if constexpr (m % every == 0) {
        slot();
        wait_for_accesses<0>();
        score<head_dim, m / every % 2, n % steps>(k_fragment(n), next[m / every % 2][n / steps]);
        if constexpr (m / every % 2 == 1 && n + 1 < k_fragments) {
          read_k<n + 1, 0>(k_lane);
          read_k<n + 1, 1>(k_lane);
        }
        slot();
      }
      exponents<m>();
      early_weights<m, false>();
      early_weights<m, true>();
    });
    keep_hidden();
    slot();
    each<s_gaps>([&](auto number) {
      late_weights<decltype(number)::value>();
      late_work<decltype(number)::value>();
    });
    if constexpr (kPacked) packed_sums();
    half[0].sum = half[0].tile_sum;
    half[1].sum = half[1].tile_sum;
    if constexpr (kPacked) {
      wait_for_products();
      slot();
      take_next();
      mask_scores(1);
      packed_exponents();
    }
  }

  // `tile`, or the last complete one.
  FLYDSL_DEVICE i32 complete_tile(i32 tile) const {
    const i32 found = kernels::smaller(tile, complete_tiles - 1);
    return found < 0 ? 0 : found;
  }
  FLYDSL_DEVICE void prologue(Buffers even, Buffers odd) {
    copy_tile_k(0, even.k);
    load_tile_v(0, held);
    u32x4 q[2][head_dim / 32];
    load_q<0>(q[0]);
    load_q<1>(q[1]);
    copy_tile_k(1, odd.k);
    load_tile_v(1, arriving);
    slot();
    clear_o();
    hide_q<0>(q[0]);
    hide_q<1>(q[1]);
    each<4 * v_lines>([&](auto word) { widen_v<decltype(word)::value>(); });
    each<v_lines>([&](auto line) { write_v<decltype(line)::value>(even.v); });
    exchange();
    first_scores(even.k + Keys::lane_part(lane));
    barrier();
    copy_tile_k(2, even.k);
    wait_for_products();
    first_weights(odd.k + Keys::lane_part(lane));
    exchange();
    read_first_v(even.v + Values::v_lane(lane));
    wait_for_accesses<0>();
    // Of the first tiles that step() fetches.
    k_rows.start_at(complete_tile(3));
    v_rows.start_at(complete_tile(2));
  }
  FLYDSL_DEVICE void last(Buffers now) {
    accumulate<false>(now.v + Values::v_lane(lane), [](auto, auto) {});
    wait_for_products();
  }

  // All tiles. Those before `full_tiles` are seen completely by all rows.
  FLYDSL_DEVICE void run(Buffers even, Buffers odd, i32 full_tiles) {
    // Steps that mask nothing, and whose fetches are of complete tiles or not needed.
    i32 full_steps = full_tiles - 1;
    if (kPacked && full_tiles < tiles) --full_steps;  // the next tile but one is masked in a step
    if (complete_tiles < tiles) full_steps = smaller(full_steps, complete_tiles - 3);
    if (full_steps < 0) full_steps = 0;

    // An odd step comes first, so that the others pair.
    const bool from_odd = full_steps % 2 != 0;
    prologue(from_odd ? odd : even, from_odd ? even : odd);
    i32 i = 0;
    if (FLYDSL_LIKELY(full_steps > 0)) {
      i = from_odd ? -1 : 0;
      do {
        if (FLYDSL_LIKELY(i >= 0)) step<true>(i, even, odd);
        step<true>(i + 1, odd, even);
        i += 2;
      } while (i < full_steps);
    }
    bool at_odd = false;
#pragma unroll 1
    for (; i + 1 < tiles; ++i) {
      step<false>(i, at_odd ? odd : even, at_odd ? even : odd);
      at_odd = !at_odd;
    }
    last(at_odd ? odd : even);
  }

  // Rows that need the slow path.
  template <int h>
  FLYDSL_DEVICE u32 store() {
    f32x16 o[blocks];
    each_of_o([&](auto n) {
      constexpr int i = decltype(n)::value;
      o[i / 16][i % 16] = read_hidden<o_register(h, 0) + i>();
    });
    const i32 row = row_of(h);
    return finish_row(work, row, lane, work.last_key(row) < 0, half[h].reference, half[h].sum,
                      out_factor, o, [&](bool write, float factor) FLYDSL_INLINED {
                        store_row<Element>(work.out_row(row), lane, write, factor, o);
                      });
  }
  FLYDSL_DEVICE void store_all() {
    u64 exact_rows = store<0>();
    exact_rows |= static_cast<u64>(store<1>()) << 32;
#pragma unroll 1
    for (; FLYDSL_UNLIKELY(exact_rows != 0); exact_rows &= exact_rows - 1)
      exact_row(ExactRow<Element, head_dim, mask>(work, first_row + __builtin_ctzll(exact_rows)),
                lane);
  }
};

template <class Element, int head_dim, Mask mask>
FLYDSL_DEVICE void attention_forward(const flydsl_aot_attention_forward_kernarg &) {
  using W = Wave<Element, head_dim, mask>;
  FLYDSL_SHARED static char k_even[W::Keys::bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char v_even[W::Values::v_bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char k_odd[W::Keys::bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char v_odd[W::Values::v_bytes] __attribute__((aligned(16)));
  const typename W::Buffers even{(lds_ptr<char>)k_even, (lds_ptr<char>)v_even};
  const typename W::Buffers odd{(lds_ptr<char>)k_odd, (lds_ptr<char>)v_odd};

  Work<mask> work;
  if (!find_work(work, kRowsOfGroup)) return;
  const u32 item = __builtin_amdgcn_workitem_id_x();
  W wave(work, uniform(item / kWaveLanes), item % kWaveLanes);
  // Tiles with a key that any row of the work-group sees, that all rows see completely, that exist completely.
  wave.tiles = (work.last_key(work.first_row + kRowsOfGroup - 1) + kKeysOfTile) / kKeysOfTile;
  const i32 full_tiles = (work.last_key(work.first_row) + 1) / kKeysOfTile;
  wave.complete_tiles = work.seq_k / kKeysOfTile;
  if (FLYDSL_LIKELY(wave.tiles > 0))
    wave.run(even, odd, full_tiles);
  else
    wave.clear_o();
  wave.store_all();
}

}  // namespace flydsl::kernels::float8
