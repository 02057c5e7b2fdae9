// What one work-group of a general instance computes: 128 query rows of one head of one sequence.
#pragma once

#include "attention_forward/general/arguments.hip.h"
#include "attention_forward/problem.hip.h"
#include "common/float8.hip.h"

namespace flydsl::kernels {

FLYDSL_DEVICE i64 clamped(i64 value, i64 low, i64 high) {
  return value < low ? low : value > high ? high : value;
}

// Where a key is: entry `block` of the axis that k_stride_b walks, row `row` of it.
struct KeyPlace {
  i64 block, row;
};

// Of an element of q, or of k and v.
FLYDSL_DEVICE i64 bytes_of(u32 format) {
  return static_cast<Format>(format) == Format::wide ? 2 : 1;
}

struct GeneralWork {
  u32 batch, head, kv_head;
  i32 first_q, first_k;  // of this sequence in a packed tensor, else 0
  i32 seq_q, seq_k;      // of this sequence
  // Query i sees the keys from i + low to i + high that exist; both in [-seq_q, seq_k].
  i32 low, high;
  i32 diagonal;  // query i sits at key i + diagonal
  i32 first_row;
  i32 column;  // of v and out, the first that is computed

  // Rows past the end are never stored; clamped, the sums stay below 2^31.
  FLYDSL_DEVICE i32 real_row(i32 row) const { return smaller(row, seq_q - 1); }
  FLYDSL_DEVICE i32 real_key(i32 key) const { return smaller(key, seq_k - 1); }
  FLYDSL_DEVICE i32 first_key(i32 row) const {
    const i32 key = real_row(row) + low;
    return key < 0 ? 0 : key;
  }
  FLYDSL_DEVICE i32 last_key(i32 row) const { return smaller(real_row(row) + high, seq_k - 1); }

  FLYDSL_DEVICE KeyPlace place_of(i32 key) const {
    const Arguments a = fresh_arguments();
    if (!a->block_table) return {batch, static_cast<i64>(first_k) + key};
    const auto table = (global_ptr<const i32>)a->block_table + batch * a->block_table_stride_b;
    const i32 block = table[key >> a->block_shift];
    return {clamped(block, 0, a->last_block), key & ((i32{1} << a->block_shift) - 1)};
  }
  // Rows of this head.
  FLYDSL_DEVICE global_ptr<const char> q_row(i32 row) const {
    const Arguments a = fresh_arguments();
    return (global_ptr<const char>)a->q +
           bytes_of(a->q_format) * (batch * a->q_stride_b + head * a->q_stride_h +
                                    (static_cast<i64>(first_q) + row) * a->q_stride_s);
  }
  FLYDSL_DEVICE global_ptr<const char> k_row(KeyPlace place) const {
    const Arguments a = fresh_arguments();
    return (global_ptr<const char>)a->k +
           bytes_of(a->kv_format) *
               (place.block * a->k_stride_b + kv_head * a->k_stride_h + place.row * a->k_stride_s);
  }
  FLYDSL_DEVICE global_ptr<const char> v_row(KeyPlace place) const {
    const Arguments a = fresh_arguments();
    return (global_ptr<const char>)a->v +
           bytes_of(a->kv_format) * (place.block * a->v_stride_b + kv_head * a->v_stride_h +
                                     place.row * a->v_stride_s + column);
  }
  FLYDSL_DEVICE global_ptr<char> out_row(i32 row) const {
    const Arguments a = fresh_arguments();
    return (global_ptr<char>)a->out +
           2 * (batch * a->out_stride_b + head * a->out_stride_h +
                (static_cast<i64>(first_q) + row) * a->out_stride_s + column);
  }
  FLYDSL_DEVICE void store_lse(i32 row, float value) const {
    const Arguments a = fresh_arguments();
    if (!a->lse || column != 0) return;
    ((global_ptr<float>)a->lse)[batch * a->lse_stride_b + head * a->lse_stride_h +
                                (static_cast<i64>(first_q) + row) * a->lse_stride_s] = value;
  }
};

// The rows of sequence `batch`. Numbers that do not fit the tensor are clamped: whatever they are, no
// memory outside it is touched.
struct Span {
  i32 begin, length;
};
FLYDSL_DEVICE Span span_of(u32 batch, const i32 *starts, const i32 *used, i32 longest, i32 total) {
  const auto number = [](const i32 *from, u32 index) {
    return static_cast<i32>(uniform(static_cast<u32>(((global_ptr<const i32>)from)[index])));
  };
  Span span = {0, longest};
  if (starts) {
    span.begin = static_cast<i32>(clamped(number(starts, batch), 0, total));
    const i64 end = clamped(number(starts, batch + 1), span.begin, total);
    span.length = smaller(static_cast<i32>(end - span.begin), longest);
  }
  if (used) span.length = static_cast<i32>(clamped(number(used, batch), 0, span.length));
  return span;
}

// False when there is nothing to do for the work-group's number.
FLYDSL_DEVICE bool find_general_work(GeneralWork &work) {
  const Arguments args = fresh_arguments();
  const WorkNumber number = work_number(args->grid_x, args->heads_q, args->batches);
  if (number.row_tile >= args->row_tiles) return false;
  work.batch = number.batch;
  work.head = number.head;
  work.kv_head = number.head / static_cast<u32>(args->heads_per_kv);
  const Span q =
      span_of(work.batch, args->cu_seqlens_q, args->seqused_q, args->seq_q, args->total_q);
  const Span k =
      span_of(work.batch, args->cu_seqlens_k, args->seqused_k, args->seq_k, args->total_k);
  work.first_q = q.begin;
  work.first_k = k.begin;
  work.seq_q = q.length;
  work.seq_k = k.length;
  // Longest first where a right bound makes lengths differ (problem.hip.h); any order is right.
  work.first_row = static_cast<i32>(args->row_tiles - 1 - number.row_tile) * kRowsOfWorkGroup;
  if (work.first_row >= work.seq_q) return false;

  work.diagonal = args->bottom_right ? work.seq_k - work.seq_q : 0;
  const i64 seq_q = work.seq_q, seq_k = work.seq_k, diagonal = work.diagonal;
  work.low = args->window_left < 0
                 ? -work.seq_q
                 : static_cast<i32>(clamped(diagonal - args->window_left, -seq_q, seq_k));
  work.high = args->window_right < 0
                  ? work.seq_k
                  : static_cast<i32>(clamped(diagonal + args->window_right, -seq_q, seq_k));
  return true;
}

}  // namespace flydsl::kernels
