// What one work-group of a pass over keys or over queries computes: the gradients of some rows, its own, of one head of
// one sequence. It walks over the rows of the other kind that these meet, "the others", in tiles of 64:
//
//   pass     own rows    gradients    the others
//   keys     keys        dk, dv       the queries of all heads of the group, one head after the other
//   queries  queries     dq           keys
#pragma once

#include "attention_backward/planes.hip.h"
#include "attention_backward/two_way_tile.hip.h"
#include "attention_forward/head.hip.h"
#include "attention_forward/unequal_order.hip.h"

namespace flydsl::kernels {

enum class Pass { keys, queries };

FLYDSL_DEVICE constexpr i32 larger(i32 a, i32 b) {
  return a > b ? a : b;
}

// Inclusive; empty if last < first.
struct Range {
  i32 first, last;
};

struct GradientHead : Head {
  // Rows that see `key`.
  FLYDSL_DEVICE i32 first_row(i32 key) const { return larger(0, real_key(key) - high); }
  FLYDSL_DEVICE i32 last_row(i32 key) const { return smaller(seq_q - 1, real_key(key) - low); }

  FLYDSL_DEVICE global_ptr<const char> dout_row(i32 row) const {
    const Arguments a = fresh_arguments();
    return (global_ptr<const char>)a->dout +
           2 * element(a->dout_stride_b, head, a->dout_stride_h, first_q, row, a->dout_stride_s);
  }
  FLYDSL_DEVICE global_ptr<char> dq_row(i32 row) const {
    const Arguments a = fresh_arguments();
    return (global_ptr<char>)a->dq +
           2 * element(a->dq_stride_b, head, a->dq_stride_h, first_q, row, a->dq_stride_s);
  }
  FLYDSL_DEVICE global_ptr<char> dk_row(i32 key) const {
    const Arguments a = fresh_arguments();
    return (global_ptr<char>)a->dk +
           2 * element(a->dk_stride_b, kv_head, a->dk_stride_h, first_k, key, a->dk_stride_s);
  }
  FLYDSL_DEVICE global_ptr<char> dv_row(i32 key) const {
    const Arguments a = fresh_arguments();
    return (global_ptr<char>)a->dv +
           2 * element(a->dv_stride_b, kv_head, a->dv_stride_h, first_k, key, a->dv_stride_s);
  }
  // Of row 0 and on, up to the next multiple of 128.
  FLYDSL_DEVICE global_ptr<const float> lse_of_rows() const {
    return (global_ptr<const float>)fresh_arguments()->row_lse + plane_row(batch, head, first_q);
  }
  FLYDSL_DEVICE global_ptr<const float> delta_of_rows() const {
    return (global_ptr<const float>)fresh_arguments()->row_delta + plane_row(batch, head, first_q);
  }

 private:
  FLYDSL_DEVICE i64 element(i64 stride_b, u32 head_of_tensor, i64 stride_h, i32 first, i32 row,
                            i64 stride_s) const {
    return batch * stride_b + head_of_tensor * stride_h +
           (static_cast<i64>(first) + row) * stride_s;
  }
};

template <Pass pass>
struct Work : GradientHead {
  i32 first_own;  // of the work-group

  FLYDSL_DEVICE i32 own_count() const { return pass == Pass::keys ? seq_k : seq_q; }
  FLYDSL_DEVICE i32 other_count() const { return pass == Pass::keys ? seq_q : seq_k; }
  FLYDSL_DEVICE i32 real_own(i32 own) const { return smaller(own, own_count() - 1); }
  FLYDSL_DEVICE i32 real_other(i32 other) const { return smaller(other, other_count() - 1); }
  // The others that an own row meets; both ends do not descend from row to row. Rows past the end meet those of the last.
  FLYDSL_DEVICE Range others_of(i32 own) const {
    return pass == Pass::keys ? Range{first_row(own), last_row(own)}
                              : Range{first_key(own), last_key(own)};
  }
  FLYDSL_DEVICE Range others_of(i32 first, i32 last) const {
    return {others_of(first).first, others_of(last).last};
  }
  FLYDSL_DEVICE u32 heads() const {
    return pass == Pass::keys ? static_cast<u32>(fresh_arguments()->heads_per_kv) : 1;
  }
  FLYDSL_DEVICE void take_head(u32 number) {
    if (pass == Pass::keys)
      head = kv_head * static_cast<u32>(fresh_arguments()->heads_per_kv) + number;
  }

  // The operands of both score products: q . k and dout . v.
  FLYDSL_DEVICE global_ptr<const char> own_row_1(i32 own) const {
    return pass == Pass::keys ? k_row(own) : q_row(own);
  }
  FLYDSL_DEVICE global_ptr<const char> own_row_2(i32 own) const {
    return pass == Pass::keys ? v_row(own) : dout_row(own);
  }
  FLYDSL_DEVICE global_ptr<const char> other_row_1(i32 other) const {
    return pass == Pass::keys ? q_row(other) : k_row(other);
  }
  FLYDSL_DEVICE global_ptr<const char> other_row_2(i32 other) const {
    return pass == Pass::keys ? dout_row(other) : v_row(other);
  }
};

// Item `number` of heads_kv * row_tiles where sequences differ: tiles of keys in the order of sequences, the heads in turn.
FLYDSL_DEVICE bool find_unequal_keys(u32 number, i32 keys, WorkItem &item, Sequence &sequence) {
  const Arguments args = fresh_arguments();
  const u32 heads = static_cast<u32>(args->heads_kv), batches = static_cast<u32>(args->batches);
  if (batches > kMostCounted) {
    const u32 tiles_of_longest = args->row_tiles / batches;
    item = work_item<false>(number, heads, batches, tiles_of_longest);
    if (item.row_tile >= tiles_of_longest) return false;
    sequence = sequence_of(item.batch);
    return true;
  }
  u32 left = number / heads;
  item.head = number % heads;
  const u32 lane = __builtin_amdgcn_workitem_id_x() % kWaveLanes;
#pragma unroll 1
  for (u32 first = 0; first < batches; first += kWaveLanes) {
    Sequence own = {};
    if (first + lane < batches) own = sequence_of<true>(first + lane);
    const u32 passed = sums_of_wave(static_cast<u32>((own.seq_k + keys - 1) / keys));
    const u32 all = of_last_lane(passed);
    if (left < all) {
      const u32 found = static_cast<u32>(__builtin_ctzll(ballot(passed > left)));
      sequence = of_lane(own, found);
      const u32 tiles = static_cast<u32>((sequence.seq_k + keys - 1) / keys);
      item.batch = first + found;
      item.row_tile = left + tiles - static_cast<u32>(__builtin_amdgcn_readlane(passed, found));
      return true;
    }
    left -= all;
  }
  return false;
}

// The item of this work-group, whose own rows are `rows`. False when there is nothing to do in it.
template <Pass pass>
FLYDSL_DEVICE bool find_work(Work<pass> &work, i32 rows) {
  const Arguments args = fresh_arguments();
  const u32 number =
      __builtin_amdgcn_workgroup_id_y() * args->grid_x + __builtin_amdgcn_workgroup_id_x();
  WorkItem item;
  if (unequal_lengths()) {
    if (pass == Pass::keys ? !find_unequal_keys(number, rows, item, work)
                           : !find_unequal_item(number, rows, item, work))
      return false;
  } else {
    const u32 tiles = args->row_tiles;
    item = work_item<true>(number,
                           static_cast<u32>(pass == Pass::keys ? args->heads_kv : args->heads_q),
                           static_cast<u32>(args->batches), tiles);
    if (item.row_tile >= tiles) return false;
    // A right bound lets the last rows see most keys: these, and the first keys, have most work.
    if (pass == Pass::keys) item.row_tile = tiles - 1 - item.row_tile;
    static_cast<Sequence &>(work) = equal_sequence();
  }
  work.batch = item.batch;
  work.head = item.head;
  work.kv_head = pass == Pass::keys ? item.head : item.head / static_cast<u32>(args->heads_per_kv);
  work.first_own = static_cast<i32>(item.row_tile) * rows;
  return work.first_own < work.own_count();
}

}  // namespace flydsl::kernels
