// From q . k to scores in units of log2: soft cap, ALiBi, bias, boolean mask (include/flydsl_aot/attention_forward.h),
// and the derivative of a score by scale * q . k.
//
// Rows and keys may lie past the last ones; such pairs are masked afterwards and only must not be looked up.
#pragma once

#include "attention_backward/pairs.hip.h"
#include "common/elements.hip.h"
#include "common/math.hip.h"

namespace flydsl::kernels {

// No score is above its row's lse. In fp32 one of 10^9 may seem to be, by so much that exp2 of it overflows. (A NaN stays one.)
FLYDSL_DEVICE float not_above_0(float above_lse) {
  return above_lse > 0.0f ? 0.0f : above_lse;
}

// What q . k is multiplied by, in units of log2.
FLYDSL_DEVICE float signed_scale_log2() {
  const Arguments args = fresh_arguments();
  return args->scale == 0.0f ? 0.0f : __builtin_copysignf(args->scale_log2, args->scale);
}

// 1 - tanh(x)^2, to 2^-21 of itself as long as it is a normal number.
FLYDSL_DEVICE float slope_of_tanh(float x) {
  const float t = exp2(__builtin_fabsf(x) * (-2.0f * kLog2E));
  const float r = reciprocal(1.0f + t);
  return 4.0f * t * r * r;
}

// Turns products into scores; `slopes` are set where there is a soft cap.
template <class Element, class Pairs, class Floats>
FLYDSL_DEVICE void scores_of_products(const GradientHead &work, const Pairs &pairs, Floats &x,
                                      Floats &slopes) {
  const Arguments args = fresh_arguments();
  const auto each = [&](const auto &f) FLYDSL_INLINED {
#pragma unroll
    for (int i = 0; i < Pairs::count; ++i) x[i] = f(x[i], i);
  };
  if (args->softcap_log2 > 0.0f) {
    const float ratio =
        __builtin_copysignf(args->scale == 0.0f ? 0.0f : args->softcap_ratio, args->scale);
    const float cap = args->softcap_log2;
    each([&](float dot, int i) FLYDSL_INLINED {
      slopes[i] = slope_of_tanh(dot * ratio);
      return cap * tanh(dot * ratio);
    });
  } else {
    const float scale = signed_scale_log2();
    each([&](float dot, int) FLYDSL_INLINED { return dot * scale; });
  }
  if (args->alibi_slopes) {
    const float slope_log2 =
        kLog2E * ((global_ptr<const float>)args->alibi_slopes)[work.batch * args->alibi_stride_b +
                                                               work.head * args->alibi_stride_h];
    each([&](float score, int i) FLYDSL_INLINED {
      const i32 distance = pairs.row(i) + work.diagonal - pairs.key(i);
      return fma(-slope_log2, __builtin_fabsf(static_cast<float>(distance)), score);
    });
  }
  if (args->bias) {
    const i64 first = work.batch * args->bias_stride_b + work.head * args->bias_stride_h;
    const i64 stride_q = args->bias_stride_q, stride_k = args->bias_stride_k;
    const auto place = [&](int i) FLYDSL_INLINED {
      return first + work.real_row(pairs.row(i)) * stride_q +
             work.real_key(pairs.key(i)) * stride_k;
    };
    if (args->bias_is_fp32) {
      const auto bias = (global_ptr<const float>)args->bias;
      each([&](float score, int i) FLYDSL_INLINED { return fma(bias[place(i)], kLog2E, score); });
    } else {
      const auto bias = (global_ptr<const u16>)args->bias;
      each([&](float score, int i)
               FLYDSL_INLINED { return fma(to_float<Element>(bias[place(i)]), kLog2E, score); });
    }
  }
}

// Hides the pairs that the boolean mask does not let through.
template <class Pairs, class Floats>
FLYDSL_DEVICE void hide_masked(const GradientHead &work, const Pairs &pairs, Floats &x) {
  const Arguments args = fresh_arguments();
  if (!args->visible) return;
  const auto visible = (global_ptr<const u8>)args->visible + work.batch * args->visible_stride_b +
                       work.head * args->visible_stride_h;
  const i64 stride_q = args->visible_stride_q, stride_k = args->visible_stride_k;
#pragma unroll
  for (int i = 0; i < Pairs::count; ++i) {
    const i64 place =
        work.real_row(pairs.row(i)) * stride_q + work.real_key(pairs.key(i)) * stride_k;
    x[i] = visible[place] ? x[i] : -kInfinity;
  }
}

}  // namespace flydsl::kernels
