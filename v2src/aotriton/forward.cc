// attn_fwd on flydsl_aot_attention_forward.
#include "flydsl_aot/attention_forward.h"

#include "flydsl_aot/device.h"
#include "v2src/aotriton/error.h"
#include "v2src/aotriton/features.h"
#include "v2src/aotriton/lengths.h"
#include "v2src/aotriton/operators.h"
#include "v2src/aotriton/window.h"

namespace flydsl::aotriton {
namespace {

// Of (B, Hq), or of one batch for all.
flydsl_aot_tensor slopes_of(const TensorView<2> &view) {
  const flydsl_aot_tensor slopes = optional(view);
  return slopes.rank != 0 && slopes.sizes[0] == 1 ? without_first_axis(slopes) : slopes;
}

flydsl_aot_status params_of(const ForwardCall &call, Lengths *lengths_q, Lengths *lengths_k,
                            flydsl_aot_attention_forward_params *params) {
  Sequences sequences;
  flydsl_aot_status status = place_sequences(call, &sequences);
  if (status == FLYDSL_AOT_OK) status = mask_of(call, sequences, &params->mask);
  if (status == FLYDSL_AOT_OK) status = place_lse(call, sequences.q, &params->lse);
  if (status == FLYDSL_AOT_OK) status = lengths_q->separate(call.function, &sequences.q);
  if (status == FLYDSL_AOT_OK) status = lengths_k->separate(call.function, &sequences.k);
  if (status != FLYDSL_AOT_OK) return status;
  if (call.alibi && params->mask.anchor == FLYDSL_AOT_ANCHOR_TOP_LEFT && !has_one_diagonal(sequences)) {
    return refuse(call.function, FLYDSL_AOT_UNSUPPORTED_FEATURE,
                  "ALiBi slopes (A) count from the bottom-right diagonal: with a window from the "
                  "top-left one they are supported where the two are known to be one");
  }
  set_common(call, sequences, params);
  params->alibi_slopes = slopes_of(call.alibi);
  if (call.dropout_p > 0) {
    params->dropout_seed_out = static_cast<uint64_t *>(call.seed_out.data_ptr());
    params->dropout_offset_out = static_cast<uint64_t *>(call.offset_out.data_ptr());
  }
  return FLYDSL_AOT_OK;
}

}  // namespace

flydsl_aot_status forward(const ForwardCall &call, Backend backend, hipStream_t stream) {
  flydsl_aot_handle *handle = nullptr;
  flydsl_aot_status status = shared_handle(backend, &handle);
  if (status != FLYDSL_AOT_OK) return status;
  flydsl_aot_attention_forward_params params{};
  Lengths lengths_q(handle, stream), lengths_k(handle, stream);
  status = params_of(call, &lengths_q, &lengths_k, &params);
  if (status != FLYDSL_AOT_OK) return status;
  status = flydsl_aot_attention_forward(handle, &params, stream);
  if (status != FLYDSL_AOT_OK || !call.encoded_softmax) return status;
  return write_kept(call.function, call.encoded_softmax, call.dropout_p, call.seed, call.offset,
                    call.offset_beyond, stream);
}

}  // namespace flydsl::aotriton
