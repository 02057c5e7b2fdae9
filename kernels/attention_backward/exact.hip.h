// The slow path: the gradients of one own row, computed by the whole wave straight from global memory.
//
// For rows whose fast result is not finite. Pairs that are not visible never take part, not even as 0 * NaN, and weights and
// derivatives are not rounded on the way, so that those beyond fp16's range do no harm.
#pragma once

#include "attention_backward/dropout.hip.h"
#include "attention_backward/scores.hip.h"
#include "attention_forward/general/partial_rows.hip.h"

namespace flydsl::kernels {

template <class Element>
FLYDSL_DEVICE float dot_of_rows(global_ptr<const char> a, global_ptr<const char> b, i32 head_dim) {
  float sum = 0.0f;
#pragma unroll 1
  for (i32 first = 0; first < head_dim; first += 8) {
    const u32x4 x = load_elements(a, first, head_dim), y = load_elements(b, first, head_dim);
#pragma unroll
    for (int i = 0; i < 8; ++i)
      sum = fma(element_of<Element>(x, i), element_of<Element>(y, i), sum);
  }
  return sum;
}

// Of one pair: the weight that meets dout, but for dropout's factor, and the derivative by scale * q . k.
struct PairTerms {
  bool visible;
  float weight, derivative;
};
template <class Element, bool general>
FLYDSL_DEVICE PairTerms terms_of_pair(const GradientHead &work, OnePair pair) {
  float x[1], slope[1] = {1.0f};
  const i32 row = pair.only_row, key = pair.only_key;
  x[0] = dot_of_rows<Element>(work.q_row(row), work.k_row(key), fresh_arguments()->head_dim_qk);
  if (general && fresh_arguments()->score_terms)
    scores_of_products<Element>(work, pair, x, slope);
  else
    x[0] *= signed_scale_log2();
  if (general) hide_masked(work, pair, x);
  if (x[0] == -kInfinity) return {false, 0.0f, 0.0f};
  const float p = exp2(not_above_0(x[0] - work.lse_of_rows()[row]));
  float dp =
      dot_of_rows<Element>(work.dout_row(row), work.v_row(key), fresh_arguments()->head_dim_v);
  float weight = p;
  if (general && fresh_arguments()->dropout_threshold != 0) {
    // A factor of 0, not a weight of 0: what is NaN stays so.
    const bool keep = kept_quadruple(work, dropout_state(), row, key) >> key % 4 & 1;
    weight *= keep ? 1.0f : 0.0f;
    dp *= keep ? fresh_arguments()->dropout_scale : 0.0f;
  }
  return {true, weight, p * (dp - work.delta_of_rows()[row]) * slope[0]};
}

template <class Element, int head_dim_qk, int head_dim_v, bool general, Pass pass>
FLYDSL_DEVICE void exact_gradients(Work<pass> work, i32 own, u32 lane) {
  constexpr int elements_1 = (head_dim_qk + 63) / 64;
  constexpr int elements_2 = pass == Pass::keys ? (head_dim_v + 63) / 64 : 0;
  float sum_1[elements_1] = {}, sum_2[elements_2 + 1] = {};
  const auto value = [](global_ptr<const char> row, u32 element, i32 head_dim) FLYDSL_INLINED {
    return element < static_cast<u32>(head_dim)
               ? to_float<Element>(((global_ptr<const u16>)row)[element])
               : 0.0f;
  };
  const Range others = work.others_of(own);
#pragma unroll 1
  for (u32 head = 0; head < work.heads(); ++head) {
    work.take_head(head);
#pragma unroll 1
    for (i32 first = others.first; first <= others.last; first += kWaveLanes) {
      const i32 other = first + static_cast<i32>(lane);
      PairTerms terms = {false, 0.0f, 0.0f};
      if (other <= others.last)
        terms = terms_of_pair<Element, general>(
            work, pass == Pass::keys ? OnePair{other, own} : OnePair{own, other});
#pragma unroll 1
      for (u64 left = ballot(terms.visible); left != 0; left &= left - 1) {
        const u32 from = __builtin_ctzll(left);
        const float weight = broadcast(terms.weight, from);
        const float derivative = broadcast(terms.derivative, from);
        const i32 at = first + static_cast<i32>(from);
        const auto row_1 = work.other_row_1(at), row_2 = work.other_row_2(at);
#pragma unroll
        for (int i = 0; i < elements_1; ++i)
          sum_1[i] =
              fma(derivative, value(row_1, lane + i * kWaveLanes, fresh_arguments()->head_dim_qk),
                  sum_1[i]);
#pragma unroll
        for (int i = 0; i < elements_2; ++i)
          sum_2[i] = fma(weight, value(row_2, lane + i * kWaveLanes, fresh_arguments()->head_dim_v),
                         sum_2[i]);
      }
    }
  }
  const auto store = [&](bool wanted, global_ptr<char> row, u32 element, i32 head_dim, float x)
                         FLYDSL_INLINED {
                           if (wanted && element < static_cast<u32>(head_dim))
                             ((global_ptr<typename Element::scalar>)row)[element] =
                                 static_cast<typename Element::scalar>(x);
                         };
  const Arguments args = fresh_arguments();
#pragma unroll
  for (int i = 0; i < elements_1; ++i)
    store(pass == Pass::keys ? args->dk : args->dq,
          pass == Pass::keys ? work.dk_row(own) : work.dq_row(own), lane + i * kWaveLanes,
          args->head_dim_qk, args->scale * sum_1[i]);
#pragma unroll
  for (int i = 0; i < elements_2; ++i)
    store(args->dv, work.dv_row(own), lane + i * kWaveLanes, args->head_dim_v,
          args->dropout_scale * sum_2[i]);
}

}  // namespace flydsl::kernels
