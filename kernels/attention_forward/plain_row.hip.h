// A row of the instances without score modifications, for the slow path.
#pragma once

#include "attention_forward/queries.hip.h"
#include "common/math.hip.h"

namespace flydsl::kernels {

template <class Element, int head_dim, Mask mask>
struct PlainRow {
  static constexpr int elements = head_dim / kWaveLanes;
  static constexpr float sink = -kInfinity;
  const Problem<mask> &work;
  i32 row, first_key = 0, last_key;
  float c;

  FLYDSL_DEVICE PlainRow(const Problem<mask> &work, i32 row)
      : work(work), row(row), last_key(work.last_key(row)), c(work.scale_log2) {}

  // q . k, with the scale's sign.
  FLYDSL_DEVICE float score(i32 key) const {
    float score = 0.0f;
#pragma unroll 1
    for (i32 byte = 0; byte < 2 * head_dim; byte += 16) {
      u32x4 q[1] = {load_16_bytes(work.q + row * work.q_row_bytes + byte)};
      apply_sign<Element>(work.q_and, work.q_xor, q);
      const u32x4 k = load_16_bytes(work.k + key * work.k_row_bytes + byte);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        score = fma(element_of<Element>(q[0], i), element_of<Element>(k, i), score);
    }
    return score;
  }
  FLYDSL_DEVICE float kept(float weight, i32) const {
    return weight;
  }
  FLYDSL_DEVICE float value(i32 key, u32 element) const {
    return to_float<Element>(((global_ptr<const u16>)(work.v + key * work.v_row_bytes))[element]);
  }
  FLYDSL_DEVICE void store(u32 element, float x) const {
    ((global_ptr<typename Element::scalar>)(work.out + row * work.out_row_bytes))[element] =
        static_cast<typename Element::scalar>(x);
  }
  FLYDSL_DEVICE void store_lse(float x) const {
    if (work.lse) work.lse[row * work.lse_row_elements] = x;
  }
};

}  // namespace flydsl::kernels
