// What the versions of the parameters have in common, copied by name.
#pragma once

#include "aotriton/flash.h"
#include "v2src/aotriton/call.h"

namespace flydsl::aotriton {

template <typename Params>
void read_common(const Params &from, Call *to) {
  to->q = from.Q;
  to->k = from.K;
  to->v = from.V;
  to->out = from.Out;
  to->bias = from.B;
  to->scale = from.Sm_scale;
  to->lse = from.L;
  to->side_q.longest = from.Max_seqlen_q;
  to->side_k.longest = from.Max_seqlen_k;
  to->dropout_p = from.dropout_p;
  to->seed = from.philox_seed_ptr;
  to->offset = from.philox_offset1;
  to->offset_beyond = from.philox_offset2;
  to->causal_type = from.causal_type;
  to->window_left = from.window_left;
  to->window_right = from.window_right;
}

// read_sides(from, &call) sets what differs between the versions.
template <typename Params, typename ReadSides>
ForwardCall read_forward(const void *params, ReadSides read_sides) {
  const Params &from = *static_cast<const Params *>(params);
  ForwardCall call;
  call.function = "attn_fwd";
  read_common(from, &call);
  call.alibi = from.A;
  call.seed_out = from.philox_seed_output;
  call.offset_out = from.philox_offset_output;
  call.encoded_softmax = from.encoded_softmax;
  read_sides(from, &call);
  return call;
}

template <typename Params, typename ReadSides>
BackwardCall read_backward(const void *params, ReadSides read_sides) {
  const Params &from = *static_cast<const Params *>(params);
  BackwardCall call;
  call.function = "attn_bwd";
  read_common(from, &call);
  call.dout = from.DO;
  call.dq = from.DQ;
  call.dk = from.DK;
  call.dv = from.DV;
  call.dbias = from.DB;
  call.row_sums = &from.D;
  call.dq_accumulator = &from.DQ_ACC;
  read_sides(from, &call);
  return call;
}

}  // namespace flydsl::aotriton
