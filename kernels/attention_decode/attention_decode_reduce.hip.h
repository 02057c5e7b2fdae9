// attention_decode, the second pass: the segments' partial results of one row, put together in the order
// of the keys' shares, so always in the same. A row is computed by a wave, or by all four of a work-group
// where it has many partials.
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

// What a lane has of a row: its RowState so far, and 4 neighbouring outputs, or `vectors` times 4, 256
// apart.
template <int vectors>
struct Sum {
  RowState state;
  f32x4 o[vectors] = {};

  // Adds a result with its own reference; not if not `real`.
  FLYDSL_DEVICE void add(float reference, float sum, float highest, const f32x4 (&more)[vectors],
                         bool real) {
    const float common = larger(state.reference, reference);
    const float old_factor = exp2(state.reference - common);
    const float factor = real ? exp2(reference - common) : 0.0f;
    state.reference = common;
    state.sum = fma(state.sum, old_factor, sum * factor);
    state.highest = larger(state.highest, highest);
#pragma unroll
    for (int n = 0; n < vectors; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) o[n][i] = fma(more[n][i], factor, o[n][i] * old_factor);
    }
  }
  // Adds that of lane `lane` ^ `mask`.
  FLYDSL_DEVICE void add_lane(u32 lane, u32 mask) {
    const auto there = [&](float x) { return lane_xor(x, lane, mask); };
    f32x4 more[vectors];
#pragma unroll
    for (int n = 0; n < vectors; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) more[n][i] = there(o[n][i]);
    }
    add(there(state.reference), there(state.sum), there(state.highest), more, true);
  }
};

// Adds partials `first`, `first` + `step`, ... to a lane's sum. `element`: the lane's first.
template <int vectors>
FLYDSL_DEVICE void add_partials(const Partials &partials, u32 first, u32 step, u32 element,
                                Sum<vectors> &total) {
  constexpr int kAtOnce = 8 / vectors;  // loads on their way
  const Arguments args = fresh_arguments();
  const u32 head_dim = args->head_dim_v, slot_rows = args->rows_of_slot;
  const auto heads = partial_head(partials.at(0));
  const auto outs = partial_out(partials.at(0));
#pragma unroll 1
  for (u32 begin = first; begin < partials.count; begin += kAtOnce * step) {
    f32x4 head[kAtOnce], out[kAtOnce][vectors];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      // Partials past the last, and elements past the last four, repeat those.
      const u32 number = begin + i * step;
      const u64 row = static_cast<u64>(number < partials.count ? number : begin) * slot_rows;
      head[i] = heads[row];
#pragma unroll
      for (int n = 0; n < vectors; ++n) {
        const u32 from = element + 256 * n;
        out[i][n] = *(global_ptr<const f32x4>)(outs + row * head_dim +
                                               (from < head_dim ? from : head_dim - 4));
      }
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const bool real = begin + i * step < partials.count;
      total.add(head[i][0], head[i][1], head[i][2], out[i], real);
    }
  }
}

template <class Element, int vectors>
FLYDSL_DEVICE void finish_row(const DecodeRow<Element, 4 * vectors> &row, Sum<vectors> &total,
                              u32 element, u32 lane) {
  const RowState &state = total.state;
  float sum = state.sum, reference = state.reference, factor = 1.0f;
  const bool empty = state.highest == -kInfinity;  // and no NaN, or the probe tells
  // The sink is one more weight, which meets no value. What it scales the others by goes to the values in two
  // factors: one alone would underflow where the sink is 2^126 times the largest weight.
  if (!(row.sink == -kInfinity)) {
    reference = larger(state.reference, row.sink);
    factor = exp2((state.reference - reference) * 0.5f);
    sum = fma(sum, factor * factor, exp2(row.sink - reference));
  }
  // Not finite anywhere <=> this is NaN: 0 * x is 0 for finite x only.
  float probe = sum * 0.0f;
#pragma unroll
  for (const f32x4 &four : total.o) {
#pragma unroll
    for (int i = 0; i < 4; ++i) probe = fma(four[i], 0.0f, probe);
  }
  const bool trusted =
      ballot(probe != 0.0f) == 0 && (empty || __builtin_fabsf(state.reference) < kLargestReference);
  if (FLYDSL_UNLIKELY(!trusted)) return exact_row(row, lane);
  const float scale = empty ? 0.0f : factor * reciprocal(sum);
#pragma unroll
  for (int n = 0; n < vectors; ++n) row.store_four(element + 256 * n, total.o[n] * factor * scale);
  if (lane == 0) row.store_lse((empty ? row.sink : reference + log2(sum)) * kLn2);
}

// For head dims of values up to `elements` for each lane.
template <class Element, int elements>
FLYDSL_DEVICE void attention_decode_reduce(const flydsl_aot_attention_decode_kernarg &) {
  constexpr u32 kWaves = 4;
  constexpr int kVectors = elements / 4;
  FLYDSL_SHARED static char bytes[kWaves * kWaveLanes * sizeof(Sum<kVectors>)]
      __attribute__((aligned(16)));
  const auto sums = reinterpret_cast<Sum<kVectors> *>(bytes);

  fetch_arguments();
  const Arguments args = fresh_arguments();
  const u32 item = __builtin_amdgcn_workitem_id_x(), lane = item % kWaveLanes;
  const u32 wave = uniform(item / kWaveLanes);
  const bool whole_group = args->waves_of_row != 1;
  const u32 group =
      __builtin_amdgcn_workgroup_id_y() * args->reduce_grid_x + __builtin_amdgcn_workgroup_id_x();
  const u32 number = whole_group ? group : group * kWaves + wave;
  // Rows in the order of sequences, key heads, rows of the pair.
  const u32 group_rows = args->heads_per_kv * static_cast<u32>(args->seq_q);
  const u32 key_head = number / group_rows, group_row = number % group_rows;
  const u32 batch = key_head / args->heads_kv, kv_head = key_head % args->heads_kv;
  if (batch >= args->batches) return;

  const Sequence sequence = sequence_of(batch);
  const u32 tile_rows = args->rows_of_tile;
  const Partials partials = partials_of(batch, kv_head * args->row_tiles + group_row / tile_rows,
                                        group_row % tile_rows, uniform(sequence.tiles()), lane);

  // 16, 32 or 64 lanes have a partial's outputs, the others those of partials after it.
  const u32 head_dim = args->head_dim_v;
  const u32 lanes = head_dim <= 64 ? 16 : head_dim <= 128 ? 32 : 64;
  const u32 together = kWaveLanes / lanes, element = lane % lanes * 4;
  Sum<kVectors> total;
  add_partials(partials, lane / lanes + (whole_group ? wave * together : 0),
               whole_group ? kWaves * together : together, element, total);
  for (u32 mask = lanes; mask < kWaveLanes; mask *= 2) total.add_lane(lane, mask);
  if (whole_group) {
    sums[item] = total;
    barrier();
    if (wave != 0) return;
#pragma unroll 1
    for (u32 from = 1; from < kWaves; ++from) {
      const Sum<kVectors> &more = sums[from * kWaveLanes + lane];
      total.add(more.state.reference, more.state.sum, more.state.highest, more.o, true);
    }
  }
  const Row row(batch, kv_head, group_row);
  finish_row(DecodeRow<Element, elements>(row, kv_head, sequence), total,
             lane < lanes ? element : head_dim, lane);
}

}  // namespace flydsl::kernels
