// attention_decode, the pass over the keys: few queries, long sequences, bound by memory. Rules of the
// result: include/flydsl_aot/attention_decode.h.
//
// A work-group is one wave and works alone. The rows of a matrix product are the queries of all heads
// that share a key head. A step is 32 keys:
//
//   wait for K | S^T = K Q^T | copy K of tile + 2 there | softmax | wait for V | O^T += V^T P^T | copy V of tile + 2
//
// so that three to four tiles' copies are always on their way. The segments' results are put together
// by attention_decode_reduce.hip.h.
#pragma once

#include "attention_decode/partial.hip.h"
#include "attention_decode/scores.hip.h"
#include "attention_decode/staging.hip.h"
#include "attention_decode/weights.hip.h"
#include "common/memory.hip.h"
#include "common/mfma.hip.h"

namespace flydsl::kernels {

template <class Element, int head_dim_qk, int head_dim_v, int row_blocks>
struct Segment {
  using Source = Stager<head_dim_qk, head_dim_v>;
  using Keys = typename Source::Keys;
  using Values = typename Source::Values;
  static constexpr int k_copies = Keys::copies, v_copies = Values::copies;
  static constexpr int blocks = head_dim_v / 16, score_steps = head_dim_qk / 32;

  u32 lane;
  Sequence sequence;
  Source source;
  u32 rows;       // of the pair in this tile of rows
  u32 tile, end;  // of the sequence
  float c;
  u32x4 q[row_blocks][score_steps];
  RowTerms terms[row_blocks];
  RowState state[row_blocks];
  f32x4 o[row_blocks][blocks] = {};

  FLYDSL_DEVICE Segment(u32 batch, u32 pair, u32 tile, u32 end, const Sequence &sequence, u32 lane)
      : lane(lane),
        sequence(sequence),
        source(batch, pair / fresh_arguments()->row_tiles, sequence, lane),
        tile(tile),
        end(end),
        c(weight_factor()) {
    source.start(tile);
    const Arguments args = fresh_arguments();
    const u32 first_row = pair % args->row_tiles * (16 * row_blocks);
    const u32 left = args->heads_per_kv * static_cast<u32>(args->seq_q) - first_row;
    rows = left < 16 * row_blocks ? left : 16 * row_blocks;
#pragma unroll
    for (int block = 0; block < row_blocks; ++block) {
      // Rows past the last repeat it and are not stored.
      const u32 row = 16 * block + lane % 16;
      const Row at(batch, source.kv_head, first_row + (row < rows ? row : rows - 1));
      terms[block] = RowTerms(at, sequence);
      const auto from = at.q() + lane / 16 * 16;
#pragma unroll
      for (int step = 0; step < score_steps; ++step)
        q[block][step] = load_16_bytes(from + 64 * step);
    }
  }

  FLYDSL_DEVICE void scores(lds_ptr<const char> keys, f32x4 (&s)[row_blocks][2]) const {
#pragma unroll
    for (int step = 0; step < score_steps; ++step) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const u32x4 k = read_b128(keys + Keys::key_byte(lane, half, step));
#pragma unroll
        for (int block = 0; block < row_blocks; ++block)
          s[block][half] =
              mfma_16x16x32<Element>(k, q[block][step], step == 0 ? f32x4{} : s[block][half]);
      }
    }
  }

  FLYDSL_DEVICE u32x4 weights(int block, f32x4 (&s)[2]) {
    const i32 begin = source.begin + static_cast<i32>(tile) * kKeysOfTile;
    const i32 lane_begin = begin + static_cast<i32>(lane / 16 * 4);
    const float sign = fresh_arguments()->scale_sign;
    s[0] *= sign;
    s[1] *= sign;
    const auto key = [&](int i) { return lane_begin + 16 * (i / 4) + i % 4; };
    if (has_terms()) {
      float plain[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) plain[i] = s[i / 4][i % 4];
      add_score_terms(
          terms[block], 8, [&](int i) -> float & { return plain[i]; }, key);
#pragma unroll
      for (int i = 0; i < 8; ++i) s[i / 4][i % 4] = plain[i];
    }
    if (begin < sequence.first_key(sequence.seq_q - 1) ||
        begin + kKeysOfTile - 1 > sequence.last_key(0)) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const bool seen = terms[block].first_key <= key(i) && key(i) <= terms[block].last_key;
        s[i / 4][i % 4] = seen ? s[i / 4][i % 4] : -kInfinity;
      }
    }
    return weigh<Element>(s, c, lane, state[block], o[block]);
  }

  // One tile, in `keys` and `values`. With `more` that of the tile after the next goes there too.
  template <bool more>
  FLYDSL_DEVICE void step(u32 odd, lds_ptr<char> keys, lds_ptr<char> values) {
    wait_for_copies_but<more ? k_copies + 2 * v_copies : 0>();
    f32x4 s[row_blocks][2];
    scores(keys, s);
    if constexpr (more) {
      wait_for_reads();
      source.copy_keys(odd, keys);
    }
    u32x4 p[row_blocks];
#pragma unroll
    for (int block = 0; block < row_blocks; ++block) p[block] = weights(block, s[block]);
    if constexpr (more) wait_for_copies_but<2 * k_copies + v_copies>();
#pragma unroll
    for (int n = 0; n < blocks; ++n) {
      const u32x2 low = read_transposed_b64(values + Values::value_byte(lane, 0, n));
      const u32x2 high = read_transposed_b64(values + Values::value_byte(lane, 1, n));
      const u32x4 v = {low[0], low[1], high[0], high[1]};
#pragma unroll
      for (int block = 0; block < row_blocks; ++block)
        o[block][n] = mfma_16x16x32<Element>(v, p[block], o[block][n]);
    }
    if constexpr (more) {
      wait_for_reads();
      source.copy_values(odd, values);
    }
    ++tile;
  }

  // Tiles are fetched in twos, so one past the end may be: a tile of the next segment, or the last key
  // over and over.
  FLYDSL_DEVICE void run(lds_ptr<char> k0, lds_ptr<char> v0, lds_ptr<char> k1, lds_ptr<char> v1) {
    source.copy_keys(0, k0);
    source.copy_values(0, v0);
    source.copy_keys(1, k1);
    source.copy_values(1, v1);
    while (FLYDSL_LIKELY(tile + 2 < end)) {
      source.advance(tile + 2);
      step<true>(0, k0, v0);
      step<true>(1, k1, v1);
    }
    step<false>(0, k0, v0);
    if (tile < end) step<false>(1, k1, v1);
  }

  FLYDSL_DEVICE void store(u32 slot) const {
#pragma unroll
    for (int block = 0; block < row_blocks; ++block) {
      const float sum = sum_of_row(state[block].sum, lane);
      const float highest = max_of_row(state[block].highest, lane);
      const u32 row = 16 * block + lane % 16;
      if (row >= rows) continue;
      const u64 partial = partial_row(slot, row);
      if (lane < 16) *partial_head(partial) = f32x4{state[block].reference, sum, highest, 0.0f};
      const auto to = partial_out(partial) + lane / 16 * 4;
#pragma unroll
      for (int n = 0; n < blocks; ++n) *(global_ptr<f32x4>)(to + 16 * n) = o[block][n];
    }
  }
};

template <class Element, int head_dim_qk, int head_dim_v, int row_blocks>
FLYDSL_DEVICE void attention_decode(const flydsl_aot_attention_decode_kernarg &) {
  using Keys = TileLayout<head_dim_qk>;
  using Values = TileLayout<head_dim_v>;
  // One array per buffer, each named by its own code (the loop is unrolled by two): only then does
  // clang 22 see which copies an LDS read has to wait for.
  FLYDSL_SHARED static char k_even[Keys::bytes] __attribute__((aligned(256)));
  FLYDSL_SHARED static char v_even[Values::bytes] __attribute__((aligned(256)));
  FLYDSL_SHARED static char k_odd[Keys::bytes] __attribute__((aligned(256)));
  FLYDSL_SHARED static char v_odd[Values::bytes] __attribute__((aligned(256)));

  const u32 lane = __builtin_amdgcn_workitem_id_x(), worker = __builtin_amdgcn_workgroup_id_x();
  const u32 pairs = pairs_of_sequence();
  const Shares shares(count_tiles(0, lane).all * pairs, fresh_arguments()->workers);
  u32 unit = shares.begin(worker);
  const u32 end = shares.begin(worker + 1);
  if (unit >= end) return;
  const Location at = locate(unit / pairs, lane);
  u32 batch = at.batch;
  u32 first = at.tiles_before * pairs;  // unit of the sequence
#pragma unroll 1
  while (unit < end) {
    const Sequence sequence = sequence_of(batch);
    const u32 tiles = uniform(sequence.tiles());
    const u32 units = tiles * pairs;
    u32 offset = unit - first;
    while (unit < end && offset < units) {
      const u32 pair = offset / tiles, tile = offset % tiles;
      const u32 left = end - unit;
      const u32 tile_end = left < tiles - tile ? tile + left : tiles;
      Segment<Element, head_dim_qk, head_dim_v, row_blocks> segment(batch, pair, tile, tile_end,
                                                                    sequence, lane);
      segment.run((lds_ptr<char>)k_even, (lds_ptr<char>)v_even, (lds_ptr<char>)k_odd,
                  (lds_ptr<char>)v_odd);
      segment.store(worker + batch * pairs + pair);
      offset += tile_end - tile;
      unit += tile_end - tile;
    }
    first += units;
    ++batch;
  }
}

}  // namespace flydsl::kernels
