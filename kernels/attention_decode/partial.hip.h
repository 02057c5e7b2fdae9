// Partial results in the workspace: of each slot and row a head, then the outputs before division.
#pragma once

#include "attention_decode/arguments.hip.h"

namespace flydsl::kernels {

FLYDSL_DEVICE u64 partial_row(u32 slot, u32 row) {
  return static_cast<u64>(slot) * fresh_arguments()->rows_of_slot + row;
}
// RowState of the segment: reference, sum, highest.
FLYDSL_DEVICE global_ptr<f32x4> partial_head(u64 partial) {
  return (global_ptr<f32x4>)fresh_arguments()->partial_heads + partial;
}
FLYDSL_DEVICE global_ptr<float> partial_out(u64 partial) {
  const Arguments args = fresh_arguments();
  return (global_ptr<float>)args->partial_outs + partial * args->head_dim_v;
}

}  // namespace flydsl::kernels
