// What one work-group computes: 128 query rows of one head, found from its number, and where its
// tensors are. Offsets are 64-bit throughout: a tensor may span more than 4 GiB.
#pragma once

#include "common/lanes.hip.h"
#include "flydsl_aot_generated/attention_forward_kernarg.h"

namespace flydsl::kernels {

enum class Mask { none, causal };

constexpr i32 kRowsOfWave = 32;
constexpr i32 kWaves = 4;
constexpr i32 kRowsOfWorkGroup = kRowsOfWave * kWaves;
constexpr i32 kKeysOfTile = 64;

FLYDSL_DEVICE i32 smaller(i32 a, i32 b) {
  return a < b ? a : b;
}

template <Mask mask>
struct Problem {
  global_ptr<const char> q, k, v;  // of this batch and head
  global_ptr<char> out;
  global_ptr<float> lse;  // null: not wanted
  i64 q_row_bytes, k_row_bytes, v_row_bytes, out_row_bytes, lse_row_elements;
  i32 seq_q, seq_k, mask_shift;
  float scale_log2;
  u32 q_and, q_xor;
  i32 first_row;

  // The last key that `row` may see; negative when it sees none.
  FLYDSL_DEVICE i32 last_key(i32 row) const {
    if constexpr (mask == Mask::none) return seq_k - 1;
    // Rows past the end are never stored; clamped, the sum stays below 2^31.
    return smaller(smaller(row, seq_q - 1) + mask_shift, seq_k - 1);
  }
};

// A work-group's number taken apart (grid rule linear_tiles, docs/archive-format.md). Numbers past
// the last tile have row tiles past the last one.
struct WorkNumber {
  u32 head, batch, row_tile;
};
FLYDSL_DEVICE WorkNumber work_number(u32 grid_x, u32 heads, u32 batches) {
  const u32 number = __builtin_amdgcn_workgroup_id_y() * grid_x + __builtin_amdgcn_workgroup_id_x();
  return {number % heads, number / heads % batches, number / heads / batches};
}

// False when the work-group's number is past the last tile. Causal rows are walked longest first: the work-groups that start last
// are then the short ones.
template <Mask mask>
FLYDSL_DEVICE bool find_work(const flydsl_aot_attention_forward_kernarg &args,
                             Problem<mask> &work) {
  auto [head, batch, row_tile] = work_number(args.grid_x, args.heads_q, args.batches);
  if (row_tile >= args.row_tiles) return false;
  if constexpr (mask == Mask::causal) row_tile = args.row_tiles - 1 - row_tile;

  const i64 b = batch, h = head, kv_head = head / static_cast<u32>(args.heads_per_kv);
  constexpr i64 element_bytes = 2;
  work.q =
      (global_ptr<const char>)args.q + (b * args.q_stride_b + h * args.q_stride_h) * element_bytes;
  work.k = (global_ptr<const char>)args.k +
           (b * args.k_stride_b + kv_head * args.k_stride_h) * element_bytes;
  work.v = (global_ptr<const char>)args.v +
           (b * args.v_stride_b + kv_head * args.v_stride_h) * element_bytes;
  work.out =
      (global_ptr<char>)args.out + (b * args.out_stride_b + h * args.out_stride_h) * element_bytes;
  work.lse = args.lse ? (global_ptr<float>)args.lse + b * args.lse_stride_b + h * args.lse_stride_h
                      : nullptr;
  work.q_row_bytes = args.q_stride_s * element_bytes;
  work.k_row_bytes = args.k_stride_s * element_bytes;
  work.v_row_bytes = args.v_stride_s * element_bytes;
  work.out_row_bytes = args.out_stride_s * element_bytes;
  work.lse_row_elements = args.lse_stride_s;
  work.seq_q = args.seq_q;
  work.seq_k = args.seq_k;
  work.mask_shift = args.mask_shift;
  work.scale_log2 = args.scale_log2;
  work.q_and = args.q_and;
  work.q_xor = args.q_xor;
  work.first_row = static_cast<i32>(row_tile) * kRowsOfWorkGroup;
  return true;
}

}  // namespace flydsl::kernels
