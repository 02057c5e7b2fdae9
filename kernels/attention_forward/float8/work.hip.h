// What one work-group of the e4m3 instances computes: rows of bytes, and the factors of the scores and outputs.
#pragma once

#include "attention_forward/general/descale.hip.h"
#include "attention_forward/problem.hip.h"

namespace flydsl::kernels::float8 {

template <bool truth>
struct Truth {
  static constexpr bool value = truth;
};

template <Mask mask>
struct Work : Problem<mask> {
  FLYDSL_DEVICE global_ptr<const char> q_row(i32 row) const {
    const Arguments a = fresh_arguments();
    return (global_ptr<const char>)a->q + this->batch * a->q_stride_b + this->head * a->q_stride_h +
           (static_cast<i64>(this->first_q) + row) * a->q_stride_s;
  }
  FLYDSL_DEVICE global_ptr<const char> k_row(i32 key) const {
    const Arguments a = fresh_arguments();
    return (global_ptr<const char>)a->k + this->batch * a->k_stride_b +
           this->kv_head * a->k_stride_h + (static_cast<i64>(this->first_k) + key) * a->k_stride_s;
  }
  FLYDSL_DEVICE global_ptr<const char> v_row(i32 key) const {
    const Arguments a = fresh_arguments();
    return (global_ptr<const char>)a->v + this->batch * a->v_stride_b +
           this->kv_head * a->v_stride_h + (static_cast<i64>(this->first_k) + key) * a->v_stride_s;
  }
};

// The factor of q . k in units of log2, as a sign for q and a magnitude.
struct Scale {
  bool negative;
  float magnitude;

  FLYDSL_DEVICE explicit Scale(const Head &work) {
    const Arguments args = fresh_arguments();
    float factor = args->scale_log2 * score_descale(work);
    if (args->q_and == 0) factor *= 0.0f;  // the scale is 0
    negative = (args->q_xor != 0) != (factor < 0.0f);
    // Products of e4m3 values are at most 2^18, so that with 2^-100 all weights are 1; but -inf stays hidden.
    constexpr float smallest = 0x1p-100f;
    const float found = __builtin_fabsf(factor);
    magnitude = found < smallest ? smallest : found;
  }
  FLYDSL_DEVICE bool finite() const { return magnitude < kInfinity; }
};

}  // namespace flydsl::kernels::float8
