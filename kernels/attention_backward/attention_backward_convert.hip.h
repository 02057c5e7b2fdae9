// attention_backward, after `fused`: dq = scale * dq_accumulator, rounded to dq's type, in its strides; 0 for rows that see no
// key, whose accumulator nobody wrote. It reads and writes each element once and is bound by that.
//
// `in_rows`: sums of kernels of others, which have the scale, row by row (attention_backward_prepare.hip.h); they are dq as they are.
//
// A work-group has 128 rows of one plane, as in `prepare`.
#pragma once

#include "attention_backward/attention_backward_prepare.hip.h"
#include "attention_backward/exact.hip.h"

namespace flydsl::kernels {

// Rows of the wave whose sums are not finite, by the slow path: hidden keys may have met weights of 0. `lanes` have such sums.
template <class Element>
FLYDSL_DEVICE void compute_again(const PlaneTile &tile, i32 own_row, u64 lanes, u32 parts) {
  const u32 lane = __builtin_amdgcn_workitem_id_x() % kWaveLanes;
  if (FLYDSL_LIKELY(lanes == 0)) return;
  __builtin_amdgcn_s_waitcnt(0x0f70);  // what is stored of them
  Work<Pass::queries> work;
  static_cast<Sequence &>(work) = tile;
  work.batch = uniform(tile.batch);
  work.head = uniform(tile.head);
  work.kv_head = work.head / static_cast<u32>(fresh_arguments()->heads_per_kv);
  work.first_own = 0;
#pragma unroll 1
  while (lanes != 0) {
    const u32 first = static_cast<u32>(__builtin_ctzll(lanes)) & ~(parts - 1);
    const i32 row = __builtin_amdgcn_readlane(own_row, first);
    exact_gradients<Element, 256, 256, false>(work, row, lane);
    lanes &= ~(((u64{1} << parts) - 1) << first);
  }
}

template <class Element, bool in_rows = false>
FLYDSL_DEVICE void attention_backward_convert(const flydsl_aot_attention_backward_kernarg &) {
  const Arguments a = fresh_arguments();
  const u32 item = __builtin_amdgcn_workitem_id_x();
  const u32 number =
      __builtin_amdgcn_workgroup_id_y() * a->grid_x + __builtin_amdgcn_workgroup_id_x();
  const u32 planes = static_cast<u32>(a->heads_q * (a->cu_seqlens_q ? 1 : a->batches));
  if (number / a->row_tiles >= planes) return;
  const PlaneTile tile(number);

  const i32 head_dim = a->head_dim_qk;
  const u32 groups = static_cast<u32>(head_dim + 7) / 8;
  u32 parts = 1;
  while (parts < groups && parts < 32) parts *= 2;
  const u32 part = item & (parts - 1), rows_at_once = kPrepareItems / parts;
  for (u32 row = item / parts; row < kRowsOfPlaneTile; row += rows_at_once) {
    const i32 of_sequence = tile.first + static_cast<i32>(row);
    const bool exists = tile.has(of_sequence);
    float probe = 0.0f;  // NaN if a sum is not finite
    const bool takes_part = tile.sees_keys(of_sequence);
    const u32 first_row = in_rows ? row : row & ~31u;
    const auto sums = (global_ptr<const float>)a->dq_accumulator +
                      (tile.plane_row + first_row) * a->dq_accumulator_stride;
    const auto to = (global_ptr<char>)a->dq +
                    2 * tile.offset(a->dq_stride_b, a->dq_stride_h, of_sequence, a->dq_stride_s);
    for (i32 column = static_cast<i32>(part) * 8; exists && column < head_dim;
         column += parts * 8) {
      f32x4 x[2] = {};
      if (takes_part) {
        // Of a tile of 32 rows and the class's head dim, four columns of all rows are together: what lanes of
        // `fused` hold of its products.
        const auto from = in_rows ? sums + column : sums + 32 * column + 4 * (row % 32);
        const float scale = in_rows ? 1.0f : a->scale;
        x[0] = *(global_ptr<const f32x4>)from * scale;
        x[1] = *(global_ptr<const f32x4>)(from + (in_rows ? 4 : 4 * 32)) * scale;
#pragma unroll
        for (int i = 0; i < 8; ++i) probe = fma(x[i / 4][i % 4], 0.0f, probe);
      }
      store_elements(
          to, column, head_dim,
          u32x4{round_pair<Element>(x[0][0], x[0][1]), round_pair<Element>(x[0][2], x[0][3]),
                round_pair<Element>(x[1][0], x[1][1]), round_pair<Element>(x[1][2], x[1][3])});
    }
    if constexpr (!in_rows)
      compute_again<Element>(tile, of_sequence, ballot(!(probe == 0.0f)), parts);
  }
}

}  // namespace flydsl::kernels
