// What one work-group of a general instance computes: 128 query rows of one head of one sequence.
#pragma once

#include "attention_forward/general/arguments.hip.h"
#include "attention_forward/problem.hip.h"

namespace flydsl::kernels {

FLYDSL_DEVICE i64 clamped(i64 value, i64 low, i64 high) {
  return value < low ? low : value > high ? high : value;
}

struct GeneralWork {
  u32 batch, head, kv_head;
  i32 seq_q, seq_k;  // of this sequence
  // Query i sees the keys from i + low to i + high that exist; both in [-seq_q, seq_k].
  i32 low, high;
  i32 first_row;

  // Rows past the end are never stored; clamped, the sums stay below 2^31.
  FLYDSL_DEVICE i32 real_row(i32 row) const { return smaller(row, seq_q - 1); }
  FLYDSL_DEVICE i32 first_key(i32 row) const {
    const i32 key = real_row(row) + low;
    return key < 0 ? 0 : key;
  }
  FLYDSL_DEVICE i32 last_key(i32 row) const { return smaller(real_row(row) + high, seq_k - 1); }
  // Where tensors of this head start.
  FLYDSL_DEVICE global_ptr<const char> q() const {
    const Arguments a = fresh_arguments();
    return (global_ptr<const char>)a->q + 2 * (batch * a->q_stride_b + head * a->q_stride_h);
  }
  FLYDSL_DEVICE global_ptr<const char> k() const {
    const Arguments a = fresh_arguments();
    return (global_ptr<const char>)a->k + 2 * (batch * a->k_stride_b + kv_head * a->k_stride_h);
  }
  FLYDSL_DEVICE global_ptr<const char> v() const {
    const Arguments a = fresh_arguments();
    return (global_ptr<const char>)a->v + 2 * (batch * a->v_stride_b + kv_head * a->v_stride_h);
  }
  FLYDSL_DEVICE global_ptr<char> out() const {
    const Arguments a = fresh_arguments();
    return (global_ptr<char>)a->out + 2 * (batch * a->out_stride_b + head * a->out_stride_h);
  }
  FLYDSL_DEVICE void store_lse(i32 row, float value) const {
    const Arguments a = fresh_arguments();
    if (!a->lse) return;
    ((global_ptr<float>)
         a->lse)[batch * a->lse_stride_b + head * a->lse_stride_h + row * a->lse_stride_s] = value;
  }
};

// False when there is nothing to do for the work-group's number.
FLYDSL_DEVICE bool find_general_work(GeneralWork &work) {
  const Arguments args = fresh_arguments();
  const WorkNumber number = work_number(args->grid_x, args->heads_q, args->batches);
  if (number.row_tile >= args->row_tiles) return false;
  work.batch = number.batch;
  work.head = number.head;
  work.kv_head = number.head / static_cast<u32>(args->heads_per_kv);
  work.seq_q = args->seq_q;
  work.seq_k = args->seq_k;
  // Longest first where a right bound makes lengths differ (problem.hip.h); any order is right.
  work.first_row = static_cast<i32>(args->row_tiles - 1 - number.row_tile) * kRowsOfWorkGroup;
  if (work.first_row >= work.seq_q) return false;

  const i64 seq_q = work.seq_q, seq_k = work.seq_k;
  const i64 diagonal = args->bottom_right ? seq_k - seq_q : 0;
  work.low = args->window_left < 0
                 ? -work.seq_q
                 : static_cast<i32>(clamped(diagonal - args->window_left, -seq_q, seq_k));
  work.high = args->window_right < 0
                  ? work.seq_k
                  : static_cast<i32>(clamped(diagonal + args->window_right, -seq_q, seq_k));
  return true;
}

}  // namespace flydsl::kernels
