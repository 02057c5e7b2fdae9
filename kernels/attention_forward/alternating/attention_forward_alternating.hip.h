// attention_forward for many rows of head dims 32, 64 and 96: the formula and the rules of the result are those of
// attention_forward.hip.h. These head dims are bound by vector instructions (NOTES.md), so the schedule is for
// the vector port to wait for nothing.
//
// A work-group of 2 waves computes 128 query rows, 64 a wave; four work-groups share a compute unit, so that each
// SIMD has two waves. They need not be told to take turns: a step of a wave is
//
//   P of tile i                                      vector phase: exponents, weights, pairs
//   barrier, sums of the weights                     packed, while no matrix instruction runs
//   O^T += V^T P^T, S^T = K Q^T of tile i + 1        matrix phase, with the next copies
//
// and the matrix phase has the higher priority: its instructions are issued as soon as the matrix unit is
// free, and vector instructions of the other wave fill what is between them. Of two waves in their
// vector phase the one that is farther goes first, whichever is older.
#pragma once

#include "attention_forward/alternating/copies.hip.h"
#include "attention_forward/class_row.hip.h"
#include "attention_forward/exact.hip.h"
#include "attention_forward/finish_row.hip.h"
#include "attention_forward/pipelined/softmax.hip.h"
#include "attention_forward/queries.hip.h"
#include "attention_forward/scores.hip.h"

namespace flydsl::kernels::alternating {

using pipelined::by_now;
using pipelined::each;
using pipelined::Number;

constexpr i32 kRows = 64;  // of a wave
constexpr int kWaves = 2;  // of a work-group
constexpr i32 kRowsOfGroup = kRows * kWaves;
constexpr u32 kSharing = 4;  // work-groups of a compute unit
constexpr int kAhead = 3;  // fragments that are read before they are needed

FLYDSL_DEVICE void slot() {
  __builtin_amdgcn_sched_barrier(0);
}
FLYDSL_DEVICE void by_now(f32x2 x) {
  asm volatile("" ::"v"(x));
}

constexpr int kVectorPriority = 0, kHurryPriority = 1, kMatrixPriority = 2, kFirstPriority = 3;
template <int priority>
FLYDSL_DEVICE void set_priority() {
  slot();
  __builtin_amdgcn_s_setprio(priority);
  slot();
}

// What differs between head dims.
template <int head_dim>
struct Schedule;
template <>
struct Schedule<32> {
  static constexpr int keys = 64;    // of a tile
  static constexpr int packed = 64;  // of a wave's exponents
  static constexpr int hurry = 36;   // steps of the vector phase after which its priority rises
};
template <>
struct Schedule<64> {
  static constexpr int keys = 64, packed = 32, hurry = 36;
};
template <>
struct Schedule<96> {
  static constexpr int keys = 32, packed = 0, hurry = 18;
};

template <class Element, int head_dim, Mask mask>
struct Wave {
  using Plan = Schedule<head_dim>;
  static constexpr i32 keys = Plan::keys;
  using Layout = BlockTile<head_dim, keys>;
  static constexpr int steps = head_dim / 16, blocks = head_dim / 32, key_blocks = keys / 32;
  // Fragments of a tile: of V, then of K.
  static constexpr int v_fragments = keys / 16 * blocks, k_fragments = key_blocks * steps;
  static constexpr int fragments = v_fragments + k_fragments;
  struct Buffers {
    lds_ptr<char> k, v;
  };
  const Problem<mask> &work;
  TileCopies<Layout, kWaves> k_copies, v_copies;
  u32 lane;
  // Of the halves. One is among the first rows of the work-group, one among the last: of a causal problem's last
  // tiles all waves see as much.
  i32 first_row[2];
  float c;  // weights are 2^(score c - reference)
  i32 tiles, complete_tiles;
  u32x4 q[2][steps];
  f32x16 o[2][blocks] = {};
  pipelined::HalfTile<Element, key_blocks> half[2];
  u32x4 ring[kAhead + 1];

  FLYDSL_DEVICE Wave(const Problem<mask> &work, u32 wave, u32 lane)
      : work(work),
        k_copies(work.k_row(0), 2 * fresh_arguments()->k_stride_s, wave, lane,
                 Layout::k_byte_of_lane(lane)),
        v_copies(work.v_row(0), 2 * fresh_arguments()->v_stride_s, wave, lane,
                 Layout::v_byte_of_lane(lane)),
        lane(lane),
        c(fresh_arguments()->scale_log2) {
    first_row[0] = work.first_row + static_cast<i32>(wave) * 32;
    first_row[1] = work.first_row + (3 - static_cast<i32>(wave)) * 32;
  }

  FLYDSL_DEVICE i32 row_of(int h) const { return first_row[h] + static_cast<i32>(lane % 32); }

  // ---- fragments of the matrix phase: those of V by (step, block), then those of K by (key block, step). Inline
  // assembly: clang 22 counts copies to LDS as LDS reads, so that it waits too little for reads between copies.
  // wait_for_fragment() is what there is; nothing may touch a fragment before it.
  struct Keys {
    lds_ptr<const char> of_step[2];  // even, odd
    FLYDSL_DEVICE Keys(lds_ptr<const char> tile, u32 lane) {
      const u32 first = Layout::k_lane(lane);
      of_step[0] = tile + first;
      of_step[1] = tile + (first ^ Layout::k_odd_step);
    }
  };
  template <int n>
  FLYDSL_DEVICE void read_fragment(lds_ptr<const char> v_lane, const Keys &k) {
    u32x4 &fragment = ring[n % (kAhead + 1)];
    if constexpr (n < v_fragments) {
      u32x2 low, high;
      asm volatile("ds_read_b64_tr_b16 %0, %1 offset:%2"
                   : "=v"(low)
                   : "v"(v_lane), "n"(Layout::v_immediate(n / blocks, 0, n % blocks)));
      asm volatile("ds_read_b64_tr_b16 %0, %1 offset:%2"
                   : "=v"(high)
                   : "v"(v_lane), "n"(Layout::v_immediate(n / blocks, 1, n % blocks)));
      fragment = u32x4{low[0], low[1], high[0], high[1]};
    } else {
      constexpr int number = n - v_fragments, step = number % steps;
      asm volatile("ds_read_b128 %0, %1 offset:%2"
                   : "=v"(fragment)
                   : "v"(k.of_step[step % 2]), "n"(Layout::k_immediate(number / steps, step)));
    }
  }
  // Of the phase whose fragments end before `last` those up to n + kAhead have been asked for, or up to the one
  // before that.
  template <int n, int last, bool all>
  FLYDSL_DEVICE void wait_for_fragment() {
    constexpr int younger = [] {
      int reads = 0;
      for (int i = n + 1; i < last && i < n + kAhead + all; ++i) reads += i < v_fragments ? 2 : 1;
      return reads;
    }();
    __builtin_amdgcn_s_waitcnt(0xc07f | younger << 8);
  }
  template <int n>
  FLYDSL_DEVICE void multiply(int h, u32x4 fragment) {
    if constexpr (n < v_fragments) {
      f32x16 &out = o[h][n % blocks];
      out = mfma_32x32x16<Element>(fragment, half[h].p[n / blocks], out);
      asm volatile("" : "+v"(out));
    } else {
      constexpr int number = n - v_fragments, step = number % steps;
      f32x16 &s = half[h].s[number / steps];
      s = mfma_32x32x16<Element>(fragment, q[h][step], step == 0 ? f32x16{} : s);
      asm volatile("" : "+v"(s));
    }
  }
  template <int first, int last, int from_half, class Beside>
  FLYDSL_DEVICE void products(lds_ptr<const char> v_lane, const Keys &k, Beside beside) {
    each<last - first>([&](auto number) {
      constexpr int n = first + decltype(number)::value;
      // The first product does not wait for the read that it could stand behind.
      constexpr bool starts = n == first, reads = n + kAhead < last;
      slot();
      if constexpr (reads && !starts) read_fragment<n + kAhead>(v_lane, k);
      wait_for_fragment<n, last, !starts>();
      slot();
      if constexpr (from_half == 0) multiply<n>(0, ring[n % (kAhead + 1)]);
      slot();
      if constexpr (reads && starts) read_fragment<n + kAhead>(v_lane, k);
      beside(Number<n>{});
      slot();
      multiply<n>(1, ring[n % (kAhead + 1)]);
    });
    slot();
    // clang 22.1 lets scores be read after 11 of the 12 wait states that it takes (found by the emulator's hazard check).
    if constexpr (last == fragments) asm volatile("s_nop 0");
    slot();
  }
  template <int first>
  FLYDSL_DEVICE void read_first(lds_ptr<const char> v_lane, const Keys &k) {
    each<kAhead>([&](auto number) { read_fragment<first + decltype(number)::value>(v_lane, k); });
  }

  // ---- vector phase: weight w by key block, half and element; or of those of the second half
  template <int from_half, int w>
  static constexpr int half_of = from_half != 0 ? from_half : w / 16 % 2;
  template <int from_half, int w>
  static constexpr int element_of = from_half != 0 ? w : w / 32 * 16 + w % 16;
  template <int from_half>
  FLYDSL_DEVICE void weigh() {
    // Packed instructions, two elements a slot, have to find the matrix unit free: first, before the other wave's
    // matrix phase, and before its instructions if it has begun.
    constexpr int kAll = 32 * key_blocks, kWeights = from_half != 0 ? kAll / 2 : kAll,
                  kPacked = Plan::packed * kWeights / kAll, kHurry = Plan::hurry;
    set_priority<kFirstPriority>();
    each<kPacked / 2>([&](auto number) {
      constexpr int w = 2 * decltype(number)::value, e = element_of<from_half, w>;
      constexpr int h = half_of<from_half, w>;
      f32x16 &s = half[h].s[e / 16];
      const float reference = half[h].reference;
      const f32x2 pair = __builtin_elementwise_fma(f32x2{s[e % 16], s[e % 16 + 1]}, f32x2{c, c},
                                                   f32x2{-reference, -reference});
      by_now(pair);
      s[e % 16] = pair[0];
      s[e % 16 + 1] = pair[1];
    });
    set_priority<kVectorPriority>();
    // Each step is some instructions after the one that it needs.
    constexpr int kDistance = 4;
    each<kWeights + 2 * kDistance>([&](auto number) {
      constexpr int n = decltype(number)::value;
      if constexpr (n == kHurry) set_priority<kHurryPriority>();
      if constexpr (n >= kPacked && n < kWeights)
        half[half_of<from_half, n>].template exponent<element_of<from_half, n>>(c);
      if constexpr (constexpr int w = n - kDistance; w >= 0 && w < kWeights)
        half[half_of<from_half, w>].template weigh<element_of<from_half, w>>();
      if constexpr (constexpr int w = n - 2 * kDistance; w >= 0 && w % 2 == 1)
        half[half_of<from_half, w>].template round<element_of<from_half, w> / 2>();
    });
    slot();
  }
  // Packed, at the end of the phase: when the other wave's matrix phase ends, too.
  template <int from_half>
  FLYDSL_DEVICE void add_weights(f32x2 (&sums)[2]) {
    each<8 * key_blocks>([&](auto number) {
      constexpr int n = decltype(number)::value;
#pragma unroll
      for (int h = from_half; h < 2; ++h) {
        const f32x16 &s = half[h].s[n / 8];
        const f32x2 pair = {s[n % 8 * 2], s[n % 8 * 2 + 1]};
        sums[h] = n == 0 ? pair : sums[h] + pair;
        if constexpr (n > 0) by_now(sums[h]);
      }
    });
  }
  // Lanes whose rows' tile sum is too large.
  FLYDSL_DEVICE u64 finish_sums(const f32x2 (&sums)[2]) {
#pragma unroll
    for (int h = 0; h < 2; ++h) half[h].tile_sum = sums[h][0] + sums[h][1];
    const u64 exceeding =
        ballot(larger(half[0].tile_sum, half[1].tile_sum) > kLargestTileSum<Element>);
    by_now(exceeding);
    return exceeding;
  }
  // Rows whose tile sum is too large get another reference, and all that is relative to it a power of two. fp16 weights
  // may not even be finite: theirs move before the products that they are for. bf16 has the range of
  // fp32, so that its rows can wait until those products are done.
  static constexpr bool move_early = __is_same(Element, fp16);
  FLYDSL_DEVICE void move_references() {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float factor = half[h].move_reference();  // and P, which bf16 does not need any more
#pragma unroll
      for (f32x16 &block : o[h]) block *= factor;
    }
  }

  FLYDSL_DEVICE void mask_scores(i32 tile) {
    const i32 first_key = tile * keys;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (first_key + keys - 1 > work.last_key(first_row[h]))
        mask_tile(work.last_key(row_of(h)) - static_cast<i32>(lane / 32 * 4) - first_key,
                  half[h].s);
    }
  }

  FLYDSL_DEVICE void copy_k(i32 tile, lds_ptr<char> to) const {
    k_copies.copy_all(tile, to, Layout::k_byte_of_lane(lane), work.seq_k);
  }
  FLYDSL_DEVICE void copy_v(i32 tile, lds_ptr<char> to) const {
    v_copies.copy_all(tile, to, Layout::v_byte_of_lane(lane), work.seq_k);
  }
  // Waits for the copies, frees what was read.
  FLYDSL_DEVICE void exchange() {
    wait_for_copies();
    barrier();
  }

  // A causal problem's last tile has a step of its own; else it is one of the loop's, without scores of a next
  // tile. (With a step of its own clang 22.1 spills 53 registers there.)
  static constexpr bool ends_in_loop = mask != Mask::causal;
  // Scores of tile i are there; its V is in `now`, K of i + 1 in `other`, or on their way. K of i + 2 and V of
  // i + 1 are sent for. `full`: tiles up to i + 2 are complete, i + 1 is seen by all rows.
  template <bool full>
  FLYDSL_DEVICE void step(i32 i, Buffers now, Buffers other) {
    const lds_ptr<const char> v_lane = now.v + Layout::v_lane(lane);
    const Keys k(other.k, lane);
    weigh<0>();
    f32x2 sums[2];
    publish<0>(v_lane, k, sums);
    u64 exceeding = 0;
    if constexpr (move_early) {
      exceeding = finish_sums(sums);
      if (FLYDSL_UNLIKELY(exceeding != 0)) move_references();
    }
    set_priority<kMatrixPriority>();
    if constexpr (!full) {
      if (i + 2 < tiles) copy_k(i + 2, now.k);
      if (i + 1 < tiles) copy_v(i + 1, other.v);
    }
    constexpr int end = full || !ends_in_loop ? fragments : v_fragments;
    products<0, end, 0>(v_lane, k, [&](auto number) {
      constexpr int n = decltype(number)::value;
      if constexpr (n == 0) {
        if constexpr (!move_early) exceeding = finish_sums(sums);
        half[0].sum += half[0].tile_sum;
        half[1].sum += half[1].tile_sum;
      }
      if constexpr (full) {
        constexpr int line = n - 1, lines = decltype(k_copies)::lines;
        static_assert(2 * lines + 2 < fragments);
        if constexpr (line >= 0 && line < lines) k_copies.copy(line, now.k);
        if constexpr (line >= lines && line < 2 * lines) v_copies.copy(line - lines, other.v);
        // Past the last complete tile, which is then no longer needed, it is copied again.
        if constexpr (line == 2 * lines) k_copies.next_tile(i + 3 < complete_tiles);
        if constexpr (line == 2 * lines + 2) v_copies.next_tile(i + 2 < complete_tiles);
      }
    });
    if constexpr (end == fragments) {
      if constexpr (!full) mask_scores(i + 1);
    } else if (i + 1 < tiles) {
      read_first<v_fragments>(v_lane, k);
      products<v_fragments, fragments, 0>(v_lane, k, [](auto) {});
      mask_scores(i + 1);
    }
    set_priority<kVectorPriority>();
    if constexpr (!move_early) {
      if (FLYDSL_UNLIKELY(exceeding != 0)) move_references();
    }
  }
  // V of the tile for all waves, its first fragments for this one; the sums of its weights.
  template <int from_half>
  FLYDSL_DEVICE void publish(lds_ptr<const char> v_lane, const Keys &k, f32x2 (&sums)[2]) {
    exchange();
    slot();
    read_first<0>(v_lane, k);
    slot();
    add_weights<from_half>(sums);
  }
  // The last tile, of which the first half's rows may see nothing.
  template <int from_half>
  FLYDSL_DEVICE void last_step(Buffers now) {
    const lds_ptr<const char> v_lane = now.v + Layout::v_lane(lane);
    const Keys none(now.k, lane);
    weigh<from_half>();
    f32x2 sums[2] = {};
    publish<from_half>(v_lane, none, sums);
    const u64 exceeding = finish_sums(sums);
    if constexpr (move_early) {
      if (FLYDSL_UNLIKELY(exceeding != 0)) move_references();
    }
    half[0].sum += half[0].tile_sum;
    half[1].sum += half[1].tile_sum;
    set_priority<kMatrixPriority>();
    products<0, v_fragments, from_half>(v_lane, none, [](auto) {});
    set_priority<kVectorPriority>();
  }

  FLYDSL_DEVICE void load_q() {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const auto from = work.q_row(work.real_row(row_of(h))) + 16 * (lane / 32);
#pragma unroll
      for (int i = 0; i < steps; ++i) q[h][i] = load_16_bytes(from + 32 * i);
    }
    const Arguments args = fresh_arguments();
#pragma unroll
    for (int h = 0; h < 2; ++h) apply_sign<Element>(args->q_and, args->q_xor, q[h]);
  }
  FLYDSL_DEVICE void prologue(Buffers now, Buffers other) {
    set_priority<kFirstPriority>();
    copy_k(0, now.k);
    load_q();
    exchange();
    copy_k(1, other.k);
    copy_v(0, now.v);
    const Keys k(now.k, lane);
    read_first<v_fragments>(now.v, k);
    products<v_fragments, fragments, 0>(now.v, k, [](auto) {});
    mask_scores(0);
    half[0].set_reference(c);
    half[1].set_reference(c);
    // Of the first tiles that step() copies, or the last complete one.
    const i32 last = complete_tiles > 0 ? complete_tiles - 1 : 0;
    k_copies.begin_at(smaller(2, last));
    v_copies.begin_at(smaller(1, last));
    set_priority<kVectorPriority>();
  }

  // All tiles. Those before `full_tiles` are seen completely by all rows.
  FLYDSL_DEVICE void run(Buffers even, Buffers odd, i32 full_tiles) {
    // Steps that mask nothing, and whose copies are of complete tiles or not needed.
    i32 steps = full_tiles - 1;
    if (complete_tiles < tiles) steps = smaller(steps, complete_tiles - 2);
    if (!k_copies.near() || !v_copies.near()) steps = 0;
    prologue(even, odd);
    i32 i = 0;
    for (; i + 2 <= steps; i += 2) {
      step<true>(i, even, odd);
      step<true>(i + 1, odd, even);
    }
    bool at_odd = false;
#pragma unroll 1
    for (; i < tiles - !ends_in_loop; ++i) {
      step<false>(i, at_odd ? odd : even, at_odd ? even : odd);
      at_odd = !at_odd;
    }
    if constexpr (!ends_in_loop) {
      const Buffers now = at_odd ? odd : even;
      if (work.last_key(first_row[0] + 31) < i * keys)
        last_step<1>(now);
      else
        last_step<0>(now);
    }
  }

  // Rows that need the slow path.
  FLYDSL_DEVICE u32 store(int h) {
    const i32 row = row_of(h);
    return finish_row(work, row, lane, work.last_key(row) < 0, half[h].reference, half[h].sum, 1.0f,
                      o[h], [&](bool write, float factor) FLYDSL_INLINED {
                        store_row<Element>(work.out_row(row), lane, write, factor, o[h]);
                      });
  }
  FLYDSL_DEVICE void store_all() {
    u64 exact_rows = store(0);
    exact_rows |= static_cast<u64>(store(1)) << 32;
#pragma unroll 1
    for (; FLYDSL_UNLIKELY(exact_rows != 0); exact_rows &= exact_rows - 1) {
      const i32 bit = __builtin_ctzll(exact_rows);
      const i32 row = (bit < 32 ? first_row[0] : first_row[1]) + bit % 32;
      exact_row(ClassRow<Element, head_dim, mask>(work, row), lane);
    }
  }
};

template <class Element, int head_dim, Mask mask>
FLYDSL_DEVICE void attention_forward(const flydsl_aot_attention_forward_kernarg &) {
  using W = Wave<Element, head_dim, mask>;
  // One array per buffer: only then does clang 22 see which copies an LDS read has to wait for.
  FLYDSL_SHARED static char k_even[W::Layout::bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char v_even[W::Layout::bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char k_odd[W::Layout::bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char v_odd[W::Layout::bytes] __attribute__((aligned(16)));
  const typename W::Buffers even{(lds_ptr<char>)k_even, (lds_ptr<char>)v_even};
  const typename W::Buffers odd{(lds_ptr<char>)k_odd, (lds_ptr<char>)v_odd};

  Problem<mask> work;
  if (!find_work(work, kRowsOfGroup, kSharing)) return;
  const u32 item = __builtin_amdgcn_workitem_id_x();
  W wave(work, uniform(item / kWaveLanes), item % kWaveLanes);
  // Tiles with a key that any row of the work-group sees, that all rows see completely, that exist completely.
  wave.tiles = (work.last_key(work.first_row + kRowsOfGroup - 1) + W::keys) / W::keys;
  const i32 full_tiles = (work.last_key(work.first_row) + 1) / W::keys;
  wave.complete_tiles = work.seq_k / W::keys;
  if (FLYDSL_LIKELY(wave.tiles > 0)) wave.run(even, odd, full_tiles);
  wave.store_all();
}

}  // namespace flydsl::kernels::alternating
