// Where the rows of keys and values are in global memory: dense, or through a block table.
#pragma once

#include "attention_decode/plan.hip.h"

namespace flydsl::kernels {

// The entry of the axis that k_stride_b walks; `batch_entry` without a block table.
FLYDSL_DEVICE i32 block_of(u32 batch, i32 key, i32 batch_entry,
                           Arguments args = fresh_arguments()) {
  if (!args->block_table) return batch_entry;
  const auto table = (global_ptr<const i32>)args->block_table + batch * args->block_table_stride_b;
  return table[key >> args->block_shift];
}

struct RowOffsets {
  i64 k, v;  // bytes from the tensors' starts
};
FLYDSL_DEVICE RowOffsets offsets_of(i32 block, u32 kv_head, i32 key,
                                    Arguments args = fresh_arguments()) {
  i64 entry = block, row = key;
  if (args->block_table) {
    entry = clamped(block, 0, args->last_block);
    row = key & ((i32{1} << args->block_shift) - 1);
  }
  return {entry * args->k_stride_b + kv_head * args->k_stride_h + row * args->k_stride_s,
          entry * args->v_stride_b + kv_head * args->v_stride_h + row * args->v_stride_s};
}

// Row `row` of a pair is query `row % seq_q` of head `row / seq_q` of the key head's group.
struct Row {
  u32 batch, head;
  i32 query;
  FLYDSL_DEVICE Row(u32 batch, u32 kv_head, u32 row, Arguments args = fresh_arguments())
      : batch(batch) {
    const u32 seq_q = static_cast<u32>(args->seq_q);
    head = kv_head * args->heads_per_kv + row / seq_q;
    query = static_cast<i32>(row % seq_q);
  }
  FLYDSL_DEVICE global_ptr<const char> q(Arguments args = fresh_arguments()) const {
    return (global_ptr<const char>)args->q +
           2 * (batch * args->q_stride_b + head * args->q_stride_h + query * args->q_stride_s);
  }
};

}  // namespace flydsl::kernels
