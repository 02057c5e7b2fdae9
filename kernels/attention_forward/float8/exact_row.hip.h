// A row of the e4m3 instances for the slow path (exact.hip.h).
#pragma once

#include "attention_forward/float8/work.hip.h"
#include "common/float8.hip.h"
#include "common/memory.hip.h"

namespace flydsl::kernels::float8 {

template <class Element, int head_dim, Mask mask>
struct ExactRow {
  static constexpr int elements = head_dim / kWaveLanes;
  static constexpr float sink = -kInfinity;
  const Work<mask> &work;
  i32 row, first_key, last_key;
  float factor, c;  // of q . k: one that is not finite has to meet each score

  FLYDSL_DEVICE ExactRow(const Work<mask> &work, i32 row)
      : work(work), row(row), first_key(work.first_key(row)), last_key(work.last_key(row)) {
    const Scale scale(work);
    factor = scale.negative ? -1.0f : 1.0f;
    c = scale.magnitude;
    if (!scale.finite()) factor *= c, c = 1.0f;
  }
  FLYDSL_DEVICE float score(i32 key) const {
    const auto q_row = work.q_row(row), k_row = work.k_row(key);
    float sum = 0.0f;
#pragma unroll 1
    for (i32 byte = 0; byte < head_dim; byte += 4) {
      const u32 q = *(global_ptr<const u32>)(q_row + byte),
                k = *(global_ptr<const u32>)(k_row + byte);
#pragma unroll
      for (int high = 0; high < 2; ++high) {
        const f32x2 x = pair_of_float8(q, high != 0, Format::e4m3);
        const f32x2 y = pair_of_float8(k, high != 0, Format::e4m3);
        sum = fma(x[1], y[1], fma(x[0], y[0], sum));
      }
    }
    return sum * factor;
  }
  FLYDSL_DEVICE float kept(float weight, i32) const {
    return weight;
  }
  FLYDSL_DEVICE float value(i32 key, u32 element) const {
    const u32 byte = ((global_ptr<const u8>)work.v_row(key))[element];
    return pair_of_float8(byte, false, Format::e4m3)[0];
  }
  FLYDSL_DEVICE void store(u32 element, float x) const {
    ((global_ptr<typename Element::scalar>)work.out_row(row))[element] =
        static_cast<typename Element::scalar>(x * value_descale(work));
  }
  FLYDSL_DEVICE void store_lse(float x) const {
    work.store_lse(row, x);
  }
};

}  // namespace flydsl::kernels::float8
