// attention_backward's passes over keys and over queries for head dims above 256, or where LDS is small above 192: as
// attention_backward_general.hip.h, which says what is computed, but that a work-group owns 32 rows, which its waves share column by
// column (wide_wave.hip.h).
#pragma once

#include "attention_backward/gradient_sums.hip.h"
#include "attention_backward/steps.hip.h"
#include "attention_backward/wide_wave.hip.h"

namespace flydsl::kernels {

// The wave's columns of one gradient of 32 rows, as GradientSums has all of them.
template <class Element, class Blocks, class Tile>
struct WideSums {
  f32x16 of_block[Blocks::most] = {};

  FLYDSL_DEVICE void accumulate(u32 wave, u32 lane, lds_ptr<const char> tile, i32 half,
                                const u32x4 (&weights)[2]) {
    const typename Tile::Columns columns(tile + wave * Tile::block_bytes, lane);
    const auto add = [&]<int first, int blocks>() FLYDSL_INLINED {
      each_fragment<2 * blocks, kFragmentsAhead>(
          [&](auto n) FLYDSL_INLINED {
            return columns(2 * half + n / blocks, kWavesOfWide * (first + n % blocks));
          },
          [&](auto n, u32x4 fragment) FLYDSL_INLINED {
            f32x16 &sum = of_block[first + n % blocks];
            sum = mfma_32x32x16<Element>(fragment, weights[n / blocks], sum);
          });
    };
    add.template operator()<0, Blocks::of_every_wave>();
    if constexpr (Blocks::most != Blocks::of_every_wave) {
      if (Blocks::has_most(wave)) add.template operator()<Blocks::of_every_wave, 1>();
    }
  }

  // Stays 0 as long as every sum is finite.
  FLYDSL_DEVICE void probe(float &probe) const {
#pragma unroll
    for (const f32x16 &block : of_block) {
#pragma unroll
      for (int i = 0; i < 16; ++i) probe = fma(block[i], 0.0f, probe);
    }
  }

  FLYDSL_DEVICE void store(u32 wave, u32 lane, bool write, global_ptr<char> row, i32 head_dim,
                           float factor) const {
    const i32 first = static_cast<i32>(computed_here(lane / 32 * 8));
#pragma unroll
    for (int n = 0; n < Blocks::most; ++n) {
      const f32x16 block[1] = {of_block[n]};
      u32x4 pieces[2];
      pieces_of_row<Element>(factor, block, pieces);
      if (!write || (n >= Blocks::of_every_wave && !Blocks::has_most(wave))) continue;
#pragma unroll
      for (int piece = 0; piece < 2; ++piece)
        store_elements(row, Blocks::first_column(wave, n) + 16 * piece + first, head_dim,
                       pieces[piece]);
    }
  }
};

template <class Element, int head_dim_qk, int head_dim_v, Pass pass>
struct WideGradients : WideWave<Element, head_dim_qk, head_dim_v, pass> {
  using Wave = WideWave<Element, head_dim_qk, head_dim_v, pass>;
  using Wave::lane, Wave::own, Wave::wave, Wave::work, typename Wave::Stager;
  WideSums<Element, typename Wave::Blocks1, typename Wave::Tile1> sums_1;  // dk or dq
  WideSums<Element, typename Wave::Blocks2, typename Wave::Tile2> sums_2;  // dv

  using Wave::Wave;

  FLYDSL_DEVICE void compute(i32 half, i32 first_other, TilePlaces tile, const Stager &stager) {
    if (!this->meets(first_other)) return;  // nor do the other waves
    u32x4 p[2], rounded[2];
    f32x16 ds, slopes;
    if (this->derive(half, first_other, tile, stager, p, ds, slopes)) ds *= slopes;
    round_all<Element>(ds, rounded);
    if constexpr (pass == Pass::keys) sums_2.accumulate(wave, lane(), tile.tile_2, half, p);
    this->bring_again(stager, tile);
    sums_1.accumulate(wave, lane(), tile.tile_1, half, rounded);
  }

  // Rows that the fast path cannot be trusted with, in the columns of any wave, are computed by the slow one, each wave a part.
  FLYDSL_DEVICE void store(lds_ptr<char> lds) const {
    const bool exists = own() < work.own_count();
    u32 exact_rows = untrusted_rows(exists, (lds_ptr<u32>)lds);
    const bool write = exists && !(exact_rows >> lane() % 32 & 1);
    const Arguments args = fresh_arguments();
    const bool keys = pass == Pass::keys;
    sums_1.store(wave, lane(), write && (keys ? args->dk : args->dq),
                 keys ? work.dk_row(own()) : work.dq_row(own()), args->head_dim_qk, args->scale);
    if constexpr (pass == Pass::keys)
      sums_2.store(wave, lane(), write && args->dv, work.dv_row(own()), args->head_dim_v, 1.0f);
    exact_rows &= 0x11111111u << wave;
#pragma unroll 1
    for (; FLYDSL_UNLIKELY(exact_rows != 0); exact_rows &= exact_rows - 1)
      exact_gradients<Element, head_dim_qk, head_dim_v, true>(
          work, this->first_own + __builtin_ctz(exact_rows), lane());
  }

 private:
  FLYDSL_DEVICE u32 untrusted_rows(bool exists, lds_ptr<u32> of_waves) const {
    float probe = 0.0f;  // NaN if a sum is not finite: 0 * x is 0 for finite x only
    sums_1.probe(probe);
    if constexpr (pass == Pass::keys) sums_2.probe(probe);
    const u64 distrust = ballot(exists && !(probe == 0.0f));
    barrier();  // what was here has been read
    if (lane() == 0) of_waves[wave] = static_cast<u32>(distrust) | static_cast<u32>(distrust >> 32);
    barrier();
    u32 all = 0;
#pragma unroll
    for (int other = 0; other < kWavesOfWide; ++other) all |= of_waves[other];
    return uniform(all);
  }
};

template <class Element, int head_dim_qk, int head_dim_v, Pass pass>
FLYDSL_DEVICE void attention_backward_wide(const flydsl_aot_attention_backward_kernarg &) {
  using Wave = WideGradients<Element, head_dim_qk, head_dim_v, pass>;
  constexpr i32 rows_of_tile = Wave::rows_of_tile;
  FLYDSL_SHARED static char tiles[Wave::tiles_bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char lse[4 * rows_of_tile] __attribute__((aligned(16)));
  FLYDSL_SHARED static char delta[4 * rows_of_tile] __attribute__((aligned(16)));
  FLYDSL_SHARED static char exchange[Wave::lds_bytes] __attribute__((aligned(16)));
  const auto tile_1 = (lds_ptr<char>)tiles;
  const TilePlaces places = {tile_1, tile_1 + Wave::tile_2_at, (lds_ptr<char>)lse,
                             (lds_ptr<char>)delta};

  Work<pass> work;
  if (!find_work(work, Wave::kOwnOfGroup)) return;
  const u32 item = __builtin_amdgcn_workitem_id_x();
  Steps<pass, Wave::kOwnOfGroup, rows_of_tile> steps(work);
  Wave wave(work, uniform(item / kWaveLanes), item % kWaveLanes, (lds_ptr<char>)exchange);
  if (!steps.empty()) {
    wave.load_own();
    typename Wave::Stager stager(work, item);
    bool more;
#pragma unroll 1
    do {
      stager.begin(steps.tile);
      wave.bring(stager, places);
#pragma unroll 1
      for (i32 half = 0; half < rows_of_tile / 32; ++half)
        wave.compute(half, steps.tile * rows_of_tile + 32 * half, places, stager);
      more = steps.advance();
      if (!more) sums_settle();
    } while (more);
  }
  wave.store((lds_ptr<char>)exchange);
}

}  // namespace flydsl::kernels
