// One head of one sequence: where its rows are. Offsets are 64-bit throughout: a tensor may span more
// than 4 GiB. Addresses are computed where they are needed: kept, they would take more scalar registers
// than there are.
#pragma once

#include "attention_forward/sequences.hip.h"

namespace flydsl::kernels {

struct Head : Sequence {
  u32 batch, head, kv_head;

  // Of 16-bit elements.
  FLYDSL_DEVICE global_ptr<const char> q_row(i32 row) const {
    const Arguments a = fresh_arguments();
    return (global_ptr<const char>)a->q +
           2 * offset(a->q_stride_b, head, a->q_stride_h, first_q, row, a->q_stride_s);
  }
  FLYDSL_DEVICE global_ptr<const char> k_row(i32 key) const {
    const Arguments a = fresh_arguments();
    return (global_ptr<const char>)a->k +
           2 * offset(a->k_stride_b, kv_head, a->k_stride_h, first_k, key, a->k_stride_s);
  }
  FLYDSL_DEVICE global_ptr<const char> v_row(i32 key) const {
    const Arguments a = fresh_arguments();
    return (global_ptr<const char>)a->v +
           2 * offset(a->v_stride_b, kv_head, a->v_stride_h, first_k, key, a->v_stride_s);
  }
  FLYDSL_DEVICE global_ptr<char> out_row(i32 row) const {
    const Arguments a = fresh_arguments();
    return (global_ptr<char>)a->out +
           2 * offset(a->out_stride_b, head, a->out_stride_h, first_q, row, a->out_stride_s);
  }
  FLYDSL_DEVICE void store_lse(i32 row, float value) const {
    const Arguments a = fresh_arguments();
    if (!a->lse) return;
    ((global_ptr<float>)
         a->lse)[offset(a->lse_stride_b, head, a->lse_stride_h, first_q, row, a->lse_stride_s)] =
        value;
  }

 private:
  FLYDSL_DEVICE i64 offset(i64 stride_b, u32 head_of_tensor, i64 stride_h, i32 first, i32 row,
                           i64 stride_s) const {
    return batch * stride_b + head_of_tensor * stride_h +
           (static_cast<i64>(first) + row) * stride_s;
  }
};

}  // namespace flydsl::kernels
