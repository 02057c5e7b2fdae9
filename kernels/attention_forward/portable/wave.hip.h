// What a wave of a portable instance has: 16 query rows, a column of S^T = K Q^T and O^T = V^T P^T each. 2 or 4 lanes share one, and
// hold its keys and head-dim elements as common/matrix_layout.hip.h says.
#pragma once

#include "attention_forward/exact.hip.h"
#include "attention_forward/finish_row.hip.h"
#include "attention_forward/general/exact_row.hip.h"
#include "attention_forward/portable/tiles.hip.h"
#include "attention_forward/softmax.hip.h"

namespace flydsl::kernels::portable {

constexpr int kScoreBlocks = kKeys / 16;

// A tile's scores of the lane, for general/scores.hip.h.
struct EachOfLane {
  MatrixSums (&s)[kScoreBlocks];
  i32 first_key;  // of the tile
  u32 lane;
  template <class Function>
  FLYDSL_DEVICE void operator()(const Function &f) const {
#pragma unroll
    for (u32 block = 0; block < kScoreBlocks; ++block) {
#pragma unroll
      for (u32 i = 0; i < MatrixLayout::sums; ++i)
        s[block][i] = f(s[block][i],
                        first_key + static_cast<i32>(16 * block + MatrixLayout::row_of(lane, i)));
    }
  }
  template <class Function>
  FLYDSL_DEVICE bool by_four(i32, const Function &) const {
    return false;  // which keys are neighbours depends on the instruction
  }
};

template <class Element, class S>
struct Wave {
  static constexpr u32 steps = S::head_dim_qk / kMatrixDepth, out_blocks = S::head_dim_v / 16;
  static constexpr u32 kept_steps = S::keeps_queries ? steps : 1;
  const GeneralWork &work;
  u32 lane;
  i32 first_row, row;  // of the wave, of this lane
  bool has_terms;      // scores are more than q . k
  bool has_dropout;
  float c;  // weights are 2^(score c)
  lds_ptr<const char> q_line;
  MatrixOperand q[kept_steps];
  RowState state;
  MatrixSums o[out_blocks] = {};

  // `queries`: those of the work-group in LDS.
  FLYDSL_DEVICE Wave(const GeneralWork &work, u32 wave, u32 lane, lds_ptr<const char> queries)
      : work(work),
        lane(lane),
        has_terms(fresh_arguments()->score_terms),
        has_dropout(fresh_arguments()->dropout_threshold != 0),
        c(has_terms ? 1.0f : fresh_arguments()->scale_log2) {
    first_row = work.first_row + static_cast<i32>(16 * wave);
    row = first_row + static_cast<i32>(lane % 16);
    q_line = queries + (16 * wave + lane % 16) * S::k_pitch;
    if constexpr (S::keeps_queries) {
#pragma unroll
      for (u32 step = 0; step < steps; ++step) q[step] = operand(q_line, step);
    }
  }

  // Elements kMatrixDepth step .. of a line.
  FLYDSL_DEVICE MatrixOperand operand(lds_ptr<const char> line, u32 step) const {
    return load_operand(lane,
                        [&](u32 k) FLYDSL_INLINED { return line + 2 * (kMatrixDepth * step + k); });
  }

  FLYDSL_DEVICE void compute(i32 tile, lds_ptr<const char> keys, lds_ptr<const char> values) {
    const i32 begin = tile * kKeys, last = begin + kKeys - 1, last_row = first_row + 15;
    // Other waves of the work-group may see a tile of which this one sees nothing.
    if (begin > work.last_key(last_row) || last < work.first_key(first_row)) return;
    MatrixSums s[kScoreBlocks] = {};
#pragma unroll
    for (u32 step = 0; step < steps; ++step) {
      const MatrixOperand of_q = S::keeps_queries ? q[step % kept_steps] : operand(q_line, step);
#pragma unroll
      for (u32 block = 0; block < kScoreBlocks; ++block)
        s[block] = matrix_product<Element>(
            operand(keys + (16 * block + lane % 16) * S::k_pitch, step), of_q, s[block]);
      if constexpr (!S::keeps_queries) schedule_fence();  // or more operands are read than fit
    }
    const EachOfLane each = {s, begin, lane};
    if (has_terms) add_score_terms<Element>(work, row, each);
    hide_masked(work, row, each);
    if (begin < work.first_key(last_row) || last > work.last_key(first_row)) {
      const i32 first_key = work.first_key(row), last_key = work.last_key(row);
      each([&](float score, i32 key)
               FLYDSL_INLINED { return first_key <= key && key <= last_key ? score : -kInfinity; });
    }
    weigh(s);
    if (has_dropout) drop(begin, s);
#pragma unroll
    for (u32 step = 0; step < kKeys / kMatrixDepth; ++step) {
      const MatrixOperand p = operand_of_sums<Element>(lane, s, step * kMatrixBlocks);
#pragma unroll
      for (u32 block = 0; block < out_blocks; ++block) {
        o[block] = matrix_product<Element>(
            operand(values + (16 * block + lane % 16) * S::v_pitch, step), p, o[block]);
        if (!S::keeps_queries && block % 2 != 0) schedule_fence();
      }
    }
  }

  // Scores to weights (softmax.hip.h).
  FLYDSL_DEVICE void weigh(MatrixSums (&s)[kScoreBlocks]) {
    float top = -kInfinity;
    const EachOfLane each = {s, 0, lane};
    each([&](float score, i32) FLYDSL_INLINED {
      top = larger(top, score);
      return score;
    });
    top = max_of_column(top);
    state.highest = larger(state.highest, top);
    const bool exceeds = fma(top, c, -state.reference) > kHeadroom<Element>;
    if (FLYDSL_UNLIKELY(lanes_where(exceeds) != 0)) {
      const float reference = exceeds ? fma(top, c, -kShift<Element>) : state.reference;
      const float factor = exp2(state.reference - reference);
      state.reference = reference;
      state.sum *= factor;
#pragma unroll
      for (MatrixSums &block : o) block *= factor;
    }
    float sum = 0.0f;
    each([&](float score, i32) FLYDSL_INLINED {
      const float weight = exp2(fma(score, c, -state.reference));
      sum += weight;
      return weight;
    });
    state.sum += sum;
  }

  // Clears the weights that are not kept.
  FLYDSL_DEVICE void drop(i32 begin, MatrixSums (&s)[kScoreBlocks]) const {
    const DropoutState dropout = dropout_state();
    constexpr u32 together =
        MatrixLayout::row_of(0, 3) < 4 ? 4 : 2;  // sums of one quadruple of keys
#pragma unroll
    for (u32 block = 0; block < kScoreBlocks; ++block) {
#pragma unroll
      for (u32 first = 0; first < MatrixLayout::sums; first += together) {
        const auto key = [&](u32 i) FLYDSL_INLINED {
          return begin + static_cast<i32>(16 * block + MatrixLayout::row_of(lane, first + i));
        };
        const u32 kept = kept_quadruple(work, dropout, row, key(0));
#pragma unroll
        for (u32 i = 0; i < together; ++i)
          s[block][first + i] = kept >> key(i) % 4 & 1 ? s[block][first + i] : 0.0f;
        schedule_fence();  // one at a time: all would not fit the registers
      }
    }
  }

  // `mine`: of LDS, the wave's own. Rows pass through it, to be stored 16 bytes a lane.
  FLYDSL_DEVICE void store(lds_ptr<char> mine) {
    const bool empty = state.highest == -kInfinity;  // and no NaN, or it is not trusted
    const RowEnd end = add_sink(work, state.reference, sum_of_column(state.sum), o);
    const bool in_range = row < work.seq_q;
    u32 exact_rows = columns_where(in_range && !trusted_row(empty, state.reference, end.sum, o));
    const float scale = fresh_arguments()->dropout_scale * value_descale(work);
    const float factor = empty ? 0.0f : scale * end.out_factor * reciprocal(end.sum);
#pragma unroll
    for (MatrixSums &block : o) block *= factor;
    const auto line = mine + lane % 16 * S::out_pitch;
#pragma unroll
    for (u32 block = 0; block < out_blocks; block += kMatrixBlocks)
      store_operand(lane, operand_of_sums<Element>(lane, o, block),
                    [&](u32 k) FLYDSL_INLINED { return line + 2 * (16 * block + k); });
    if (in_range && !(exact_rows >> lane % 16 & 1) && lane < 16)
      work.store_lse(row, (empty ? end.sink : end.reference + log2(end.sum)) * kLn2);
    wave_barrier();
    for_each_piece<static_cast<int>(kWaveSize), 16, S::head_dim_v / 8>(
        lane, [&](u32 at, i32 first) FLYDSL_INLINED {
          const i32 row_at = first_row + static_cast<i32>(at);
          if (row_at >= work.seq_q || (exact_rows >> at & 1)) return;
          store_elements(work.out_row(row_at), first, fresh_arguments()->head_dim_v - work.column,
                         read_b128(mine + (at * S::out_pitch + 2 * first)));
        });
#pragma unroll 1
    for (; FLYDSL_UNLIKELY(exact_rows != 0); exact_rows &= exact_rows - 1)
      exact_row(GeneralRow<Element, S::head_dim_v>(work, first_row + __builtin_ctz(exact_rows)),
                lane);
  }
};

}  // namespace flydsl::kernels::portable
