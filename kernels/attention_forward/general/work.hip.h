// What one work-group of a general instance computes: query rows, 128 unless said otherwise, of one head of one sequence.
#pragma once

#include "attention_forward/problem.hip.h"
#include "common/float8.hip.h"

namespace flydsl::kernels {

// Where a key is: entry `block` of the axis that k_stride_b walks, row `row` of it.
struct KeyPlace {
  i64 block, row;
};

// Of an element of q, or of k and v.
FLYDSL_DEVICE i64 bytes_of(u32 format) {
  return static_cast<Format>(format) == Format::wide ? 2 : 1;
}

struct GeneralWork : Head {
  i32 first_row;
  i32 column;  // of v and out, the first that is computed

  FLYDSL_DEVICE KeyPlace place_of(i32 key) const {
    const Arguments a = fresh_arguments();
    if (!a->block_table) return {batch, static_cast<i64>(first_k) + key};
    const auto table = (global_ptr<const i32>)a->block_table + batch * a->block_table_stride_b;
    const i32 block = table[key >> a->block_shift];
    return {clamped(block, 0, a->last_block), key & ((i32{1} << a->block_shift) - 1)};
  }
  // Rows of this head, of elements of any format.
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
  FLYDSL_DEVICE global_ptr<char> out_row(i32 row) const { return Head::out_row(row) + 2 * column; }
  // With the first columns only.
  FLYDSL_DEVICE void store_lse(i32 row, float value) const {
    if (column == 0) Head::store_lse(row, value);
  }
};

// False when there is nothing to do for the work-group's number.
FLYDSL_DEVICE bool find_general_work(GeneralWork &work, i32 rows = kRowsOfWorkGroup) {
  const Arguments args = fresh_arguments();
  WorkItem item;
  if (unequal_lengths()) {
    const u32 number =
        __builtin_amdgcn_workgroup_id_y() * args->grid_x + __builtin_amdgcn_workgroup_id_x();
    if (!find_unequal_item(number, rows, item, work)) return false;
  } else {
    const WorkNumber number = work_number(args->grid_x, args->heads_q, args->batches);
    if (number.row_tile >= args->row_tiles) return false;
    // Longest first where a right bound makes lengths differ (problem.hip.h); any order is right.
    item = {number.head, number.batch, args->row_tiles - 1 - number.row_tile};
    static_cast<Sequence &>(work) = sequence_of(item.batch);
  }
  work.batch = item.batch;
  work.head = item.head;
  work.kv_head = item.head / static_cast<u32>(args->heads_per_kv);
  work.first_row = static_cast<i32>(item.row_tile) * rows;
  return work.first_row < work.seq_q;
}

}  // namespace flydsl::kernels
