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
//   O^T += V^T P^T of tile i     | V of tile i + 1 to LDS, exponents and most weights of tile i + 1
//   S^T = K Q^T of tile i + 2    | the other weights of tile i + 1, their sum, P
#pragma once

#include "attention_forward/exact.hip.h"
#include "attention_forward/float8/exact_row.hip.h"
#include "attention_forward/float8/products.hip.h"
#include "attention_forward/float8/tiles.hip.h"
#include "attention_forward/float8/work.hip.h"
#include "attention_forward/outputs.hip.h"
#include "attention_forward/pipelined/softmax.hip.h"
#include "attention_forward/scores.hip.h"

namespace flydsl::kernels::float8 {

using pipelined::by_now;
using pipelined::each;
using pipelined::HalfTile;
using pipelined::keep_hidden;
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
  each<last - first>([&](auto i) { body(pipelined::Number<first + decltype(i)::value>{}); });
}

template <class Element, int head_dim, Mask mask>
struct Wave {
  using Keys = KeyTile<head_dim>;
  using Values = ValueTile<head_dim>;
  struct Buffers {
    lds_ptr<char> k, v;
  };
  static constexpr int steps = head_dim / 64, blocks = head_dim / 32;
  // Fragments of a tile: K by (key block, step), V by (step, block). Each meets both halves of the rows; work is placed in the
  // gaps after matrix instructions.
  static constexpr int k_fragments = 2 * steps, v_fragments = 4 * blocks;
  static constexpr int o_gaps = 2 * v_fragments, s_gaps = 2 * k_fragments;
  static constexpr int v_ahead = 3, k_ahead = 2;  // fragments that are read before they are needed
  static constexpr int k_lines = Rows<Keys>::lines_of_wave, v_lines = Rows<Values>::lines_of_wave;

  const Work<mask> &work;
  Rows<Keys> k_rows;
  Rows<Values> v_rows;
  u32 lane, first_k_line, v_place;  // of the wave in a tile of K; of the lane in one of V, in bytes
  i32 first_row;
  bool negate;
  float c;  // weights are 2^(score c - reference)
  i32 tiles, complete_tiles;
  HalfTile<Element> half[2];
  f32x16 next[2][2];      // scores of the tile after that in `half`
  u32x2 held[v_lines];    // of the tile of V that goes to LDS next
  u32x4 wide[v_lines];    // the same widened
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
  }

  FLYDSL_DEVICE i32 row_of(int h) const { return first_row + 32 * h + static_cast<i32>(lane % 32); }

  template <int h>
  FLYDSL_DEVICE void load_q() {
    const auto from = work.q_row(work.real_row(row_of(h))) + 16 * (lane / 32);
    u32x4 q[head_dim / 32];
#pragma unroll
    for (int i = 0; i < head_dim / 32; ++i) q[i] = load_16_bytes(from + 32 * i);
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
    return __builtin_shufflevector(f[0], f[1], 0, 1, 2, 3, 4, 5, 6, 7);
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
  FLYDSL_DEVICE void load_v(i32 tile, int line) {
    held[line] = load_8_bytes(v_rows.template address<complete>(tile, line, work.seq_k));
  }
  template <int word>
  FLYDSL_DEVICE void widen_v() {
    constexpr int line = word / 4, w = word % 4;
    wide[line][w] = widened_pair<Element>(held[line][w / 2], w % 2 != 0);
    by_now(wide[line][w]);
  }

  // ---- vector work. Of the first phase: exponents, some weights, two gaps after their exponents at the latest.
  static constexpr int kEarlyWeights = head_dim == 128 ? 56 : 48;
  template <int w>
  FLYDSL_DEVICE void weigh() {
    half[w % 2].template weigh<w / 2>();
  }
  static constexpr int weights_before(int gap) {
    return gap == 0 ? 0 : gap > o_gaps ? kEarlyWeights : kEarlyWeights * (gap - 1) / (o_gaps - 1);
  }
  template <int m>
  FLYDSL_DEVICE void exponents() {
    range<32 * m / o_gaps, 32 * (m + 1) / o_gaps>([&](auto number) {
      half[0].template exponent<decltype(number)::value>(c);
      half[1].template exponent<decltype(number)::value>(c);
    });
  }
  template <int m>
  FLYDSL_DEVICE void early_weights() {
    range<weights_before(m), weights_before(m + 1)>([&](auto w) { weigh<decltype(w)::value>(); });
  }
  // Of the second phase: the other weights, 64 adds, 32 pairs; the sum is looked at in the last gap.
  template <int m>
  FLYDSL_DEVICE void late_work() {
    constexpr int weights = 64 - kEarlyWeights, half_gaps = s_gaps / 2, add_gaps = s_gaps - 1;
    if constexpr (m < half_gaps)
      range<kEarlyWeights + weights * m / half_gaps, kEarlyWeights + weights *(m + 1) / half_gaps>(
          [&](auto w) { weigh<decltype(w)::value>(); });
    if constexpr (m < add_gaps)
      range<64 * m / add_gaps, 64 * (m + 1) / add_gaps>([&](auto number) {
        constexpr int a = decltype(number)::value;
        half[a % 2].template add<a / 2>();
      });
    if constexpr (m == add_gaps) {
      exceeding =
          ballot(larger(half[0].tile_sum, half[1].tile_sum) > pipelined::kLargestTileSum);
      by_now(exceeding);
    }
    if constexpr (m >= half_gaps)
      range<32 * (m - half_gaps) / half_gaps, 32 * (m + 1 - half_gaps) / half_gaps>([&](auto number) {
        constexpr int n = decltype(number)::value;
        half[n % 2].template round<n / 2>();
      });
  }

  // ---- the phases. ahead(gap) are instructions of other units, which find room where the vector unit is busy.
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
    });
    keep_hidden();
    slot();
  }
  template <bool widen, class Ahead>
  FLYDSL_DEVICE void accumulate(lds_ptr<const char> v_lane, Ahead ahead) {
    u32x4 p[2][4];
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
      for (int i = 0; i < 4; ++i) p[h][i] = half[h].p[i];
    each<o_gaps>([&](auto number) {
      constexpr int m = decltype(number)::value, n = m / 2;
      slot();
      if constexpr (m % 2 == 0) wait_for_accesses<n + 1 < v_fragments ? n + 2 < v_fragments ? 4 : 2 : 0>();
      pipelined::add_to_o<Element, m % 2, n % blocks>(v_fragment(n), p[m % 2][n / blocks]);
      slot();
      if constexpr (n + v_ahead < v_fragments) read_v<n + v_ahead, m % 2>(v_lane);
      slot();
      if constexpr (widen) {
        early_weights<m>();
        slot();
        ahead(number);
        slot();
        exponents<m>();
        if constexpr (m < o_gaps / 4) range<2 * m, 2 * m + 2>([&](auto w) { widen_v<decltype(w)::value>(); });
      }
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
    take_next();
    if constexpr (!full) mask_scores(i + 1);
    accumulate<true>(v_lane, [&](auto number) {
      constexpr int m = decltype(number)::value, reads = o_gaps - 2 * v_ahead;
      // A line of V is widened in gaps 2 line and 2 line + 1.
      if constexpr (m % 2 == 0 && m > 0 && m <= 2 * v_lines) write_v<m / 2 - 1>(other.v);
      if constexpr (m % 2 == 1 && m > 1 && m <= 2 * v_lines + 1) load_v<full>(i + 2, m / 2 - 1);
      if constexpr (m > 2 * v_lines + 1 && m <= 2 * v_lines + 1 + k_lines)
        copy_k<full>(i + 3, m - 2 * v_lines - 2, other.k);
      if constexpr (m >= reads && m < reads + 4) read_k<(m - reads) / 2, (m - reads) % 2>(k_lane);
    });
    score_tile(k_lane, [&](auto number) {
      constexpr int m = decltype(number)::value, frees = s_gaps - v_ahead;
      // Past the last complete tile, which is then no longer needed, it is fetched again.
      if constexpr (m == 0 && full) {
        k_rows.advance(i + 4 < complete_tiles);
        v_rows.advance(i + 3 < complete_tiles);
        by_now(k_rows.tile_offset);
        by_now(v_rows.tile_offset);
      }
      if constexpr (m == frees) exchange();
      slot();
      if constexpr (m >= frees) {
        read_v<m - frees, 0>(v_other);
        read_v<m - frees, 1>(v_other);
      }
    });
    finish_weights();
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
  FLYDSL_DEVICE void first_weights() {
    take_next();
    mask_scores(0);
    wait_for_products();
    half[0].set_reference(c);
    half[1].set_reference(c);
    each<o_gaps>([&](auto m) {
      early_weights<decltype(m)::value>();
      exponents<decltype(m)::value>();
    });
    each<s_gaps>([&](auto m) { late_work<decltype(m)::value>(); });
    half[0].sum = half[0].tile_sum;
    half[1].sum = half[1].tile_sum;
  }

  FLYDSL_DEVICE void prologue(Buffers even, Buffers odd) {
    copy_tile_k(0, even.k);
    copy_tile_k(1, odd.k);
    each<v_lines>([&](auto line) { load_v<false>(0, decltype(line)::value); });
    load_q<0>();
    load_q<1>();
    each<4 * v_lines>([&](auto word) { widen_v<decltype(word)::value>(); });
    each<v_lines>([&](auto line) {
      write_v<decltype(line)::value>(even.v);
      load_v<false>(1, decltype(line)::value);
    });
    exchange();
    first_scores(even.k + Keys::lane_part(lane));
    barrier();
    copy_tile_k(2, even.k);
    wait_for_products();
    first_weights();
    first_scores(odd.k + Keys::lane_part(lane));
    exchange();
    const lds_ptr<const char> v_lane = even.v + Values::v_lane(lane);
    each<2 * v_ahead>([&](auto number) {
      constexpr int n = decltype(number)::value;
      read_v<n / 2, n % 2>(v_lane);
    });
    wait_for_accesses<0>();
    // Of the first tiles that step() fetches.
    k_rows.start_at(3, complete_tiles);
    v_rows.start_at(2, complete_tiles);
  }
  FLYDSL_DEVICE void last(Buffers now) {
    accumulate<false>(now.v + Values::v_lane(lane), [](auto) {});
    wait_for_products();
  }

  // All tiles. Those before `full_tiles` are seen completely by all rows.
  FLYDSL_DEVICE void run(Buffers even, Buffers odd, i32 full_tiles) {
    // Steps that mask nothing, and whose fetches are of complete tiles or not needed.
    i32 full_steps = full_tiles - 1;
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
    const float sum = sum_of_halves(half[h].sum);
    // Not finite anywhere <=> this is NaN: 0 * x is 0 for finite x only.
    float probe = sum * 0.0f;
#pragma unroll
    for (int block = 0; block < blocks; ++block) {
#pragma unroll
      for (int i = 0; i < 16; ++i) probe = fma(o[block][i], 0.0f, probe);
    }
    const bool empty = work.last_key(row) < 0;
    const bool trusted =
        probe == 0.0f && (empty || __builtin_fabsf(half[h].reference) < kLargestReference);
    const bool in_range = row < work.seq_q;
    const u64 distrust = ballot(in_range && !trusted);
    const u32 exact_rows = static_cast<u32>(distrust) | static_cast<u32>(distrust >> 32);

    const bool write = in_range && !(exact_rows >> lane % 32 & 1);
    const float factor = empty ? 0.0f : reciprocal(sum) * value_descale(work);
    store_row<Element>(work.out_row(row), lane, write, factor, o);
    if (write && lane < 32)
      work.store_lse(row, empty ? -kInfinity : (half[h].reference + log2(sum)) * kLn2);
    return exact_rows;
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
  wave.clear_o();
  if (FLYDSL_LIKELY(wave.tiles > 0)) wave.run(even, odd, full_tiles);
  wave.store_all();
}

}  // namespace flydsl::kernels::float8
