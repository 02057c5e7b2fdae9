// attention_forward of e4m3 queries, keys and values for short rows and windows: as attention_forward.hip.h, which explains the
// step, with the products of attention_forward_float8.hip.h. A work-group of 4 waves computes 128 query rows.
#pragma once

#include "attention_forward/exact.hip.h"
#include "attention_forward/finish_row.hip.h"
#include "attention_forward/float8/exact_row.hip.h"
#include "attention_forward/float8/products.hip.h"
#include "attention_forward/float8/tiles.hip.h"
#include "attention_forward/float8/work.hip.h"
#include "attention_forward/scores.hip.h"
#include "attention_forward/softmax.hip.h"
#include "common/lds.hip.h"
#include "common/mfma.hip.h"

namespace flydsl::kernels::float8 {

template <class Element, int head_dim, Mask mask>
struct DirectWave {
  using Keys = KeyTile<head_dim>;
  using Values = ValueTile<head_dim>;
  struct Buffers {
    lds_ptr<char> k, v;
  };
  static constexpr int steps = head_dim / 64, blocks = head_dim / 32;
  static constexpr int k_lines = Rows<Keys>::lines_of_wave, v_lines = Rows<Values>::lines_of_wave;

  // Where registers are left, the first values are on their way while the weights are computed.
  static constexpr bool kReadAhead = head_dim == 64;
  const Work<mask> &work;
  Rows<Keys> k_rows;
  Rows<Values> v_rows;
  u32 lane, first_k_line, v_place;  // of the wave in a tile of K; of the lane in one of V, in bytes
  i32 first_row, row;               // of the wave, of this lane
  bool negate;
  float c, out_factor;  // weights are 2^(score c - reference), values are multiplied by out_factor
  i32 tiles;            // of the work-group
  i32 lane_first_key, lane_last_key;  // visible, counted from the lane's first key
  i32 first_row_first_key, last_row_first_key, first_row_last_key, last_row_last_key;
  u32x8 q[steps];
  u32x2 held[v_lines];  // of the tile of V that goes to LDS next
  RowState state;
  f32x16 o[blocks] = {};

  FLYDSL_DEVICE DirectWave(const Work<mask> &work, u32 wave, u32 lane)
      : work(work),
        k_rows(work.k_row(0), fresh_arguments()->k_stride_s, wave, lane),
        v_rows(work.v_row(0), fresh_arguments()->v_stride_s, wave, lane),
        lane(lane),
        first_k_line(wave * k_lines),
        v_place(wave * v_lines * Values::v_pitch + 16 * lane) {
    first_row = work.first_row + static_cast<i32>(wave) * kRowsOfWave;
    row = first_row + static_cast<i32>(lane % 32);
    const Scale scale(work);
    negate = scale.negative;
    c = scale.magnitude;
    out_factor = value_descale(work);
    const i32 lane_begin = static_cast<i32>(lane / 32 * 4), last_row = first_row + kRowsOfWave - 1;
    lane_first_key = work.first_key(row) - lane_begin;
    lane_last_key = work.last_key(row) - lane_begin;
    first_row_first_key = work.first_key(first_row);
    last_row_first_key = work.first_key(last_row);
    first_row_last_key = work.last_key(first_row);
    last_row_last_key = work.last_key(last_row);
  }

  FLYDSL_DEVICE void load_queries() {
    const auto from = work.q_row(work.real_row(row)) + 16 * (lane / 32);
    const u32 sign = negate ? 0x80808080u : 0u;
#pragma unroll
    for (int step = 0; step < steps; ++step)
      q[step] =
          joined(load_16_bytes(from + 64 * step), load_16_bytes(from + 64 * step + 32)) ^ sign;
  }

  // Starts fetching a tile: K to LDS, V to registers.
  FLYDSL_DEVICE void begin(i32 tile, Buffers to) {
    const auto fetch = [&](auto complete) {
      constexpr bool all = decltype(complete)::value;
#pragma unroll
      for (int line = 0; line < k_lines; ++line)
        copy_b128(to.k + (first_k_line + line) * Keys::pitch,
                  k_rows.template address<all>(tile, line, work.seq_k));
#pragma unroll
      for (int line = 0; line < v_lines; ++line)
        held[line] = load_8_bytes(v_rows.template address<all>(tile, line, work.seq_k));
    };
    if (FLYDSL_LIKELY((tile + 1) * kKeysOfTile <= work.seq_k))
      fetch(Truth<true>{});
    else
      fetch(Truth<false>{});
    k_rows.advance(true);
    v_rows.advance(true);
  }
  FLYDSL_DEVICE void finish(Buffers to) {
#pragma unroll
    for (int line = 0; line < v_lines; ++line) {
      const u32x2 bytes = held[line];
      write_b128(
          to.v + line * Values::v_pitch + v_place,
          u32x4{widened_pair<Element>(bytes[0], false), widened_pair<Element>(bytes[0], true),
                widened_pair<Element>(bytes[1], false), widened_pair<Element>(bytes[1], true)});
    }
  }

  FLYDSL_DEVICE void score_tile(lds_ptr<const char> k_lane, f32x16 (&s)[2]) const {
#pragma unroll
    for (int step = 0; step < steps; ++step) {
#pragma unroll
      for (int block = 0; block < 2; ++block) {
        const u32x8 k = joined(read_b128(k_lane + Keys::immediate(block, step, 0)),
                               read_b128(k_lane + Keys::immediate(block, step, 1)));
        s[block] = mfma_32x32x64(k, q[step], step == 0 ? f32x16{} : s[block]);
      }
    }
    // clang 22.1 lets a result be read after 19 wait states, where 16 passes need 20 (found by the emulator's hazard check); it
    // does not count those in assembly.
    asm volatile("s_nop 0" : "+v"(s[0]), "+v"(s[1]));
  }

  // The A operands of O^T = V^T P^T for 16 keys.
  FLYDSL_DEVICE void read_values(lds_ptr<const char> v_lane, int step, u32x4 (&v)[blocks]) const {
#pragma unroll
    for (int block = 0; block < blocks; ++block) {
      const u32x2 low = read_transposed_b64(v_lane + Values::v_immediate(step, 0, block));
      const u32x2 high = read_transposed_b64(v_lane + Values::v_immediate(step, 1, block));
      v[block] = u32x4{low[0], low[1], high[0], high[1]};
    }
  }
  // `v` holds those of the first 16 keys.
  FLYDSL_DEVICE void accumulate(lds_ptr<const char> v_lane, u32x4 (&v)[blocks],
                                const u32x4 (&p)[4]) {
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      if (step != 0) read_values(v_lane, step, v);
#pragma unroll
      for (int block = 0; block < blocks; ++block)
        o[block] = mfma_32x32x16<Element>(v[block], p[step], o[block]);
    }
  }

  // One tile, which is in `now`; the next one goes to `then`. A tile that some row does not see completely needs tail = true.
  template <bool tail>
  FLYDSL_DEVICE void step(i32 tile, Buffers now, Buffers then) {
    wait_for_copies();
    barrier();
    const bool more = tile + 1 < tiles;
    if (FLYDSL_LIKELY(more)) begin(tile + 1, then);
    const i32 first_key = tile * kKeysOfTile, last_key = first_key + kKeysOfTile - 1;
    constexpr bool window = mask == Mask::window;
    // Other waves of the work-group may see a tile of which this one sees nothing.
    if (!tail || (first_key <= last_row_last_key && (!window || last_key >= first_row_first_key))) {
      f32x16 s[2];
      score_tile(now.k + Keys::lane_part(lane), s);
      if (window && (first_key < last_row_first_key || last_key > first_row_last_key))
        mask_tile(lane_first_key - first_key, lane_last_key - first_key, s);
      else if (!window && tail && last_key > first_row_last_key)
        mask_tile(lane_last_key - first_key, s);
      const lds_ptr<const char> v_lane = now.v + Values::v_lane(lane);
      u32x4 v[blocks], p[4];
      // (Not before the scores: their registers would be live together with those of K.)
      __builtin_amdgcn_sched_barrier(0);
      if (kReadAhead) read_values(v_lane, 0, v);
      weigh_tile<Element>(s, c, state, o, p);
      if (!kReadAhead) read_values(v_lane, 0, v);
      accumulate(v_lane, v, p);
    }
    if (more) finish(then);
  }

  FLYDSL_DEVICE void store() {
    const bool empty = work.last_key(row) < work.first_key(row);
    u32 exact_rows = finish_row(work, row, lane, empty, state.reference, state.sum, out_factor, o,
                                [&](bool write, float factor) FLYDSL_INLINED {
                                  store_row<Element>(work.out_row(row), lane, write, factor, o);
                                });

#pragma unroll 1
    for (; FLYDSL_UNLIKELY(exact_rows != 0); exact_rows &= exact_rows - 1)
      exact_row(ExactRow<Element, head_dim, mask>(work, first_row + __builtin_ctz(exact_rows)),
                lane);
  }
};

template <class Element, int head_dim, Mask mask>
FLYDSL_DEVICE void attention_forward_direct(const flydsl_aot_attention_forward_kernarg &) {
  using W = DirectWave<Element, head_dim, mask>;
  // One array per buffer: only then does clang 22 see which copies an LDS read has to wait for.
  FLYDSL_SHARED static char k_even[W::Keys::bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char v_even[W::Values::v_bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char k_odd[W::Keys::bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char v_odd[W::Values::v_bytes] __attribute__((aligned(16)));
  // (Not initialised with them: without optimisation that would be a constant in memory, which cannot be linked.)
  typename W::Buffers even, odd;
  even.k = (lds_ptr<char>)k_even, even.v = (lds_ptr<char>)v_even;
  odd.k = (lds_ptr<char>)k_odd, odd.v = (lds_ptr<char>)v_odd;

  Work<mask> work;
  if (!find_work(work)) return;
  const u32 item = __builtin_amdgcn_workitem_id_x();
  W wave(work, uniform(item / kWaveLanes), item % kWaveLanes);

  // Tiles with a key that any row of the work-group sees, and tiles that all rows see completely.
  wave.tiles = (work.last_key(work.first_row + kRowsOfWorkGroup - 1) + kKeysOfTile) / kKeysOfTile;
  if (wave.tiles < 0) wave.tiles = 0;

  i32 tile = work.first_tile();
  if (tile < wave.tiles) {
    wave.k_rows.start_at(tile);
    wave.v_rows.start_at(tile);
    wave.begin(tile, even);
    wave.load_queries();
    wave.finish(even);
  }
  if constexpr (mask != Mask::window) {
    // (Few tiles of a window are full, so all pass the loop that masks.)
    const i32 full_tiles = (work.last_key(work.first_row) + 1) / kKeysOfTile;
    for (; tile + 2 <= full_tiles; tile += 2) {
      wave.template step<false>(tile, even, odd);
      wave.template step<false>(tile + 1, odd, even);
    }
  }
  for (; tile < wave.tiles; tile += 2) {
    wave.template step<true>(tile, even, odd);
    if (tile + 1 < wave.tiles) wave.template step<true>(tile + 1, odd, even);
  }
  wave.store();
}

}  // namespace flydsl::kernels::float8
