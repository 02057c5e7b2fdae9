// attention_decode, the pass over the keys: few queries, long sequences, bound by memory. Rules of the
// result: include/flydsl_aot/attention_decode.h.
//
// The rows of a matrix product are the queries of all heads that share a key head. A work-group, mostly
// of one wave, works alone. A step is a tile of 32 keys, or several:
//
//   wait for K | S^T = K Q^T | copy K of step + 2 there | softmax | wait for V | O^T += V^T P^T | copy V of step + 2
//
// so that three to four steps' copies are always on their way. Where values are the first elements of the
// keys there is one copy for both, after the second product. Several waves have rows of their own, share
// the tiles and meet where buffers change hands. The segments' results are put together by
// attention_decode_reduce.hip.h.
//
// Before gfx950, where LDS is small and copies pass registers, a step's keys and values take turns in one buffer, and more waves
// share a compute unit.
#pragma once

#include "attention_decode/operands.hip.h"
#include "attention_decode/partial.hip.h"
#include "attention_decode/scores.hip.h"
#include "attention_decode/staging.hip.h"
#include "attention_decode/weights.hip.h"

namespace flydsl::kernels {

// The buffers that a step uses.
struct Buffers {
  lds_ptr<char> keys, values;
};

// Those that a segment begins with are loaded, all at once: where they are read first, each would be waited for.
FLYDSL_DEVICE Arguments segment_arguments() {
  const Arguments args = fresh_arguments();
  asm volatile(
      "" ::"s"(args->q), "s"(args->k), "s"(args->v), "s"(args->q_stride_b), "s"(args->q_stride_h),
      "s"(args->q_stride_s), "s"(args->k_stride_b), "s"(args->k_stride_h), "s"(args->k_stride_s),
      "s"(args->v_stride_b), "s"(args->v_stride_h), "s"(args->v_stride_s), "s"(args->block_table),
      "s"(args->heads_per_kv), "s"(args->seq_q), "s"(args->head_dim_qk), "s"(args->head_dim_v),
      "s"(args->row_tiles), "s"(args->scale_log2), "s"(args->scale_sign), "s"(args->score_terms),
      "s"(args->alibi_slopes), "s"(args->k_descale));
  return args;
}

template <class S>
struct Segment {
  using Element = typename S::Element;
  static constexpr int row_blocks = S::row_blocks, tiles = S::tiles;
  static constexpr int k_copies = S::k_copies, v_copies = S::v_copies;

  u32 lane, first_row;  // first_row: of this wave, in the tile of rows
  Sequence sequence;
  Stager<S> source;
  u32 rows;       // of the pair in this tile of rows
  u32 tile, end;  // of the sequence
  bool terms_wanted;
  float c, factor;  // of products: the scale's sign, and what 8-bit keys are multiplied by
  u32x4 q[row_blocks][S::score_steps];
  RowTerms terms[row_blocks];
  RowState state[row_blocks];
  f32x4 o[row_blocks][S::value_blocks] = {};

  FLYDSL_DEVICE Segment(u32 batch, u32 pair, u32 tile, u32 end, const Sequence &sequence, u32 lane,
                        u32 wave, Arguments args = segment_arguments())
      : lane(lane),
        first_row(wave * S::rows_of_wave),
        sequence(sequence),
        source(batch, pair / args->row_tiles, sequence, lane, wave, args),
        tile(tile),
        end(end),
        terms_wanted(has_terms(args)),
        c(weight_factor(args)),
        factor(product_factor(batch, source.kv_head, args)) {
    source.last = smaller(source.last, source.begin + static_cast<i32>(end) * kKeysOfTile - 1);
    source.start(tile, args);
    const u32 first = pair % args->row_tiles * rows_of_tile;
    const u32 left = args->heads_per_kv * static_cast<u32>(args->seq_q) - first;
    rows = left < rows_of_tile ? left : rows_of_tile;
#pragma unroll
    for (int block = 0; block < row_blocks; ++block) {
      // Rows past the last repeat it and are not stored.
      const u32 row = first_row + 16 * block + lane % 16;
      const Row at(batch, source.kv_head, first + (row < rows ? row : rows - 1), args);
      terms[block] = RowTerms(at, sequence, args);
      load_query<S>(at.q(args), lane, q[block]);
    }
  }
  static constexpr u32 rows_of_tile = S::waves * S::rows_of_wave;

  // Of one tile, number `tile` of the sequence.
  FLYDSL_DEVICE u32x4 weights(u32 tile, int block, f32x4 (&s)[2]) {
    const i32 begin = source.begin + static_cast<i32>(tile) * kKeysOfTile;
    const i32 lane_begin = begin + static_cast<i32>(lane / 16 * 4);
    s[0] *= factor;
    s[1] *= factor;
    const auto key = [&](int i) { return lane_begin + 16 * (i / 4) + i % 4; };
    if (terms_wanted) {
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

  // All waves come here before any goes on. Each has waited for the copies or the reads that matter: the
  // fence of a common/lds.hip.h barrier would wait for all copies.
  static FLYDSL_DEVICE void meet() {
    if constexpr (S::waves > 1) asm volatile("s_barrier" ::: "memory");
  }

  // O^T += V^T P^T of one tile.
  FLYDSL_DEVICE void multiply_values(lds_ptr<const char> values, const u32x4 (&p)[row_blocks]) {
    read_ahead<S::value_blocks>([&](int m) { return read_values<S>(values, lane, m); },
                                [&](u32x4 stored, int m) {
                                  const u32x4 v = operand_of_values<S>(stored);
#pragma unroll
                                  for (int block = 0; block < row_blocks; ++block)
                                    o[block][m] =
                                        mfma_16x16x32<Element>(v, p[block], o[block][m]);
                                });
  }

  // The tiles in `buffers`, those of them that the segment has; those of the step after the next are copied
  // there.
  FLYDSL_DEVICE void step(u32 odd, Buffers buffers) {
    wait_for_copies_but<k_copies + 2 * v_copies>();
    meet();
    f32x4 s[tiles][row_blocks][2];
#pragma unroll
    for (int n = 0; n < tiles; ++n)
      multiply_keys<S>(buffers.keys + n * S::Keys::bytes, lane, q, s[n]);
    if constexpr (!S::shared) {
      wait_for_reads();
      meet();
      source.copy_keys(odd, buffers.keys);
    }
    if constexpr (!S::shared && tiles > 1) {
      wait_for_copies_but<2 * k_copies + v_copies>();
      meet();
    }
#pragma unroll
    for (int n = 0; n < tiles; ++n) {
      if (n > 0 && tile + n >= end) break;
      u32x4 p[row_blocks];
#pragma unroll
      for (int block = 0; block < row_blocks; ++block)
        p[block] = weights(tile + n, block, s[n][block]);
      if constexpr (!S::shared && tiles == 1) {
        wait_for_copies_but<2 * k_copies + v_copies>();
        meet();
      }
      multiply_values(buffers.values + n * S::Values::bytes, p);
    }
    wait_for_reads();
    meet();
    if constexpr (S::shared)
      source.copy_keys(odd, buffers.keys);
    else
      source.copy_values(odd, buffers.values);
    tile += tiles;
  }

  // Two steps more are fetched than there are, the segment's last key over and over (it is in the caches), so
  // that all steps are the same code: a wave that takes few would wait longer for the code of other last steps
  // than for these copies.
  FLYDSL_DEVICE void run(Buffers even, Buffers odd) {
    wait_for_reads();
    meet();  // the segment before may still be read
    source.copy_keys(0, even.keys);
    source.copy_values(0, even.values);
    source.copy_keys(1, odd.keys);
    source.copy_values(1, odd.values);
    // Not waited for before the copies are on their way.
    __builtin_amdgcn_sched_barrier(0);
#pragma unroll
    for (int block = 0; block < row_blocks; ++block) pad_query<S>(lane, q[block]);
    for (;;) {
      source.advance(tile + 2 * tiles, fresh_arguments());
      step(0, even);
      if (tile >= end) break;
      step(1, odd);
      if (FLYDSL_UNLIKELY(tile >= end)) break;
    }
    wait_for_copies_but<0>();  // LDS may be another work-group's after the end
  }

  // ---- the same in one buffer, which holds the keys of the step's tiles, then their values.

  FLYDSL_DEVICE void step_in_turns(u32 odd, lds_ptr<char> buffer) {
    wait_for_writes();
    meet();
    f32x4 s[tiles][row_blocks][2];
#pragma unroll
    for (int n = 0; n < tiles; ++n)
      multiply_keys<S>(buffer + n * S::Keys::bytes, lane, q, s[n]);
    if constexpr (!S::shared) {
      wait_for_reads();
      meet();
      source.copy_values(odd, buffer);
    }
    u32x4 p[tiles][row_blocks];
#pragma unroll
    for (int n = 0; n < tiles; ++n) {
      if (n > 0 && tile + n >= end) break;
#pragma unroll
      for (int block = 0; block < row_blocks; ++block)
        p[n][block] = weights(tile + n, block, s[n][block]);
    }
    if constexpr (!S::shared) {
      wait_for_writes();
      meet();
    }
#pragma unroll
    for (int n = 0; n < tiles; ++n) {
      if (n > 0 && tile + n >= end) break;
      multiply_values(buffer + n * S::Values::bytes, p[n]);
    }
    wait_for_reads();
    meet();
    tile += tiles;
  }

  FLYDSL_DEVICE void run_in_turns(lds_ptr<char> buffer) {
    wait_for_reads();
    meet();  // the segment before may still be read
#pragma unroll
    for (int block = 0; block < row_blocks; ++block) pad_query<S>(lane, q[block]);
    for (;;) {
      source.copy_keys(0, buffer);
      step_in_turns(0, buffer);
      if (tile >= end) break;
      source.copy_keys(1, buffer);
      step_in_turns(1, buffer);
      if (FLYDSL_UNLIKELY(tile >= end)) break;
      source.advance(tile, fresh_arguments());
    }
  }

  FLYDSL_DEVICE void store(u32 slot) const {
#pragma unroll
    for (int block = 0; block < row_blocks; ++block) {
      const float sum = sum_of_row(state[block].sum, lane);
      const float highest = max_of_row(state[block].highest, lane);
      const u32 row = first_row + 16 * block + lane % 16;
      if (row >= rows) continue;
      const u64 partial = partial_row(slot, row);
      if (lane < 16) *partial_head(partial) = f32x4{state[block].reference, sum, highest, 0.0f};
      const auto to = partial_out(partial);
      const u32 head_dim = fresh_arguments()->head_dim_v;
#pragma unroll
      for (int n = 0; n < S::value_blocks; ++n) {
        const u32 element = 16 * n + lane / 16 * 4;
        if (element < head_dim) *(global_ptr<f32x4>)(to + element) = o[block][n];
      }
    }
  }
};

template <class S, class Run>
FLYDSL_DEVICE void each_segment(const Run &run) {
  fetch_arguments();
  const u32 item = __builtin_amdgcn_workitem_id_x(), worker = __builtin_amdgcn_workgroup_id_x();
  const u32 lane = item % kWaveLanes, wave = S::waves == 1 ? 0 : uniform(item / kWaveLanes);
  Work work(worker, lane);
  const u32 end = work.end, pairs = pairs_of_sequence();
#pragma unroll 1
  while (!work.empty()) {
    const Sequence sequence = sequence_of(work.batch);
    const u32 tiles = uniform(sequence.tiles());
    while (!work.empty() && work.pair < pairs && tiles != 0) {
      const u32 left = end - work.unit;
      const u32 tile_end = left < tiles - work.tile ? work.tile + left : tiles;
      Segment<S> segment(work.batch, work.pair, work.tile, tile_end, sequence, lane, wave);
      run(segment);
      segment.store(worker + work.batch * pairs + work.pair);
      work.unit += tile_end - work.tile;
      work.tile = 0;
      ++work.pair;
    }
    work.pair = 0;
    ++work.batch;
  }
}

template <class S>
FLYDSL_DEVICE void attention_decode(const flydsl_aot_attention_decode_kernarg &) {
#if FLYDSL_GFX950
  constexpr u32 kKeyBytes = S::tiles * S::Keys::bytes;
  constexpr u32 kValueBytes = S::shared ? 1024 : S::tiles * S::Values::bytes;
  // One array per buffer, each named by its own code (the loop is unrolled by two): only then does
  // clang 22 see which copies an LDS read has to wait for.
  FLYDSL_SHARED static char k_even[kKeyBytes] __attribute__((aligned(1024)));
  FLYDSL_SHARED static char v_even[kValueBytes] __attribute__((aligned(1024)));
  FLYDSL_SHARED static char k_odd[kKeyBytes] __attribute__((aligned(1024)));
  FLYDSL_SHARED static char v_odd[kValueBytes] __attribute__((aligned(1024)));
  // (Not initialised with them: without optimisation that would be a constant in memory, which cannot be linked.)
  Buffers even, odd;
  even.keys = (lds_ptr<char>)k_even;
  even.values = (lds_ptr<char>)(S::shared ? k_even : v_even);
  odd.keys = (lds_ptr<char>)k_odd;
  odd.values = (lds_ptr<char>)(S::shared ? k_odd : v_odd);
  each_segment<S>([&](Segment<S> &segment) FLYDSL_INLINED { segment.run(even, odd); });
#else
  constexpr u32 kBytes = S::Keys::bytes > S::Values::bytes ? S::Keys::bytes : S::Values::bytes;
  static_assert(S::tiles * kBytes <= kLdsBytes, "a work-group's LDS");
  FLYDSL_SHARED static char bytes[S::tiles * kBytes] __attribute__((aligned(16)));
  const auto buffer = (lds_ptr<char>)bytes;
  each_segment<S>([&](Segment<S> &segment) FLYDSL_INLINED { segment.run_in_turns(buffer); });
#endif
}

}  // namespace flydsl::kernels
