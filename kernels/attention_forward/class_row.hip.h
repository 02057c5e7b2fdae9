// A row of the instances without score modifications whose head dims are those of a class or less, for
// the slow path.
#pragma once

#include "attention_forward/queries.hip.h"
#include "common/math.hip.h"

namespace flydsl::kernels {

template <class Element, int head_dim_v, Mask mask>
struct ClassRow {
  static constexpr int elements = (head_dim_v + 63) / 64;
  static constexpr float sink = -kInfinity;
  const Problem<mask> &work;
  i32 row, first_key, last_key;
  float c;

  FLYDSL_DEVICE ClassRow(const Problem<mask> &work, i32 row)
      : work(work),
        row(row),
        first_key(work.first_key(row)),
        last_key(work.last_key(row)),
        c(fresh_arguments()->scale_log2) {}

  // q . k, with the scale's sign.
  FLYDSL_DEVICE float score(i32 key) const {
    const auto q_row = work.q_row(row), k_row = work.k_row(key);
    float score = 0.0f;
#pragma unroll 1
    for (i32 byte = 0; byte < 2 * fresh_arguments()->head_dim_qk; byte += 16) {
      u32x4 q[1] = {load_16_bytes(q_row + byte)};
      const Arguments args = fresh_arguments();
      apply_sign<Element>(args->q_and, args->q_xor, q);
      const u32x4 k = load_16_bytes(k_row + byte);
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
    if (past_the_end(element)) return 0.0f;
    return to_float<Element>(((global_ptr<const u16>)work.v_row(key))[element]);
  }
  FLYDSL_DEVICE void store(u32 element, float x) const {
    if (past_the_end(element)) return;
    ((global_ptr<typename Element::scalar>)work.out_row(row))[element] =
        static_cast<typename Element::scalar>(x);
  }
  FLYDSL_DEVICE void store_lse(float x) const {
    work.store_lse(row, x);
  }

 private:
  static FLYDSL_DEVICE bool past_the_end(u32 element) {
    return element >= static_cast<u32>(fresh_arguments()->head_dim_v);
  }
};

}  // namespace flydsl::kernels
