// Head dims above 256, where LDS is small above 192: the four waves of a work-group share 32 own rows. A wave has every fourth block of 32 columns, of the own
// operands as of the gradients. Its part of the score products meets those of the others in LDS, where every wave adds all
// of them in the same order, so that they agree on every bit of weights and derivatives.
//
// Tiles have 32 rows where 64 do not fit into LDS. Where it is small, those of both operands take turns in one buffer, too.
#pragma once

#include "attention_backward/score_wave.hip.h"

namespace flydsl::kernels {

constexpr i32 kWavesOfWide = 4;
constexpr bool kWideInTurns = kLdsBytes < 128 * 1024;

FLYDSL_DEVICE constexpr bool is_wide(int head_dim_qk, int head_dim_v) {
  return larger(head_dim_qk, head_dim_v) > (kWideInTurns ? 192 : 256);
}

// (The description of the general instances says the same.)
FLYDSL_DEVICE constexpr i32 rows_of_wide_tile(int head_dim_qk, int head_dim_v) {
  return kWideInTurns || head_dim_qk + head_dim_v > 576 + 512 ? 32 : kRowsOfTile;
}

// The blocks of 32 columns that a wave has: number n is block 4 n + wave.
template <int head_dim>
struct WideBlocks {
  static constexpr int all = head_dim / 32;
  static constexpr int of_every_wave = all / kWavesOfWide;
  static constexpr int most = (all + kWavesOfWide - 1) / kWavesOfWide;
  static FLYDSL_DEVICE bool has_most(u32 wave) {
    return wave + kWavesOfWide * (most - 1) < static_cast<u32>(all);
  }
  static FLYDSL_DEVICE i32 first_column(u32 wave, int n) {
    return 32 * (kWavesOfWide * n + static_cast<i32>(wave));
  }
};

template <class Element, int head_dim_qk, int head_dim_v, Pass pass>
struct WideWave : OwnPlaces<pass, false> {
  using Places = OwnPlaces<pass, false>;
  using Places::lane, Places::own, Places::work;
  using Blocks1 = WideBlocks<head_dim_qk>;
  using Blocks2 = WideBlocks<head_dim_v>;
  static constexpr i32 rows_of_tile = rows_of_wide_tile(head_dim_qk, head_dim_v);
  using Tile1 = TwoWayTile<head_dim_qk, rows_of_tile>;
  using Tile2 = TwoWayTile<head_dim_v, rows_of_tile>;
  using Stager = StagerThroughRegisters<pass, head_dim_qk, head_dim_v, rows_of_tile>;
  static constexpr i32 kOwnOfGroup = kOwnOfWave;
  static constexpr int lds_bytes = kWavesOfWide * 16 * 4 * static_cast<int>(kWaveLanes);
  // Both tiles, or the larger.
  static constexpr int tile_2_at = kWideInTurns ? 0 : Tile1::bytes;
  static constexpr int tiles_bytes = larger(Tile1::bytes, tile_2_at + Tile2::bytes);
  u32 wave;
  lds_ptr<char> exchange;  // of the work-group
  u32x4 own_1[2 * Blocks1::most], own_2[2 * Blocks2::most];

  FLYDSL_DEVICE WideWave(const Work<pass> &work, u32 wave, u32 lane, lds_ptr<char> exchange)
      : Places(work, work.first_own, lane), wave(wave), exchange(exchange) {}

  FLYDSL_DEVICE void load_own() {
    const i32 row = work.real_own(own());
    load<Blocks1>(work.own_row_1(row), fresh_arguments()->head_dim_qk, own_1);
    load<Blocks2>(work.own_row_2(row), fresh_arguments()->head_dim_v, own_2);
    this->load_lse_and_delta();
  }

  // A tile that the stager holds becomes what is computed with, between barriers: of both operands, or of the first, in whose
  // place the second comes in derive().
  static FLYDSL_DEVICE void bring(const Stager &stager, TilePlaces to) {
    barrier();  // what was here has been read
    if (kWideInTurns)
      stager.write_1(to);
    else
      stager.write(to);
    barrier();
  }
  // The first operand once more.
  static FLYDSL_DEVICE void bring_again(const Stager &stager, TilePlaces to) {
    if (kWideInTurns) bring(stager, to);
  }

  // As ScoreWave's; all waves of the work-group at once.
  FLYDSL_DEVICE bool derive(i32 half, i32 first_other, TilePlaces tile, const Stager &stager,
                            u32x4 (&p)[2], f32x16 &ds, f32x16 &slopes) const {
    f32x16 s = score_products<Tile1, Blocks1>(tile.tile_1, half, own_1);
    if (kWideInTurns) {
      barrier();
      stager.write_2(tile);
      barrier();
    }
    ds = score_products<Tile2, Blocks2>(tile.tile_2, half, own_2);
    add_parts(s);
    add_parts(ds);
    return weights_of_products<Element>(*this, half, first_other, tile, s, ds, slopes, p);
  }

 private:
  template <class Blocks, int fragments>
  FLYDSL_DEVICE void load(global_ptr<const char> row, i32 head_dim, u32x4 (&held)[fragments]) {
    const i32 first = static_cast<i32>(computed_here(lane() / 32 * 8));
#pragma unroll
    for (int n = 0; n < fragments; ++n)
      held[n] =
          load_elements(row, Blocks::first_column(wave, n / 2) + n % 2 * 16 + first, head_dim);
  }

  template <class Tile, class Blocks, int fragments>
  FLYDSL_DEVICE f32x16 score_products(lds_ptr<const char> tile, i32 half,
                                      const u32x4 (&own_operand)[fragments]) const {
    const typename Tile::Rows rows(tile + wave * Tile::block_bytes, lane());
    f32x16 s = {};
    const auto add = [&]<int first, int count>() FLYDSL_INLINED {
      each_fragment<count, kFragmentsAhead>(
          [&](auto n) FLYDSL_INLINED {
            return rows(half, 2 * kWavesOfWide * ((first + n) / 2) + (first + n) % 2);
          },
          [&](auto n, u32x4 fragment)
              FLYDSL_INLINED { s = mfma_32x32x16<Element>(fragment, own_operand[first + n], s); });
    };
    add.template operator()<0, 2 * Blocks::of_every_wave>();
    if constexpr (Blocks::most != Blocks::of_every_wave) {
      if (Blocks::has_most(wave)) add.template operator()<2 * Blocks::of_every_wave, 2>();
    }
    return s;
  }

  // Of all waves: the sum of what each of them has.
  FLYDSL_DEVICE void add_parts(f32x16 &s) const {
    constexpr int quad_bytes = 16 * static_cast<int>(kWaveLanes), part_bytes = 4 * quad_bytes;
    const lds_ptr<char> of_lane = exchange + 16 * lane();
    barrier();  // what was here has been read
#pragma unroll
    for (int i = 0; i < 16; i += 4)
      write_b128(of_lane + wave * part_bytes + i / 4 * quad_bytes,
                 u32x4{bits_as<u32>(s[i]), bits_as<u32>(s[i + 1]), bits_as<u32>(s[i + 2]),
                       bits_as<u32>(s[i + 3])});
    barrier();
#pragma unroll
    for (int part = 0; part < kWavesOfWide; ++part) {
#pragma unroll
      for (int i = 0; i < 16; i += 4) {
        const u32x4 four = read_b128(of_lane + part * part_bytes + i / 4 * quad_bytes);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float value = bits_as<float>(four[j]);
          s[i + j] = part == 0 ? value : s[i + j] + value;
        }
      }
    }
  }
};

}  // namespace flydsl::kernels
