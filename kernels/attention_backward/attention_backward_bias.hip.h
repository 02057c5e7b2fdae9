// attention_backward's pass for the gradient of the bias: derivatives of the scores, summed over the axes that it does not
// have. A work-group computes 64 rows of 128 keys of dbias (or the sums of more), a wave 32 keys, a lane one; it walks over all
// that is summed there, in one order, and keeps the sums in registers. Of wide head dims it computes 32 keys (and 32 rows where LDS is
// small), and all of its waves the same sums (wide_wave.hip.h).
#pragma once

#include "attention_backward/wide_wave.hip.h"

namespace flydsl::kernels {

template <bool wide>
struct BiasWaveOf {
  template <class Element, int head_dim_qk, int head_dim_v>
  using Wave = ScoreWave<Element, head_dim_qk, head_dim_v, Pass::keys>;
};
template <>
struct BiasWaveOf<true> {
  template <class Element, int head_dim_qk, int head_dim_v>
  using Wave = WideWave<Element, head_dim_qk, head_dim_v, Pass::keys>;
};
template <class Element, int head_dim_qk, int head_dim_v>
using BiasWave = typename BiasWaveOf<is_wide(head_dim_qk, head_dim_v)>::template Wave<
    Element, head_dim_qk, head_dim_v>;

// Where the work-group's part of dbias, `rows` of `own_keys` keys, is. Its number counts keys first, then rows, heads, batches.
template <i32 own_keys, i32 rows>
struct BiasTile {
  // Kept in vector registers: the loops have no scalar ones left.
  u32 kept_batch, kept_head, kept_row, kept_key;

  FLYDSL_DEVICE u32 batch() const { return uniform(kept_batch); }
  FLYDSL_DEVICE u32 head() const { return uniform(kept_head); }
  FLYDSL_DEVICE i32 first_row() const { return static_cast<i32>(uniform(kept_row)); }
  FLYDSL_DEVICE i32 first_key() const { return static_cast<i32>(uniform(kept_key)); }

  FLYDSL_DEVICE bool find() {
    const Arguments a = fresh_arguments();
    u32 number = __builtin_amdgcn_workgroup_id_y() * a->grid_x + __builtin_amdgcn_workgroup_id_x();
    kept_key = computed_here(number % a->dbias_key_tiles * own_keys);
    number /= a->dbias_key_tiles;
    kept_row = computed_here(number % a->dbias_row_tiles * rows);
    number /= a->dbias_row_tiles;
    kept_head = computed_here(number % static_cast<u32>(a->dbias_heads));
    number /= static_cast<u32>(a->dbias_heads);
    kept_batch = computed_here(number);
    return number < static_cast<u32>(a->dbias_batches);
  }

  // Of what is summed here.
  FLYDSL_DEVICE u32 end_batch() const {
    const Arguments a = fresh_arguments();
    return a->dbias_batches == 1 ? static_cast<u32>(a->batches) : batch() + 1;
  }
  FLYDSL_DEVICE u32 end_head() const {
    const Arguments a = fresh_arguments();
    return a->dbias_heads == 1 ? static_cast<u32>(a->heads_q) : head() + 1;
  }
  FLYDSL_DEVICE i32 end_row(i32 all_rows) const {
    return fresh_arguments()->dbias_rows == 1 ? all_rows : smaller(all_rows, first_row() + rows);
  }
  FLYDSL_DEVICE i32 end_key(i32 keys) const {
    return fresh_arguments()->dbias_keys == 1 ? keys : smaller(keys, first_key() + own_keys);
  }
};

template <class Element, class Tile>
FLYDSL_DEVICE void store_bias(const Tile &tile, i32 row, i32 key, float value) {
  const Arguments a = fresh_arguments();
  if (row >= a->dbias_rows || key >= a->dbias_keys) return;
  const i64 at = tile.batch() * a->dbias_stride_b + tile.head() * a->dbias_stride_h +
                 row * a->dbias_stride_q + key * a->dbias_stride_k;
  if (a->dbias_is_fp32)
    ((global_ptr<float>)a->dbias)[at] = value;
  else
    ((global_ptr<typename Element::scalar>)a->dbias)[at] =
        static_cast<typename Element::scalar>(value);
}

// Over the 32 lanes of a half-wave.
FLYDSL_DEVICE float sum_of_half_wave(float value, u32 lane) {
  for (u32 mask = 1; mask < 32; mask *= 2) value += lane_xor(value, lane, mask);
  return value;
}

// Sums of the lane's key, in elements as those of a score product; of all waves, or of the first, where the others have the same.
template <class Element, i32 own_keys, i32 rows>
FLYDSL_DEVICE void store_bias_tile(const BiasTile<own_keys, rows> &tile, u32 wave, u32 lane,
                                   lds_ptr<float> partial, f32x16 (&sum)[rows / 32]) {
  constexpr int halves = rows / 32;
  constexpr u32 waves = own_keys / kOwnOfWave;
  const bool stores = waves == 4 || wave == 0;
  const Arguments args = fresh_arguments();
  const i32 key = tile.first_key() + static_cast<i32>(kOwnOfWave * wave + lane % 32);
  const bool one_row = args->dbias_rows == 1, one_key = args->dbias_keys == 1;
  if (one_row) {
    float all = 0.0f;
#pragma unroll
    for (int half = 0; half < halves; ++half) {
#pragma unroll
      for (int i = 0; i < 16; ++i) all += sum[half][i];
    }
    all = sum_of_halves(all);
    if (!one_key) {
      if (stores && lane < 32) store_bias<Element>(tile, 0, key, all);
      return;
    }
#pragma unroll
    for (f32x16 &half : sum) half = 0.0f;
    sum[0][0] = lane < 32 ? all : 0.0f;
  }
#pragma unroll
  for (int half = 0; half < halves; ++half) {
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const i32 row = 32 * half + other_of_element(i) + static_cast<i32>(lane / 32 * 4);
      if (!one_key) {
        if (stores) store_bias<Element>(tile, tile.first_row() + row, key, sum[half][i]);
      } else {
        const float of_keys = sum_of_half_wave(sum[half][i], lane);
        if (lane % 32 == 0) partial[rows * static_cast<i32>(wave) + row] = of_keys;
      }
    }
  }
  if (!one_key) return;
  barrier();
  if (wave != 0 || lane >= rows) return;
  float of_waves = 0.0f;
  for (u32 i = 0; i < waves; ++i) of_waves += partial[rows * i + lane];
  store_bias<Element>(tile, tile.first_row() + static_cast<i32>(lane), 0, of_waves);
}

template <class Element, int head_dim_qk, int head_dim_v>
FLYDSL_DEVICE void attention_backward_bias(const flydsl_aot_attention_backward_kernarg &) {
  using Wave = BiasWave<Element, head_dim_qk, head_dim_v>;
  constexpr i32 own_keys = Wave::kOwnOfGroup;
  constexpr i32 rows_of_tile = is_wide(head_dim_qk, head_dim_v)
                                    ? rows_of_wide_tile(head_dim_qk, head_dim_v)
                                    : kRowsOfTile;
  FLYDSL_SHARED static char lds_of_waves[larger(1, Wave::lds_bytes)] __attribute__((aligned(16)));
  FLYDSL_SHARED static char tiles[Wave::tiles_bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char lse[4 * rows_of_tile] __attribute__((aligned(16)));
  FLYDSL_SHARED static char delta[4 * rows_of_tile] __attribute__((aligned(16)));
  FLYDSL_SHARED static float partial[4 * rows_of_tile];
  const auto tile_1 = (lds_ptr<char>)tiles;
  const TilePlaces places = {tile_1, tile_1 + Wave::tile_2_at, (lds_ptr<char>)lse,
                             (lds_ptr<char>)delta};

  BiasTile<own_keys, rows_of_tile> bias;
  if (!bias.find()) return;
  const u32 item = __builtin_amdgcn_workitem_id_x();
  const u32 wave_number = uniform(item / kWaveLanes), lane = item % kWaveLanes;
  f32x16 sum[rows_of_tile / 32] = {};

  // (Ends are looked up anew in each round: kept, they would take more scalar registers than there are.)
#pragma unroll 1
  for (u32 batch = bias.batch(); batch < bias.end_batch(); ++batch) {
    Work<Pass::keys> work;
    static_cast<Sequence &>(work) = sequence_of(batch);
    work.batch = batch;
#pragma unroll 1
    for (u32 head = bias.head(); head < bias.end_head(); ++head) {
      work.head = head;
      work.kv_head = head / static_cast<u32>(fresh_arguments()->heads_per_kv);
#pragma unroll 1
      for (i32 key = bias.first_key(); key < bias.end_key(work.seq_k); key += own_keys) {
        work.first_own = key;
        const Range rows = work.others_of(key, key + own_keys - 1);
        const i32 first_row =
            larger(bias.first_row(), rows.first / rows_of_tile * rows_of_tile);
        const i32 last_row = smaller(bias.end_row(work.seq_q) - 1, rows.last);
        if (last_row < first_row) continue;
        Wave wave(work, wave_number, lane, (lds_ptr<char>)lds_of_waves);
        wave.load_own();
        typename Wave::Stager stager(work, item);
#pragma unroll 1
        for (i32 row = first_row; row <= last_row; row += rows_of_tile) {
          stager.begin(row / rows_of_tile);
          wave.bring(stager, places);
#pragma unroll
          for (int half = 0; half < rows_of_tile / 32; ++half) {
            u32x4 p[2];
            f32x16 ds, slopes;
            if (!wave.meets(row + 32 * half)) continue;
            wave.derive(half, row + 32 * half, places, stager, p, ds, slopes);
            if (wave.own() < work.seq_k) sum[half] += ds;  // lanes past the end repeat the last key
          }
        }
      }
    }
  }
  store_bias_tile<Element>(bias, wave_number, lane, (lds_ptr<float>)partial, sum);
}

}  // namespace flydsl::kernels
