// attention_backward's passes over keys (dk and dv) and over queries (dq): a work-group owns 32 rows a wave of one of them
// and meets the others in tiles of 64, whose scores it computes again (Dao et al. 2022, FlashAttention, appendix B).
// Rules of the result: include/flydsl_aot/attention_backward.h.
//
// A lane owns one row, a column of the score products S and dP; its gradients are a column of the transposed gradients:
//
//   pass keys     S = Q K^T    dP = dO V^T     dV^T += dO^T P     dK^T += Q^T dS
//   pass queries  S^T = K Q^T  dP^T = V dO^T                      dQ^T += K^T dS^T
//
// The accumulators of the score products hold the others in the order in which the transposed reads of a tile bring them,
// so that weights and derivatives feed the second products from registers. Own operands stay in registers; a tile is
// read from LDS along its rows for the score products and along its columns for the gradients.
#pragma once

#include "attention_backward/exact.hip.h"
#include "attention_backward/score_wave.hip.h"
#include "attention_forward/outputs.hip.h"

namespace flydsl::kernels {

template <class Element, int head_dim_qk, int head_dim_v, Pass pass, bool general>
struct GradientWave : ScoreWave<Element, head_dim_qk, head_dim_v, pass, general> {
  using Scores = ScoreWave<Element, head_dim_qk, head_dim_v, pass, general>;
  using Scores::first_own, Scores::lane, Scores::own, Scores::work;
  f32x16 sum_1[head_dim_qk / 32] = {}, sum_2[head_dim_v / 32] = {};

  using Scores::Scores;

  // The others of a half tile, from `first_other` on.
  FLYDSL_DEVICE void compute(i32 half, i32 first_other, TilePlaces tile) {
    if (!this->meets(first_other)) return;
    u32x4 p[2], rounded[2];
    f32x16 ds, slopes;
    // What is hidden, or has lost its weight, stays 0 whatever its slope is.
    if (this->derive(half, first_other, tile, p, ds, slopes)) ds *= slopes;
    round_all<Element>(ds, rounded);
    if constexpr (pass == Pass::keys)
      accumulate(typename Scores::Tile2::Columns(tile.tile_2, lane()), half, p, sum_2);
    accumulate(typename Scores::Tile1::Columns(tile.tile_1, lane()), half, rounded, sum_1);
  }

  FLYDSL_DEVICE void store() {
    u32 exact_rows = untrusted_rows();
    const bool write = own() < work.own_count() && !(exact_rows >> lane() % 32 & 1);
    const float scale = fresh_arguments()->scale;
    if constexpr (pass == Pass::keys) {
      store_gradient(fresh_arguments()->dk, write, work.dk_row(own()),
                     fresh_arguments()->head_dim_qk, scale, sum_1);
      store_gradient(fresh_arguments()->dv, write, work.dv_row(own()),
                     fresh_arguments()->head_dim_v,
                     general ? fresh_arguments()->dropout_scale : 1.0f, sum_2);
    } else {
      store_gradient(fresh_arguments()->dq, write, work.dq_row(own()),
                     fresh_arguments()->head_dim_qk, scale, sum_1);
    }
#pragma unroll 1
    for (; FLYDSL_UNLIKELY(exact_rows != 0); exact_rows &= exact_rows - 1)
      exact_gradients<Element, head_dim_qk, head_dim_v, general>(
          work, first_own + __builtin_ctz(exact_rows), lane());
  }

 private:
  template <class Columns, int blocks>
  FLYDSL_DEVICE void accumulate(const Columns &columns, i32 half, const u32x4 (&weights)[2],
                                f32x16 (&sum)[blocks]) const {
    each_fragment<2 * blocks, Scores::kAhead>(
        [&](int n) { return columns(2 * half + n / blocks, n % blocks); },
        [&](int n, u32x4 fragment) {
          sum[n % blocks] = mfma_32x32x16<Element>(fragment, weights[n / blocks], sum[n % blocks]);
        });
  }
  // The slow path has to compute rows with a gradient that is not finite again, a bit each.
  FLYDSL_DEVICE u32 untrusted_rows() const {
    // Not finite anywhere <=> this is NaN: 0 * x is 0 for finite x only.
    float probe = 0.0f;
    probe_all(sum_1, probe);
    if constexpr (pass == Pass::keys) probe_all(sum_2, probe);
    const u64 distrust = ballot(own() < work.own_count() && !(probe == 0.0f));
    return static_cast<u32>(distrust) | static_cast<u32>(distrust >> 32);
  }
  template <int blocks>
  static FLYDSL_DEVICE void probe_all(const f32x16 (&sum)[blocks], float &probe) {
#pragma unroll
    for (const f32x16 &block : sum) {
#pragma unroll
      for (int i = 0; i < 16; ++i) probe = fma(block[i], 0.0f, probe);
    }
  }
  template <int blocks>
  FLYDSL_DEVICE void store_gradient(const void *tensor, bool write, global_ptr<char> row,
                                    i32 head_dim, float factor, const f32x16 (&sum)[blocks]) const {
    u32x4 pieces[2 * blocks];
    pieces_of_row<Element>(factor, sum, pieces);
    if (!tensor || !write) return;
    const i32 first = static_cast<i32>(computed_here(lane() / 32 * 8));
#pragma unroll
    for (int piece = 0; piece < 2 * blocks; ++piece) {
      if constexpr (general) {
        store_elements(row, 16 * piece + first, head_dim, pieces[piece]);
      } else {
        if (piece < 2 * blocks - 2 || 16 * piece + first < head_dim)
          store_16_bytes(row + 2 * (16 * piece + first), pieces[piece]);
      }
    }
  }
};

// The tiles of the others that a work-group meets: those of the first head, then those of the next.
template <Pass pass>
struct Steps {
  Work<pass> &work;
  i32 tile;
  u32 head = 0;

  FLYDSL_DEVICE explicit Steps(Work<pass> &work) : work(work) {
    tile = others().first / kRowsOfTile;
    work.take_head(0);
  }
  FLYDSL_DEVICE bool empty() const { return others().last < others().first; }
  // To the next one; false if there is none.
  FLYDSL_DEVICE bool advance() {
    const Range range = others();
    if (++tile * kRowsOfTile <= range.last) return true;
    if (pass == Pass::queries || head + 1 == work.heads()) return false;
    tile = range.first / kRowsOfTile;
    work.take_head(++head);
    return true;
  }

 private:
  FLYDSL_DEVICE Range others() const {
    return work.others_of(work.first_own, work.first_own + kOwnOfWorkGroup - 1);
  }
};

// One LDS buffer, two barriers a step; any alignment, any feature.
template <class Element, int head_dim_qk, int head_dim_v, Pass pass>
FLYDSL_DEVICE void attention_backward_general(const flydsl_aot_attention_backward_kernarg &) {
  FLYDSL_SHARED static char tile_1[TwoWayTile<head_dim_qk>::bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char tile_2[TwoWayTile<head_dim_v>::bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char lse[4 * kRowsOfTile] __attribute__((aligned(16)));
  FLYDSL_SHARED static char delta[4 * kRowsOfTile] __attribute__((aligned(16)));
  using Wave = GradientWave<Element, head_dim_qk, head_dim_v, pass, true>;
  FLYDSL_SHARED static char own[larger(1, 4 * Wave::Scores::Own2::lds_bytes)]
      __attribute__((aligned(16)));
  const TilePlaces places = {(lds_ptr<char>)tile_1, (lds_ptr<char>)tile_2, (lds_ptr<char>)lse,
                             (lds_ptr<char>)delta};

  Work<pass> work;
  if (!find_work(work, kOwnOfWorkGroup)) return;
  const u32 item = __builtin_amdgcn_workitem_id_x();
  Steps<pass> steps(work);
  Wave wave(work, uniform(item / kWaveLanes), item % kWaveLanes, (lds_ptr<char>)own);
  if (!steps.empty()) {
    wave.load_own();
    Stager<pass, head_dim_qk, head_dim_v, Staging::staged> stager(work, item);
#pragma unroll 1
    do {
      stager.begin(steps.tile);
      barrier();  // the previous tile has been read
      stager.write(places);
      barrier();
#pragma unroll 1
      for (i32 half = 0; half < 2; ++half)
        wave.compute(half, steps.tile * kRowsOfTile + 32 * half, places);
    } while (steps.advance());
  }
  wave.store();
}

// Two LDS buffers, copies one tile ahead, a barrier a step. Rows 16-byte aligned, no feature but bounds and lengths.
template <class Element, int head_dim_qk, int head_dim_v, Pass pass>
FLYDSL_DEVICE void attention_backward_plain(const flydsl_aot_attention_backward_kernarg &) {
  // One array per buffer, each named by its own code (the loop is unrolled by two): only then does clang 22 see which copies
  // an LDS read has to wait for.
  FLYDSL_SHARED static char even_1[TwoWayTile<head_dim_qk>::bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char even_2[TwoWayTile<head_dim_v>::bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char odd_1[TwoWayTile<head_dim_qk>::bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char odd_2[TwoWayTile<head_dim_v>::bytes] __attribute__((aligned(16)));
  FLYDSL_SHARED static char even_lse[4 * kRowsOfTile] __attribute__((aligned(16)));
  FLYDSL_SHARED static char even_delta[4 * kRowsOfTile] __attribute__((aligned(16)));
  FLYDSL_SHARED static char odd_lse[4 * kRowsOfTile] __attribute__((aligned(16)));
  FLYDSL_SHARED static char odd_delta[4 * kRowsOfTile] __attribute__((aligned(16)));
  using Wave = GradientWave<Element, head_dim_qk, head_dim_v, pass, false>;

  Work<pass> work;
  if (!find_work(work, kOwnOfWorkGroup)) return;
  const u32 item = __builtin_amdgcn_workitem_id_x();
  Steps<pass> steps(work);
  Wave wave(work, uniform(item / kWaveLanes), item % kWaveLanes, nullptr);
  if (!steps.empty()) {
    const Stager<pass, head_dim_qk, head_dim_v, Staging::direct> stager(work, item);
    const TilePlaces even = {(lds_ptr<char>)even_1, (lds_ptr<char>)even_2, (lds_ptr<char>)even_lse,
                             (lds_ptr<char>)even_delta};
    const TilePlaces odd = {(lds_ptr<char>)odd_1, (lds_ptr<char>)odd_2, (lds_ptr<char>)odd_lse,
                            (lds_ptr<char>)odd_delta};
    // Computes on the tile in `now`, while the next one comes to `next`; false: there is none.
    const auto step = [&](const TilePlaces &now, const TilePlaces &next) FLYDSL_INLINED {
      stager.landed();
      barrier();
      const i32 first_other = steps.tile * kRowsOfTile;
      const bool more = steps.advance();
      if (FLYDSL_LIKELY(more)) stager.begin(steps.tile, next);
      wave.compute(0, first_other, now);
      wave.compute(1, first_other + 32, now);
      return more;
    };
    stager.begin(steps.tile, even);
    wave.load_own();
    while (step(even, odd) && step(odd, even)) {
    }
  }
  wave.store();
}

}  // namespace flydsl::kernels
