// attention_backward, the first pass: row_lse and row_delta of every row (planes.hip.h), a copy of dout where its last axis
// has another stride than 1, counters set to 0. It reads dout and out once and is bound by that.
//
// A work-group has 128 rows of one plane. As many lanes share a row as it has groups of eight elements, at most 32.
#pragma once

#include "attention_backward/planes.hip.h"
#include "attention_forward/general/partial_rows.hip.h"
#include "common/elements.hip.h"
#include "common/lds.hip.h"
#include "common/math.hip.h"

namespace flydsl::kernels {

constexpr u32 kPrepareItems = 512;

// The 128 rows of a work-group: those of a sequence from `first` up, or of none, with seq_q 0.
struct PlaneTile : Sequence {
  u32 batch, head;
  i32 first;
  i64 plane_row;  // of the first

  FLYDSL_DEVICE explicit PlaneTile(u32 number) : Sequence{}, batch(0), head(0), first(0) {
    const Arguments a = fresh_arguments();
    const u32 plane = number / a->row_tiles;
    const i64 row = i64{number - plane * a->row_tiles} * kRowsOfPlaneTile;
    plane_row = plane * a->rows_stride + row;
    if (!a->cu_seqlens_q) {
      batch = plane / static_cast<u32>(a->heads_q);
      head = plane - batch * static_cast<u32>(a->heads_q);
      static_cast<Sequence &>(*this) = sequence_of(batch);
      first = static_cast<i32>(row);
      return;
    }
    head = plane;
    batch = batch_of_plane_row(row);
    if (batch >= static_cast<u32>(a->batches)) return;
    static_cast<Sequence &>(*this) = sequence_of(batch);
    // Beyond 2^31 there are no rows.
    const i64 of_sequence = row - first_row_of_plane(batch, first_q);
    first = static_cast<i32>(clamped(of_sequence, 0, i64{1} << 30));
  }
  FLYDSL_DEVICE bool has(i32 row) const { return row < seq_q; }
  FLYDSL_DEVICE bool sees_keys(i32 row) const { return first_key(row) <= last_key(row); }
  FLYDSL_DEVICE i64 offset(i64 stride_b, i64 stride_h, i32 row, i64 stride_s) const {
    return batch * stride_b + head * stride_h + (i64{first_q} + row) * stride_s;
  }
};

template <bool in_rows>
FLYDSL_DEVICE float row_lse_of(const PlaneTile &tile, i32 row) {
  if (!tile.has(row) || !tile.sees_keys(row)) return kInfinity;
  const Arguments a = fresh_arguments();
  const i32 first = a->lse_is_padded ? 0 : tile.first_q;
  const float lse =
      ((global_ptr<const float>)a->lse)[tile.batch * a->lse_stride_b + tile.head * a->lse_stride_h +
                                        (i64{first} + row) * a->lse_stride_s];
  return lse == -kInfinity ? kInfinity : in_rows ? lse : lse * kLog2E;
}

// Elements first .. first + 7 of a row whose elements are `stride` apart.
FLYDSL_DEVICE u32x4 load_strided(global_ptr<const char> row, i32 first, i32 count, i64 stride) {
  if (stride == 1) return load_elements(row, first, count);
  u32x4 result = {};
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    if (first + i < count)
      result[i / 2] |= u32{((global_ptr<const u16>)row)[(first + i) * stride]} << (i % 2 * 16);
  }
  return result;
}

// What one lane adds to the delta of a row, and a bit of every output that is not 0.
struct PartOfDelta {
  float sum = 0.0f;
  u32 any = 0;

  template <class Element>
  FLYDSL_DEVICE void add(u32x4 dout, u32x4 out) {
#pragma unroll
    for (int i = 0; i < 8; ++i)
      sum = fma(element_of<Element>(dout, i), element_of<Element>(out, i), sum);
    any |= (out[0] | out[1] | out[2] | out[3]) & 0x7fff7fff;
  }
};

// The rows of a tensor that are whole groups of eight neighbouring elements.
struct TileRows {
  global_ptr<const char> first;
  i64 bytes;  // from row to row

  FLYDSL_DEVICE u32x4 at(u32 row, i32 column) const {
    return load_16_bytes(first + row * bytes + 2 * column);
  }
};

// The same of any rows, which are copied where that is wanted.
template <class Element>
FLYDSL_DEVICE PartOfDelta part_of_any_row(const PlaneTile &tile, i32 row, i32 first_column,
                                          i32 step) {
  const Arguments a = fresh_arguments();
  const auto out = (global_ptr<const char>)a->out +
                   2 * tile.offset(a->out_stride_b, a->out_stride_h, row, a->out_stride_s);
  const auto dout = (global_ptr<const char>)a->dout +
                    2 * tile.offset(a->dout_stride_b, a->dout_stride_h, row, a->dout_stride_s);
  const auto copy =
      (global_ptr<char>)a->dout_copy +
      2 * tile.offset(a->dout_copy_stride_b, a->dout_copy_stride_h, row, a->dout_copy_stride_s);
  const i32 head_dim = a->head_dim_v;
  PartOfDelta result;
  for (i32 column = first_column; column < head_dim; column += step) {
    u32x4 d = {};
    if (tile.sees_keys(row)) {
      d = load_strided(dout, column, head_dim, a->dout_stride_d);
      result.add<Element>(d, load_elements(out, column, head_dim));
    }
    // Rows of the copy have whole groups of eight.
    if (a->dout_copy) store_16_bytes(copy + 2 * column, d);
  }
  return result;
}

// Writes the deltas of all rows of the tile; `plain`: see TileRows.
template <class Element, bool plain>
FLYDSL_DEVICE void find_deltas(const PlaneTile &tile, lds_ptr<float> deltas) {
  const Arguments a = fresh_arguments();
  const u32 item = __builtin_amdgcn_workitem_id_x(), lane = item % kWaveLanes;
  const TileRows out = {
      (global_ptr<const char>)a->out +
          2 * tile.offset(a->out_stride_b, a->out_stride_h, tile.first, a->out_stride_s),
      2 * a->out_stride_s};
  const TileRows dout = {
      (global_ptr<const char>)a->dout +
          2 * tile.offset(a->dout_stride_b, a->dout_stride_h, tile.first, a->dout_stride_s),
      2 * a->dout_stride_s};
  const i32 head_dim = a->head_dim_v;
  const u32 groups = static_cast<u32>(head_dim + 7) / 8;
  u32 parts_log2 = 0;
  while (1u << parts_log2 < groups && parts_log2 < 5) ++parts_log2;
  const u32 parts = 1u << parts_log2, part = item & (parts - 1);
  const u64 lanes_of_row = ((u64{1} << parts) - 1) << (lane & ~(parts - 1));
  for (u32 row = item >> parts_log2; row < kRowsOfPlaneTile; row += kPrepareItems >> parts_log2) {
    const i32 of_sequence = tile.first + static_cast<i32>(row);
    const i32 first_column = static_cast<i32>(part * 8), step = static_cast<i32>(parts * 8);
    PartOfDelta own;
    if (!plain && tile.has(of_sequence))
      own = part_of_any_row<Element>(tile, of_sequence, first_column, step);
    if (plain && tile.has(of_sequence) && tile.sees_keys(of_sequence)) {
      for (i32 column = first_column; column < head_dim; column += step)
        own.add<Element>(dout.at(row, column), out.at(row, column));
    }
    for (u32 mask = 1; mask < parts; mask *= 2) own.sum += lane_xor(own.sum, lane, mask);
    // A row of outputs that are all 0 has no weights, or they meet values of 0: nothing that dout holds counts.
    if ((ballot(own.any != 0) & lanes_of_row) == 0) own.sum = 0.0f;
    if (part == 0) deltas[row] = own.sum;
  }
}

// Sets the sums of the tile's rows to 0.
FLYDSL_DEVICE void clear_sums(const PlaneTile &tile) {
  const Arguments a = fresh_arguments();
  const i32 left = tile.seq_q - tile.first;
  const i32 rows = left < i32{kRowsOfPlaneTile} ? left : i32{kRowsOfPlaneTile};
  const auto sums =
      (global_ptr<f32x4>)(a->dq_accumulator + tile.plane_row * a->dq_accumulator_stride);
  const i32 count = rows * static_cast<i32>(a->dq_accumulator_stride) / 4;
  for (i32 i = static_cast<i32>(__builtin_amdgcn_workitem_id_x()); i < count; i += kPrepareItems)
    sums[i] = f32x4{};
}

template <class Element, bool in_rows = false>
FLYDSL_DEVICE void attention_backward_prepare(const flydsl_aot_attention_backward_kernarg &) {
  FLYDSL_SHARED static float deltas[kRowsOfPlaneTile];
  const Arguments a = fresh_arguments();
  const u32 item = __builtin_amdgcn_workitem_id_x();
  const u32 number =
      __builtin_amdgcn_workgroup_id_y() * a->grid_x + __builtin_amdgcn_workgroup_id_x();
  if (const u64 counter = u64{number} * kPrepareItems + item;
      !in_rows && counter < static_cast<u64>(a->dq_counter_count))
    ((global_ptr<u32>)a->dq_counters)[counter] = 0;
  const u32 planes = static_cast<u32>(a->heads_q * (a->cu_seqlens_q ? 1 : a->batches));
  if (number / a->row_tiles >= planes) return;
  const PlaneTile tile(number);

  const i32 own_row = tile.first + static_cast<i32>(item);
  float lse = kInfinity;
  if (item < kRowsOfPlaneTile) lse = row_lse_of<in_rows>(tile, own_row);
  if (in_rows) clear_sums(tile);

  const auto sums = (lds_ptr<float>)&deltas[0];
  if (a->dout_stride_d == 1 && a->head_dim_v % 8 == 0)
    find_deltas<Element, true>(tile, sums);
  else
    find_deltas<Element, false>(tile, sums);
  barrier();
  if (item >= kRowsOfPlaneTile || (in_rows && !tile.has(own_row))) return;
  ((global_ptr<float>)a->row_lse)[tile.plane_row + item] = lse;
  // Where no weight counts, neither does what is subtracted from their gradients.
  ((global_ptr<float>)a->row_delta)[tile.plane_row + item] = lse == kInfinity ? 0.0f : deltas[item];
}

}  // namespace flydsl::kernels
