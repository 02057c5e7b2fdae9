// attention_forward with every feature by products of 16 x 16 matrices of whatever kind the architecture has: for those that have
// no instances of their own. The algorithm of attention_forward_general.hip.h; tiles of 32 keys, one at a time.
#pragma once

#include "attention_forward/portable/wave.hip.h"

namespace flydsl::kernels {

template <class Element, int head_dim_qk, int head_dim_v>
FLYDSL_DEVICE void attention_forward_portable(const flydsl_aot_attention_forward_kernarg &) {
  using S = portable::Shape<head_dim_qk, head_dim_v>;
  FLYDSL_SHARED static char memory[S::lds_bytes] __attribute__((aligned(16)));
  const auto lds = (lds_ptr<char>)memory;

  GeneralWork work;
  const u32 thread = thread_index();
  if (group_index() == 0 && __builtin_amdgcn_workgroup_id_y() == 0 && thread == 0)
    store_dropout_state();
  if (!find_general_work(work, S::rows)) return;
  work.column = 0;
  const u32 number = wave_uniform(thread / kWaveSize), lane = thread % kWaveSize;

  portable::stage_queries<Element, S>(work, thread, lds + S::q_at);
  group_barrier();
  portable::Wave<Element, S> wave(work, number, lane, lds + S::q_at);

  // Tiles with a key that some row of the work-group sees.
  i32 tile = work.first_key(work.first_row) / portable::kKeys;
  const i32 end = (work.last_key(work.first_row + S::rows - 1) + portable::kKeys) / portable::kKeys;
#pragma unroll 1
  for (; tile < end; ++tile) {
    group_barrier();  // what was there has been read
    portable::stage_keys<Element, S>(work, tile * portable::kKeys, thread, lds);
    portable::stage_values<Element, S>(work, tile * portable::kKeys, thread, lds + S::v_at);
    group_barrier();
    wave.compute(tile, lds, lds + S::v_at);
  }
  group_barrier();
  wave.store(lds + number * (16 * S::out_pitch));
  store_kept(work, wave.row, lane / 16, kMatrixGroups);
}

}  // namespace flydsl::kernels
