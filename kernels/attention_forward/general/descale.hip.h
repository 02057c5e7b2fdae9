// What the values of 8-bit tensors are multiplied by, a number per tensor or per head.
#pragma once

#include "attention_forward/head.hip.h"

namespace flydsl::kernels {

FLYDSL_DEVICE float descale_at(const float *from, i64 element) {
  return from ? ((global_ptr<const float>)from)[element] : 1.0f;
}

// Of products q . k.
FLYDSL_DEVICE float score_descale(const Head &work) {
  const Arguments args = fresh_arguments();
  const u32 q_head = args->q_descale_by_kv ? work.kv_head : work.head;
  return descale_at(args->q_descale,
                    work.batch * args->q_descale_stride_b + q_head * args->q_descale_stride_h) *
         descale_at(args->k_descale, work.batch * args->k_descale_stride_b +
                                         work.kv_head * args->k_descale_stride_h);
}

// Of v, and so of the output.
FLYDSL_DEVICE float value_descale(const Head &work) {
  const Arguments args = fresh_arguments();
  return descale_at(args->v_descale, work.batch * args->v_descale_stride_b +
                                         work.kv_head * args->v_descale_stride_h);
}

}  // namespace flydsl::kernels
