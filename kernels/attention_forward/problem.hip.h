// What one work-group computes: 128 query rows of one head of one sequence, found from its number.
#pragma once

#include "attention_forward/head.hip.h"
#include "attention_forward/unequal_order.hip.h"

namespace flydsl::kernels {

// No bound, a bound on the right, or one on the left too.
enum class Mask { none, causal, window };

constexpr i32 kRowsOfWave = 32;
constexpr i32 kWaves = 4;
constexpr i32 kRowsOfWorkGroup = kRowsOfWave * kWaves;
constexpr i32 kKeysOfTile = 64;

template <Mask mask>
struct Problem : Head {
  i32 first_row;

  // The keys that `row` may see: first_key .. last_key.
  FLYDSL_DEVICE i32 first_key(i32 row) const {
    return mask == Mask::window ? Sequence::first_key(row) : 0;
  }
  FLYDSL_DEVICE i32 last_key(i32 row) const {
    return mask == Mask::none ? seq_k - 1 : Sequence::last_key(row);
  }
  // Of the work-group: the first that has a key any of its rows may see.
  FLYDSL_DEVICE i32 first_tile() const { return first_key(first_row) / kKeysOfTile; }
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

// Item `number` of the problem, whose row tiles have `rows` rows. False when there is nothing to do in it.
template <Mask mask>
FLYDSL_DEVICE bool find_item(Problem<mask> &work, u32 number, i32 rows) {
  const Arguments args = fresh_arguments();
  WorkItem item;
  if (unequal_lengths()) {
    if (!find_unequal_item(number, rows, item, work)) return false;
  } else {
    item = work_item<mask == Mask::causal>(number, args->heads_q, args->batches, args->row_tiles);
    if (item.row_tile >= args->row_tiles) return false;
    static_cast<Sequence &>(work) = equal_sequence();
  }
  work.batch = item.batch;
  work.head = item.head;
  work.kv_head = item.head / static_cast<u32>(args->heads_per_kv);
  work.first_row = static_cast<i32>(item.row_tile) * rows;
  return work.first_row < work.seq_q;
}

// The item of this work-group, where each has one. `sharing`: work-groups that a compute unit runs at a time.
template <Mask mask>
FLYDSL_DEVICE bool find_work(Problem<mask> &work, i32 rows = kRowsOfWorkGroup, u32 sharing = 1) {
  const Arguments args = fresh_arguments();
  u32 number = __builtin_amdgcn_workgroup_id_y() * args->grid_x + __builtin_amdgcn_workgroup_id_x();
  if (mask == Mask::causal && sharing > 1 && !unequal_lengths())
    number = shared_evenly(
        number, static_cast<u32>(args->heads_q) * static_cast<u32>(args->batches) * args->row_tiles,
        sharing);
  return find_item(work, number, rows);
}

}  // namespace flydsl::kernels
