// attention_forward for problems without windows whose rows are aligned: the formula and the rules of the result are those of
// attention_forward.hip.h, as are work-groups of 4 waves, 32 query rows a wave, and steps of 64 keys. Here a wave's softmax
// stands beside its own products, so that it gets on quickly even where it has a SIMD for itself. One step:
//
//   O^T += V^T P^T of tile i, S^T = K Q^T of tile i + 2     | weights of tile i + 1, their sum, P
//
// Vector instructions stand between the matrix instructions in the order in which they are to be issued.
#pragma once

#include "attention_forward/class_row.hip.h"
#include "attention_forward/column_staging.hip.h"
#include "attention_forward/exact.hip.h"
#include "attention_forward/finish_row.hip.h"
#include "attention_forward/fragments.hip.h"
#include "attention_forward/pipelined/softmax.hip.h"
#include "attention_forward/queries.hip.h"
#include "attention_forward/scores.hip.h"

namespace flydsl::kernels::interleaved {

using pipelined::by_now;
using pipelined::each;
using pipelined::Number;

constexpr int kWaves = 4;
constexpr i32 kRowsOfGroup = kWaves * kRowsOfWave;

template <class Element, int head_dim_qk, int head_dim_v, Mask mask>
struct Wave {
  using Layout = ColumnTile<head_dim_qk, head_dim_v>;
  static constexpr int kAhead = 2;
  static constexpr int steps = head_dim_qk / 16, blocks = head_dim_v / 32;
  // Matrix instructions, and fragments: of V by (step, block), then of K by (step, key block).
  static constexpr int v_products = 4 * blocks, products = v_products + 2 * steps;
  struct Buffers {
    lds_ptr<char> k, v;
  };
  const Problem<mask> &work;
  ColumnStager<head_dim_qk, head_dim_v, Staging::direct, kWaves> stager;
  u32 lane;
  i32 first_row;          // of the wave
  i32 tiles, seen_tiles;  // of the work-group, of the wave
  float c;                // weights are 2^(score c - reference)
  u32x4 q[steps];
  f32x16 o[blocks] = {};
  pipelined::HalfTile<Element> now;
  f32x16 next[2];  // scores of the tile after that in `now`
  u32x4 ring[kAhead + 1];

  FLYDSL_DEVICE Wave(const Problem<mask> &work, u32 wave, u32 lane)
      : work(work), stager(work, wave, lane), lane(lane), c(fresh_arguments()->scale_log2) {
    first_row = work.first_row + static_cast<i32>(wave) * kRowsOfWave;
    const auto tiles_up_to = [&](i32 row) {
      return (work.last_key(row) + kKeysOfTile) / kKeysOfTile;
    };
    tiles = tiles_up_to(work.first_row + kRowsOfGroup - 1);
    seen_tiles = tiles_up_to(first_row + kRowsOfWave - 1);
  }
  FLYDSL_DEVICE i32 row() const { return first_row + static_cast<i32>(lane % 32); }

  // Tick t of the softmax, each part some instructions after the one that it needs.
  static constexpr int kDistance = 4, kTicks = 32 + 2 * kDistance;
  template <int t>
  FLYDSL_DEVICE void tick() {
    if constexpr (t < 32) now.template exponent<t>(c);
    if constexpr (constexpr int e = t - kDistance; e >= 0 && e < 32) now.template weigh<e>();
    if constexpr (constexpr int e = t - 2 * kDistance; e >= 0) {
      now.template add<e>();
      if constexpr (e % 2 == 1) now.template round<e / 2>();
    }
  }
  // Those beside matrix instruction n of `count`; done before the last ones.
  template <int n, int count>
  FLYDSL_DEVICE void ticks() {
    constexpr auto before = [](int m) { return m < count - 2 ? m * kTicks / (count - 2) : kTicks; };
    each<before(n + 1) - before(n)>(
        [&](auto number) { tick<before(n) + decltype(number)::value>(); });
  }

  template <int n>
  FLYDSL_DEVICE void read_fragment(const typename Layout::Values &v,
                                   const typename Layout::Keys &k) {
    u32x4 &fragment = ring[n % (kAhead + 1)];
    if constexpr (n < v_products)
      fragment = v(n / blocks, n % blocks);
    else
      fragment = k((n - v_products) % 2, (n - v_products) / 2);
  }
  // Matrix instructions first .. last - 1, beside(n) after each.
  template <int first, int last, class Beside>
  FLYDSL_DEVICE void multiply(const typename Layout::Values &v, const typename Layout::Keys &k,
                              Beside beside) {
    u32x4 p[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) p[i] = now.p[i];
    each<last - first>([&](auto number) {
      constexpr int n = first + decltype(number)::value;
      if constexpr (n + kAhead < last) read_fragment<n + kAhead>(v, k);
      fragment_slot();
      const u32x4 fragment = ring[n % (kAhead + 1)];
      if constexpr (n < v_products) {
        f32x16 &out = o[n % blocks];
        out = mfma_32x32x16<Element>(fragment, p[n / blocks], out);
        asm volatile("" : "+v"(out));
      } else {
        constexpr int step = (n - v_products) / 2;
        f32x16 &s = next[(n - v_products) % 2];
        s = mfma_32x32x16<Element>(fragment, q[step], step == 0 ? f32x16{} : s);
        asm volatile("" : "+v"(s));
      }
      fragment_slot();
      beside(Number<n>{});
      fragment_slot();
    });
  }
  template <int first>
  FLYDSL_DEVICE void read_first(const typename Layout::Values &v, const typename Layout::Keys &k) {
    // No copy between reads: clang 22.1 counts copies to LDS as LDS reads, and would wait too little (found by the emulator's
    // check of waits).
    fragment_slot();
    each<kAhead>([&](auto number) { read_fragment<first + decltype(number)::value>(v, k); });
    fragment_slot();
  }

  // Rows whose tile sum is too large get another reference, and all that is relative to it a power of two.
  FLYDSL_DEVICE void end_weights() {
    if (FLYDSL_UNLIKELY(ballot(now.tile_sum > kLargestTileSum<Element>) != 0)) {
      const float factor = now.move_reference();
#pragma unroll
      for (f32x16 &block : o) block *= factor;
    }
    now.sum += now.tile_sum;
  }
  FLYDSL_DEVICE void take_next(bool masked, i32 tile) {
    now.s[0] = next[0];
    now.s[1] = next[1];
    const i32 first_key = tile * kKeysOfTile;
    if (masked && first_key + kKeysOfTile - 1 > work.last_key(first_row))
      mask_tile(work.last_key(row()) - static_cast<i32>(lane / 32 * 4) - first_key, now.s);
  }

  FLYDSL_DEVICE void exchange() {
    stager.landed();
    barrier();
  }
  // P of tile i and scores of i + 1 are there; V of i and K of i + 2 are in `even`, or on their way. Tiles up to
  // i + 2 are seen; without `tail` by all rows, and i + 3 exists.
  template <bool tail>
  FLYDSL_DEVICE void step(i32 i, Buffers even, Buffers odd) {
    exchange();
    if (!tail || i + 3 < tiles) stager.begin_k(i + 3, odd.k);
    stager.begin_v(i + 1, odd.v);
    const typename Layout::Values v(even.v, lane);
    const typename Layout::Keys k(even.k, lane);
    read_first<0>(v, k);
    multiply<0, products>(v, k, [&](auto n) { ticks<decltype(n)::value, products>(); });
    end_weights();
    take_next(tail, i + 2);
  }
  // The same of the last two tiles that the wave sees: `more`, another one comes.
  template <bool more>
  FLYDSL_DEVICE void last_step(i32 i, Buffers even, Buffers odd) {
    exchange();
    copy_for_others(i, odd);
    const typename Layout::Values v(even.v, lane);
    const typename Layout::Keys none(even.k, lane);
    read_first<0>(v, none);
    multiply<0, v_products>(v, none, [&](auto n) {
      if constexpr (more) ticks<decltype(n)::value, v_products>();
    });
    if constexpr (more) end_weights();
  }
  FLYDSL_DEVICE void copy_for_others(i32 i, Buffers odd) {
    if (i + 3 < tiles) stager.begin_k(i + 3, odd.k);
    if (i + 1 < tiles) stager.begin_v(i + 1, odd.v);
  }

  FLYDSL_DEVICE void start(Buffers even, Buffers odd) {
    stager.begin_k(0, even.k);
    if (tiles > 1) stager.begin_k(1, odd.k);
    stager.begin_v(0, even.v);
    load_class_queries<Element>(work, row(), lane, q);
    exchange();
    const typename Layout::Values none(even.v, lane);
    if (seen_tiles > 0) {
      const typename Layout::Keys k(even.k, lane);
      read_first<v_products>(none, k);
      multiply<v_products, products>(none, k, [](auto) {});
      take_next(true, 0);
      now.set_reference(c);
    }
    barrier();
    if (tiles > 2) stager.begin_k(2, even.k);
    if (seen_tiles > 0) {
      const typename Layout::Keys k(odd.k, lane);
      read_first<v_products>(none, k);
      multiply<v_products, products>(none, k, [&](auto n) {
        ticks<decltype(n)::value - v_products, products - v_products>();
      });
      end_weights();
      take_next(true, 1);
    }
  }

  // `full_tiles`: seen completely by all rows.
  FLYDSL_DEVICE void run(Buffers even, Buffers odd, i32 full_tiles) {
    start(even, odd);
    i32 i = 0;
    for (; i + 4 <= full_tiles; i += 2) {
      step<false>(i, even, odd);
      step<false>(i + 1, odd, even);
    }
    u32 at_odd = 0;
    const auto at = [&] { return at_odd != 0 ? odd : even; };
    const auto other = [&] { return at_odd != 0 ? even : odd; };
#pragma unroll 1
    for (; i + 2 < seen_tiles; ++i, at_odd ^= 1) step<true>(i, at(), other());
    if (i + 1 < seen_tiles) {
      last_step<true>(i, at(), other());
      ++i, at_odd ^= 1;
    }
    if (i < seen_tiles) {
      last_step<false>(i, at(), other());
      ++i, at_odd ^= 1;
    }
    // Tiles that only other waves see.
#pragma unroll 1
    for (; i < tiles; ++i, at_odd ^= 1) {
      exchange();
      copy_for_others(i, other());
    }
  }

  FLYDSL_DEVICE void store() {
    u32 exact_rows =
        finish_row(work, row(), lane, work.last_key(row()) < 0, now.reference, now.sum, 1.0f, o,
                   [&](bool write, float factor) FLYDSL_INLINED {
                     store_class_row<Element>(work.out_row(row()), lane, write, factor, o);
                   });
#pragma unroll 1
    for (; FLYDSL_UNLIKELY(exact_rows != 0); exact_rows &= exact_rows - 1)
      exact_row(ClassRow<Element, head_dim_v, mask>(work, first_row + __builtin_ctz(exact_rows)),
                lane);
  }
};

template <class Element, int head_dim_qk, int head_dim_v, Mask mask>
FLYDSL_DEVICE void attention_forward(const flydsl_aot_attention_forward_kernarg &) {
  using W = Wave<Element, head_dim_qk, head_dim_v, mask>;
  using Layout = typename W::Layout;
  // One array per buffer: only then does clang 22 see which copies an LDS read has to wait for.
  FLYDSL_SHARED static char k_even[Layout::k_bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char v_even[Layout::v_bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char k_odd[Layout::k_bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char v_odd[Layout::v_bytes] __attribute__((aligned(16)));
  const typename W::Buffers even{(lds_ptr<char>)k_even, (lds_ptr<char>)v_even};
  const typename W::Buffers odd{(lds_ptr<char>)k_odd, (lds_ptr<char>)v_odd};

  Problem<mask> work;
  constexpr u32 sharing = kLdsBytes / (2 * (Layout::k_bytes + Layout::v_bytes));
  if (!find_work(work, kRowsOfGroup, sharing)) return;
  const u32 item = __builtin_amdgcn_workitem_id_x();
  W wave(work, uniform(item / kWaveLanes), item % kWaveLanes);
  if (FLYDSL_LIKELY(wave.tiles > 0))
    wave.run(even, odd, (work.last_key(work.first_row) + 1) / kKeysOfTile);
  wave.store();
}

}  // namespace flydsl::kernels::interleaved
