// What the parameters of both passes have in common beyond sequences and masks.
#pragma once

#include <cstdint>

#include "v2src/aotriton/call.h"
#include "v2src/aotriton/sequences.h"
#include "v2src/aotriton/tensors.h"

namespace flydsl::aotriton {

// (B, Hq, Sq, Sk), of padded sequences no more than these.
inline flydsl_aot_tensor scores_tensor(const TensorView<4> &view, const Sequences &sequences) {
  flydsl_aot_tensor tensor = optional(view);
  narrow(&tensor, 2, sequences.q.longest);
  narrow(&tensor, 3, sequences.k.longest);
  return tensor;
}

inline const uint64_t *number(const TensorView<0> &view) {
  return static_cast<const uint64_t *>(view.data_ptr());
}

// Params: of flydsl_aot_attention_forward or _backward, zero-initialised.
template <typename Params>
void set_common(const Call &call, const Sequences &sequences, Params *params) {
  params->struct_size = sizeof *params;
  params->scale = call.scale;
  params->q = sequences.q.tensor(call.q);
  params->k = sequences.k.tensor(call.k);
  params->v = sequences.k.tensor(call.v);
  params->out = sequences.q.tensor(call.out);
  params->cu_seqlens_q = sequences.q.starts;
  params->cu_seqlens_k = sequences.k.starts;
  params->seqused_q = sequences.q.used;
  params->seqused_k = sequences.k.used;
  if (sequences.q.packed) params->max_seqlen_q = sequences.q.longest;
  if (sequences.k.packed) params->max_seqlen_k = sequences.k.longest;
  params->bias = scores_tensor(call.bias, sequences);
  params->dropout_p = call.dropout_p;
  if (call.dropout_p > 0) {  // without dropout callers leave these as they are
    params->dropout_seed_device = number(call.seed);
    params->dropout_offset_device = number(call.offset);
    params->dropout_offset = call.offset_beyond;
  }
}

}  // namespace flydsl::aotriton
