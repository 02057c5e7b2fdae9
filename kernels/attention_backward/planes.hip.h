// Two numbers of every query row that `prepare` writes and the other passes read: row_lse, the forward call's lse in units of
// log2, +inf where the row takes no part (it sees no key, or it is none), so that exp2(x - row_lse) is 0 there; and row_delta,
// the product of its rows of dout and out, 0 there.
//
// A plane is all rows of a head (dense: of a head of one sequence). Rows of a sequence begin at a multiple of 128, and up to
// the next sequence all are written: tiles of up to 128 rows are read aligned and need no look at lengths.
#pragma once

#include "attention_backward/arguments.hip.h"
#include "attention_forward/sequences.hip.h"

namespace flydsl::kernels {

constexpr i32 kRowsOfPlaneTile = 128;

// Packed: row 0 of sequence `batch`, whose first in the tensor is `first_q`, in the plane of its head. Two tiles more a
// sequence than its rows have in the tensor, one for its last rows, one for rounding down: so sequences lie apart. (As in
// v2src/attention_backward_workspace.cc.)
FLYDSL_DEVICE i64 first_row_of_plane(u32 batch, i32 first_q) {
  return (i64{batch} * (2 * kRowsOfPlaneTile) + first_q) & -i64{kRowsOfPlaneTile};
}

// Number of row 0 of a sequence's head in row_lse and row_delta.
FLYDSL_DEVICE i64 plane_row(u32 batch, u32 head, i32 first_q) {
  const Arguments a = fresh_arguments();
  if (a->cu_seqlens_q) return head * a->rows_stride + first_row_of_plane(batch, first_q);
  return (i64{batch} * a->heads_q + head) * a->rows_stride;
}

// Which sequence the rows of a tile of a plane belong to: the last that begins at or before `row`, found 64 at a time;
// `batches` if there is none.
FLYDSL_DEVICE u32 batch_of_plane_row(i64 row) {
  const Arguments a = fresh_arguments();
  const u32 lane = __builtin_amdgcn_workitem_id_x() % kWaveLanes;
  const u32 batches = static_cast<u32>(a->batches);
  const auto starts = (global_ptr<const i32>)a->cu_seqlens_q;
  u32 first = 0, count = batches;
#pragma unroll 1
  while (count != 0) {
    const u32 step = (count + kWaveLanes - 1) / kWaveLanes;
    const u32 batch = first + lane * step;
    bool before = false;
    if (batch < first + count) {
      const i32 begin = static_cast<i32>(clamped(starts[batch], 0, a->total_q));
      before = first_row_of_plane(batch, begin) <= row;
    }
    const u64 all = ballot(before);
    if (all == 0) break;
    const u32 last = kWaveLanes - 1 - static_cast<u32>(__builtin_clzll(all));
    const u32 end = first + count;
    first += last * step;
    if (step == 1) return first;
    count = first + step < end ? step : end - first;
  }
  return batches;
}

}  // namespace flydsl::kernels
