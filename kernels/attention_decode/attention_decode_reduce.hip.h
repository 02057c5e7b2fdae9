// attention_decode, the second pass: the segments' partial results of one row, put together in the order
// of the keys' shares, so always in the same. A work-group computes one row, its four waves a quarter
// of the partials each.
#pragma once

#include "attention_decode/exact_row.hip.h"
#include "attention_decode/partial.hip.h"
#include "attention_decode/weights.hip.h"
#include "attention_forward/exact.hip.h"
#include "common/lds.hip.h"

namespace flydsl::kernels {

// The partials of one row: slot `slot` + i, i < count.
struct Partials {
  u32 slot, count, row;
  FLYDSL_DEVICE u64 at(u32 i) const { return partial_row(slot + i, row); }
};

FLYDSL_DEVICE Partials partials_of(u32 batch, u32 pair, u32 row, u32 tiles, u32 lane) {
  const u32 pairs = pairs_of_sequence();
  const TileCount count = count_tiles(batch, lane);
  if (tiles == 0) return {0, 0, row};
  const Shares shares(count.all * pairs, fresh_arguments()->workers);
  const u32 unit = count.before * pairs + pair * tiles;
  const u32 first = shares.owner(unit), last = shares.owner(unit + tiles - 1);
  return {first + batch * pairs + pair, last - first + 1, row};
}

// RowState of all keys, the same in all lanes.
FLYDSL_DEVICE RowState total_state(const Partials &partials, u32 lane) {
  RowState total;
#pragma unroll 1
  for (u32 i = lane; i < partials.count; i += kWaveLanes) {
    const f32x4 head = *partial_head(partials.at(i));
    const float reference = larger(total.reference, head[0]);
    total.sum =
        fma(total.sum, exp2(total.reference - reference), head[1] * exp2(head[0] - reference));
    total.reference = reference;
    total.highest = larger(total.highest, head[2]);
  }
  const float reference = max_of_wave(total.reference, lane);
  total.sum = sum_of_wave(total.sum * exp2(total.reference - reference), lane);
  total.reference = reference;
  total.highest = max_of_wave(total.highest, lane);
  return total;
}

template <class Element, int elements>
FLYDSL_DEVICE void finish_row(const DecodeRow<Element, elements> &row, const RowState &state,
                              float (&o)[elements], u32 lane) {
  float sum = state.sum, reference = state.reference, factor = 1.0f;
  const bool empty = state.highest == -kInfinity;  // and no NaN, or the probe tells
  // The sink is one more weight, which meets no value.
  if (!(row.sink == -kInfinity)) {
    reference = larger(state.reference, row.sink);
    factor = exp2(state.reference - reference);
    sum = fma(sum, factor, exp2(row.sink - reference));
  }
  // Not finite anywhere <=> this is NaN: 0 * x is 0 for finite x only.
  float probe = sum * 0.0f;
#pragma unroll
  for (float x : o) probe = fma(x, 0.0f, probe);
  const bool trusted =
      ballot(probe != 0.0f) == 0 && (empty || __builtin_fabsf(state.reference) < kLargestReference);
  if (FLYDSL_UNLIKELY(!trusted)) return exact_row(row, lane);
  factor = empty ? 0.0f : factor * reciprocal(sum);
#pragma unroll
  for (int i = 0; i < row.elements; ++i) row.store(lane + i * kWaveLanes, o[i] * factor);
  if (lane == 0) row.store_lse((empty ? row.sink : reference + log2(sum)) * kLn2);
}

// For head dims of values up to `elements` for each lane.
template <class Element, int elements>
FLYDSL_DEVICE void attention_decode_reduce(const flydsl_aot_attention_decode_kernarg &) {
  constexpr u32 kWaves = 4;
  FLYDSL_SHARED static float quarters[kWaves][elements][kWaveLanes];

  const Arguments args = fresh_arguments();
  const u32 number =
      __builtin_amdgcn_workgroup_id_y() * args->reduce_grid_x + __builtin_amdgcn_workgroup_id_x();
  // Rows in the order of sequences, key heads, rows of the pair.
  const u32 group_rows = args->heads_per_kv * static_cast<u32>(args->seq_q);
  const u32 key_head = number / group_rows, group_row = number % group_rows;
  const u32 batch = key_head / args->heads_kv, kv_head = key_head % args->heads_kv;
  if (batch >= args->batches) return;
  const u32 item = __builtin_amdgcn_workitem_id_x(), lane = item % kWaveLanes;
  const u32 wave = uniform(item / kWaveLanes);

  const Sequence sequence = sequence_of(batch);
  const u32 tile_rows = args->rows_of_tile;
  const Partials partials = partials_of(batch, kv_head * args->row_tiles + group_row / tile_rows,
                                        group_row % tile_rows, uniform(sequence.tiles()), lane);
  const RowState state = total_state(partials, lane);

  float o[elements] = {};
  const auto heads = partial_head(partials.at(0));
  const auto outs = partial_out(partials.at(0));
  const u32 head_dim = args->head_dim_v, slot_rows = args->rows_of_slot;
#pragma unroll 4
  for (u32 i = wave; i < partials.count; i += kWaves) {
    const u64 row = static_cast<u64>(i) * slot_rows;
    const float weight = exp2(heads[row][0] - state.reference);
    const auto from = outs + row * head_dim;
#pragma unroll
    for (int n = 0; n < elements; ++n) {
      // Lanes past the last element repeat it; they store nothing.
      const u32 element = lane + n * kWaveLanes;
      o[n] = fma(weight, from[element < head_dim ? element : head_dim - 1], o[n]);
    }
  }
#pragma unroll
  for (int n = 0; n < elements; ++n) quarters[wave][n][lane] = o[n];
  barrier();
  if (wave != 0) return;
#pragma unroll
  for (int n = 0; n < elements; ++n) {
    o[n] = 0.0f;
#pragma unroll
    for (u32 from = 0; from < kWaves; ++from) o[n] += quarters[from][n][lane];
  }
  const Row row(batch, kv_head, group_row);
  finish_row(DecodeRow<Element, elements>(row, kv_head, sequence), state, o, lane);
}

}  // namespace flydsl::kernels
