// attention_decode, the second pass: the segments' partial results of one row, put together in the order
// of the keys' shares, so always in the same. A row is computed by a wave, or by all four of a work-group
// where it has many partials.
//
// There is little to compute and nothing else for a compute unit to do: the time is waiting, for arguments
// (so all are loaded at once), for instructions that no wave has fetched before (so the usual path is short and
// straight), and for the partials (so as many as a row usually has are loaded at once).
#pragma once

#include "attention_decode/exact_row.hip.h"
#include "attention_decode/partial.hip.h"
#include "attention_decode/weights.hip.h"
#include "attention_forward/exact.hip.h"
#include "common/lds.hip.h"

namespace flydsl::kernels {

// What the usual path needs, in registers from the start: one wait in place of many.
struct ReduceArguments {
  EqualPlan plan;
  u64 by_group_rows, by_heads_kv, by_rows_of_tile, by_seq_q;
  u32 batches, heads_kv, heads_per_kv, seq_q, head_dim;
  u32 row_tiles, rows_of_tile, rows_of_slot, grid_x, waves_of_row;
  u64 out, partial_heads, partial_outs;
  i64 out_stride_b, out_stride_h, out_stride_s;
  bool has_lse, has_sinks, has_v_descale;

  FLYDSL_DEVICE explicit ReduceArguments(Arguments args)
      : plan(args),
        by_group_rows(args->by_group_rows),
        by_heads_kv(args->by_heads_kv),
        by_rows_of_tile(args->by_rows_of_tile),
        by_seq_q(args->by_seq_q),
        batches(args->batches),
        heads_kv(args->heads_kv),
        heads_per_kv(args->heads_per_kv),
        seq_q(static_cast<u32>(args->seq_q)),
        head_dim(args->head_dim_v),
        row_tiles(args->row_tiles),
        rows_of_tile(args->rows_of_tile),
        rows_of_slot(args->rows_of_slot),
        grid_x(args->reduce_grid_x),
        waves_of_row(args->waves_of_row),
        out((u64)args->out),
        partial_heads((u64)args->partial_heads),
        partial_outs((u64)args->partial_outs),
        out_stride_b(args->out_stride_b),
        out_stride_h(args->out_stride_h),
        out_stride_s(args->out_stride_s) {
    const u64 lse = (u64)args->lse, sinks = (u64)args->sinks, v_descale = (u64)args->v_descale;
    // Read in these places, they would be waited for there.
    asm volatile("" ::"s"(plan.tiles), "s"(plan.shares.each), "s"(plan.shares.extra),
                 "s"(plan.by_each), "s"(plan.by_each_and_one), "s"(by_group_rows), "s"(by_heads_kv),
                 "s"(by_rows_of_tile), "s"(by_seq_q), "s"(batches), "s"(heads_kv),
                 "s"(heads_per_kv), "s"(seq_q), "s"(head_dim), "s"(row_tiles), "s"(rows_of_tile),
                 "s"(rows_of_slot), "s"(grid_x), "s"(waves_of_row), "s"(out), "s"(partial_heads),
                 "s"(partial_outs), "s"(out_stride_b), "s"(out_stride_h), "s"(out_stride_s),
                 "s"(lse), "s"(sinks), "s"(v_descale));
    has_lse = lse != 0;
    has_sinks = sinks != 0;
    has_v_descale = v_descale != 0;
  }
};

// Rows in the order of sequences, key heads, rows of the pair.
struct ReduceRow {
  u32 batch, kv_head, group_row;
  u32 pair, row;  // row: of the pair's tile of rows
};

// The partials of a row: `count` of them, these bytes apart.
struct Partials {
  global_ptr<const char> heads, outs;
  u32 count, head_bytes, out_bytes;
};

// The workers that have the units of a pair, where each work-group has to look at the lengths.
FLYDSL_DEVICE Owners owners_of(u32 batch, u32 pair, u32 lane) {
  const u32 tiles = uniform(sequence_of(batch).tiles()), pairs = pairs_of_sequence();
  const TileCount count = count_tiles(batch, lane);
  if (tiles == 0) return {0, 0};
  const Shares shares = Shares::of(count.all * pairs, fresh_arguments()->workers);
  const u32 unit = count.before * pairs + pair * tiles;
  const u32 first = shares.owner(unit);
  return {first, shares.owner(unit + tiles - 1) - first + 1};
}

// What a lane has of a row: its RowState so far, and 4 neighbouring outputs, or `vectors` times 4, 256
// apart.
template <int vectors>
struct Sum {
  RowState state;
  f32x4 o[vectors] = {};

  // Adds `number` results with references of their own (RowState in the first three of a head); of them those
  // that are not `real` add nothing.
  template <int number, class Real>
  FLYDSL_DEVICE void add(const f32x4 (&heads)[number], const f32x4 (&outs)[number][vectors],
                         const Real &real) {
    float common = state.reference;
#pragma unroll
    for (const f32x4 &head : heads) common = larger(common, head[0]);
    scale(exp2(state.reference - common));
    state.reference = common;
#pragma unroll
    for (int i = 0; i < number; ++i) {
      const float factor = real(i) ? exp2(heads[i][0] - common) : 0.0f;
      state.sum = fma(heads[i][1], factor, state.sum);
      state.highest = larger(state.highest, heads[i][2]);
#pragma unroll
      for (int n = 0; n < vectors; ++n) {
#pragma unroll
        for (int j = 0; j < 4; ++j) o[n][j] = fma(outs[i][n][j], factor, o[n][j]);
      }
    }
  }
  // Adds what another lane has; `largest` and `sum` say what of a value here and there.
  template <class Largest, class Together>
  FLYDSL_DEVICE void join(const Largest &largest, const Together &sum) {
    const float common = largest(state.reference);
    scale(exp2(state.reference - common));
    state = {common, sum(state.sum), largest(state.highest)};
#pragma unroll
    for (f32x4 &four : o) {
#pragma unroll
      for (int i = 0; i < 4; ++i) four[i] = sum(four[i]);
    }
  }
  FLYDSL_DEVICE void scale(float factor) {
    state.sum *= factor;
#pragma unroll
    for (f32x4 &four : o) four *= factor;
  }
};

// Adds partials `first`, `first` + `step`, ... to a lane's sum, `number` of them at once. `element`: the
// lane's first.
template <int number, int vectors>
FLYDSL_DEVICE void add_partials(const Partials &partials, u32 first, u32 step, u32 element,
                                u32 head_dim, Sum<vectors> &total) {
#pragma unroll 1
  for (u32 begin = 0; begin < partials.count; begin += number * step) {
    f32x4 heads[number], outs[number][vectors];
#pragma unroll
    for (int i = 0; i < number; ++i) {
      // Partials past the last, and elements past the last four, repeat those.
      const u32 wanted = begin + first + i * step;
      const u32 partial = wanted < partials.count ? wanted : partials.count - 1;
      heads[i] = *(global_ptr<const f32x4>)(partials.heads + partial * partials.head_bytes);
#pragma unroll
      for (int n = 0; n < vectors; ++n) {
        const u32 from = element + 256 * n;
        outs[i][n] = *(global_ptr<const f32x4>)(partials.outs +
                                                (partial * partials.out_bytes +
                                                 4 * (from < head_dim ? from : head_dim - 4)));
      }
    }
    total.add(heads, outs, [&](int i) { return begin + first + i * step < partials.count; });
  }
}

template <class Element, int elements>
FLYDSL_DEVICE void finish_exactly(const ReduceRow &at, u32 lane) {
  const Row row(at.batch, at.kv_head, at.group_row);
  exact_row(DecodeRow<Element, elements>(row, at.kv_head, sequence_of(at.batch)), lane);
}

// For head dims of values up to `elements` for each lane.
template <class Element, int elements>
FLYDSL_DEVICE void attention_decode_reduce(const flydsl_aot_attention_decode_kernarg &) {
  constexpr u32 kWaves = 4;
  constexpr int kVectors = elements / 4;
  FLYDSL_SHARED static f32x4 sums[kWaves][1 + kVectors][kWaveLanes];

  const ReduceArguments args(fresh_arguments());
  const u32 item = __builtin_amdgcn_workitem_id_x(), lane = item % kWaveLanes;
  const u32 wave = uniform(item / kWaveLanes);
  const bool whole_group = args.waves_of_row != 1;
  const u32 group =
      __builtin_amdgcn_workgroup_id_y() * args.grid_x + __builtin_amdgcn_workgroup_id_x();
  const u32 number = whole_group ? group : group * kWaves + wave;
  const u32 group_rows = args.heads_per_kv * args.seq_q;
  if (number >= args.batches * args.heads_kv * group_rows) return;

  ReduceRow at;
  const u32 key_head = quotient(number, args.by_group_rows);
  at.group_row = number - key_head * group_rows;
  at.batch = quotient(key_head, args.by_heads_kv);
  at.kv_head = key_head - at.batch * args.heads_kv;
  const u32 row_tile = quotient(at.group_row, args.by_rows_of_tile);
  at.row = at.group_row - row_tile * args.rows_of_tile;
  at.pair = at.kv_head * args.row_tiles + row_tile;

  const u32 pair_of_all = at.batch * args.heads_kv * args.row_tiles + at.pair;
  const Owners owners = FLYDSL_LIKELY(args.plan.tiles != 0) ? args.plan.owners(pair_of_all)
                                                            : owners_of(at.batch, at.pair, lane);
  const u64 first_row = static_cast<u64>(owners.first + pair_of_all) * args.rows_of_slot + at.row;
  const u32 head_dim = args.head_dim;
  const Partials partials = {(global_ptr<const char>)args.partial_heads + first_row * sizeof(f32x4),
                             (global_ptr<const char>)args.partial_outs + first_row * (4 * head_dim),
                             owners.count, args.rows_of_slot * static_cast<u32>(sizeof(f32x4)),
                             args.rows_of_slot * 4 * head_dim};

  // 16, 32 or 64 lanes have a partial's outputs, the others those of partials after it.
  const u32 lanes_log2 = head_dim <= 64 ? 4 : head_dim <= 128 ? 5 : 6, lanes = 1u << lanes_log2;
  const u32 together = kWaveLanes >> lanes_log2, element = (lane & (lanes - 1)) * 4;
  const u32 part = lane >> lanes_log2;
  Sum<kVectors> total;
  if (whole_group)
    add_partials<8 / kVectors>(partials, part + wave * together, kWaves * together, element,
                               head_dim, total);
  else
    add_partials<4 / kVectors>(partials, part, together, element, head_dim, total);
  if (whole_group) {
    sums[wave][0][lane] = f32x4{total.state.reference, total.state.sum, total.state.highest, 0.0f};
#pragma unroll
    for (int n = 0; n < kVectors; ++n) sums[wave][1 + n][lane] = total.o[n];
    barrier();
    if (wave != 0) return;
    f32x4 heads[kWaves - 1], outs[kWaves - 1][kVectors];
#pragma unroll
    for (u32 i = 0; i < kWaves - 1; ++i) {
      heads[i] = sums[i + 1][0][lane];
#pragma unroll
      for (int n = 0; n < kVectors; ++n) outs[i][n] = sums[i + 1][1 + n][lane];
    }
    total.add(heads, outs, [](int) { return true; });
  }
  if (lanes == 16) {
    const auto there = [&](float x) { return lane_xor(x, lane, 16); };
    total.join([&](float x) { return larger(x, there(x)); }, [&](float x) { return x + there(x); });
  }
  if (lanes <= 32)
    total.join([](float x) { return max_of_halves(x); }, [](float x) { return sum_of_halves(x); });

  const u32 head_of_group = quotient(at.group_row, args.by_seq_q);
  const u32 head = at.kv_head * args.heads_per_kv + head_of_group;
  const u32 query = at.group_row - head_of_group * args.seq_q;
  const RowState &state = total.state;
  float sum = state.sum, reference = state.reference, factor = 1.0f;
  const bool empty = state.highest == -kInfinity;  // and no NaN, or the probe tells
  const float sink = args.has_sinks ? sink_of(head) : -kInfinity;
  // The sink is one more weight, which meets no value. What it scales the others by goes to the values in two
  // factors: one alone would underflow where the sink is 2^126 times the largest weight.
  if (FLYDSL_UNLIKELY(!(sink == -kInfinity))) {
    reference = larger(state.reference, sink);
    factor = exp2((state.reference - reference) * 0.5f);
    sum = fma(sum, factor * factor, exp2(sink - reference));
  }
  // Not finite anywhere <=> this is NaN: 0 * x is 0 for finite x only.
  float probe = sum * 0.0f;
#pragma unroll
  for (const f32x4 &four : total.o) {
#pragma unroll
    for (int i = 0; i < 4; ++i) probe = fma(four[i], 0.0f, probe);
  }
  const bool trusted =
      probe == 0.0f && (empty || __builtin_fabsf(state.reference) < kLargestReference);
  if (FLYDSL_UNLIKELY(ballot(!trusted) != 0)) return finish_exactly<Element, elements>(at, lane);
  const float scale = empty ? 0.0f : factor * reciprocal(sum);
  const float descale = args.has_v_descale ? value_descale(at.batch, at.kv_head) : 1.0f;
  const auto out =
      (global_ptr<char>)args.out +
      2 * (at.batch * args.out_stride_b + head * args.out_stride_h + query * args.out_stride_s);
#pragma unroll
  for (int n = 0; n < kVectors; ++n) {
    const u32 to = element + 256 * n;
    const f32x4 x = total.o[n] * factor * scale * descale;
    if (lane < lanes && to < head_dim)
      store_8_bytes(out + 2 * to,
                    u32x2{round_pair<Element>(x[0], x[1]), round_pair<Element>(x[2], x[3])});
  }
  if (args.has_lse && lane == 0)
    store_lse(at.batch, head, static_cast<i32>(query),
              (empty ? sink : reference + log2(sum)) * kLn2);
}

}  // namespace flydsl::kernels
