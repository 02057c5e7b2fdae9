// attention_backward, dsinks: a work-group a head, which sums - exp2(sink - row_lse) * row_delta over the head's planes
// (planes.hip.h). Every work-item has its rows in ascending order, then work-items are summed in a tree: a fixed order.
#pragma once

#include "attention_backward/planes.hip.h"
#include "common/lds.hip.h"
#include "common/math.hip.h"

namespace flydsl::kernels {

constexpr u32 kSinksItems = 1024;
constexpr u32 kRowsOfItem = 2;  // at once; a wave's 128 rows lie in one plane

FLYDSL_DEVICE void gradient_of_sinks(const flydsl_aot_attention_backward_kernarg &) {
  constexpr u32 kWaves = kSinksItems / kWaveLanes;
  static_assert(kWaveLanes * kRowsOfItem == kRowsOfPlaneTile);
  FLYDSL_SHARED static float sums[kWaves];
  const Arguments a = fresh_arguments();
  const u32 item = __builtin_amdgcn_workitem_id_x(), lane = item % kWaveLanes;
  const u32 wave = uniform(item / kWaveLanes);
  const u32 head =
      __builtin_amdgcn_workgroup_id_y() * a->grid_x + __builtin_amdgcn_workgroup_id_x();
  if (head >= static_cast<u32>(a->heads_q)) return;

  const float sink = ((global_ptr<const float>)a->sinks)[head * a->sinks_stride_h] * kLog2E;
  // The tiles of 128 rows of all planes of the head.
  const u32 tiles_of_plane = static_cast<u32>(a->rows_stride / kRowsOfPlaneTile);
  const u64 tiles = u64{tiles_of_plane} * (a->cu_seqlens_q ? 1u : static_cast<u32>(a->batches));
  float sum = 0.0f;
#pragma unroll 4
  for (u64 tile = wave; tile < tiles; tile += kWaves) {
    const u64 batch = a->cu_seqlens_q ? 0 : tile / tiles_of_plane;
    const i64 first = (batch * static_cast<u32>(a->heads_q) + head) * a->rows_stride +
                      (tile - batch * tiles_of_plane) * kRowsOfPlaneTile + lane * kRowsOfItem;
    const f32x2 lse = *(global_ptr<const f32x2>)((global_ptr<const float>)a->row_lse + first);
    const f32x2 delta = *(global_ptr<const f32x2>)((global_ptr<const float>)a->row_delta + first);
#pragma unroll
    for (u32 i = 0; i < kRowsOfItem; ++i) {
      // exp2(inf - inf) would be NaN; a row that takes no part adds nothing whatever the sink is.
      // (No sink is above its row's lse.)
      const float above_lse = sink - lse[i];
      const float weight = lse[i] == kInfinity ? 0.0f : exp2(above_lse > 0.0f ? 0.0f : above_lse);
      sum = fma(-weight, delta[i], sum);
    }
  }
  sum = sum_of_wave(sum, lane);
  if (lane == 0) sums[wave] = sum;
  barrier();
  if (wave != 0) return;
  float of_wave = 0.0f;
  if (lane < kWaves) of_wave = sums[lane];
  of_wave = sum_of_wave(of_wave, lane);
  if (lane == 0) ((global_ptr<float>)a->dsinks)[head * a->dsinks_stride_h] = of_wave;
}

}  // namespace flydsl::kernels
