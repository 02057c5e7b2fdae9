// A row of a general instance, for the slow path (exact.hip.h).
#pragma once

#include "attention_forward/general/dropout.hip.h"
#include "attention_forward/general/partial_rows.hip.h"
#include "attention_forward/general/scores.hip.h"
#include "attention_forward/queries.hip.h"
#include "common/math.hip.h"

namespace flydsl::kernels {

template <class Element, int head_dim_v>
struct GeneralRow {
  static constexpr int elements = (head_dim_v + kWaveLanes - 1) / kWaveLanes;
  const GeneralWork &work;
  i32 row, first_key, last_key;
  bool has_terms;
  float c, sink;

  FLYDSL_DEVICE GeneralRow(const GeneralWork &work, i32 row)
      : work(work),
        row(row),
        first_key(work.first_key(row)),
        last_key(work.last_key(row)),
        has_terms(fresh_arguments()->score_terms),
        c(has_terms ? 1.0f : fresh_arguments()->scale_log2),
        sink(sink_of(work)) {}

  FLYDSL_DEVICE float score(i32 key) const {
    const auto q_row = work.q_row(row), k_row = work.k_row(work.place_of(key));
    float score = 0.0f;  // q . k, with the scale's sign
#pragma unroll 1
    for (i32 first = 0; first < fresh_arguments()->head_dim_qk; first += 8) {
      const Arguments args = fresh_arguments();
      const i32 count = args->head_dim_qk;
      u32x4 q[1] = {
          load_widened<Element>(q_row, first, count, static_cast<Format>(args->q_format))};
      apply_sign<Element>(args->q_and, args->q_xor, q);
      const u32x4 k =
          load_widened<Element>(k_row, first, count, static_cast<Format>(args->kv_format));
#pragma unroll
      for (int i = 0; i < 8; ++i)
        score = fma(element_of<Element>(q[0], i), element_of<Element>(k, i), score);
    }
    if (has_terms) add_score_terms<Element>(work, row, EachOfOne{score, key});
    hide_masked(work, row, EachOfOne{score, key});
    return score;
  }
  FLYDSL_DEVICE float kept(float weight, i32 key) const {
    const Arguments args = fresh_arguments();
    if (args->dropout_threshold == 0) return weight;
    // A factor of 0, not a weight of 0: a row that is NaN stays so.
    const bool keep = kept_quadruple(work, dropout_state(), row, key) >> key % 4 & 1;
    return weight * (keep ? args->dropout_scale : 0.0f);
  }
  FLYDSL_DEVICE float value(i32 key, u32 element) const {
    const Arguments args = fresh_arguments();
    if (element >= static_cast<u32>(args->head_dim_v - work.column)) return 0.0f;
    const auto row = work.v_row(work.place_of(key));
    const Format format = static_cast<Format>(args->kv_format);
    if (format == Format::wide) return to_float<Element>(((global_ptr<const u16>)row)[element]);
    return pair_of_float8(((global_ptr<const u8>)row)[element], false, format)[0];
  }
  FLYDSL_DEVICE void store(u32 element, float x) const {
    const Arguments args = fresh_arguments();
    if (element >= static_cast<u32>(args->head_dim_v - work.column)) return;
    ((global_ptr<typename Element::scalar>)work.out_row(row))[element] =
        static_cast<typename Element::scalar>(x * value_descale(work));
  }
  FLYDSL_DEVICE void store_lse(float x) const {
    work.store_lse(row, x);
  }
};

}  // namespace flydsl::kernels
