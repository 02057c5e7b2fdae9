// The epilogue of a whole tile where the derivative of an activation is a factor: D = alpha activation'(aux) sums, 16-bit auxiliary numbers.
// As finish_rows.hip.h, in whose registers there is no room for it. What has more to it goes row by row.
#pragma once

#include "gemm/finish_rows.hip.h"

namespace flydsl::kernels::gemm {

template <u32 rows_apart>
struct GradientRows {
  static constexpr int kTogether = 16 / rows_apart;  // of a lane
  RowsOf aux;
  float alpha;
  u32 last;  // rows on, of the last ones
  Activation function;
  bool is_bf16;
  u32x4 ahead[kTogether];

  // Whether the arguments allow it, for a whole tile.
  static FLYDSL_DEVICE bool takes(Arguments args) {
    const u64 others = (u64)args->c | (u64)args->residual | (u64)args->bias_m | (u64)args->bias_n |
                       (u64)args->a_descale | (u64)args->b_descale | (u64)args->d_scale |
                       static_cast<u64>(args->d_stride_n - 1) |
                       static_cast<u64>(args->aux_stride_n - 1);
    return (args->gradient != 0) & (others == 0) & (Dtype{args->aux_dtype} != Dtype::fp32) &
           ((args->splits == 1) | (args->whole_tiles != 0));
  }

  FLYDSL_DEVICE GradientRows(const Destination &to, u32 first_row, u32 last_row) : last(last_row) {
    const Arguments args = fresh_arguments();
    alpha = in_lanes(args->alpha);
    function = Activation{args->activation};
    is_bf16 = Dtype{args->aux_dtype} == Dtype::bf16;
    aux = RowsOf(args->aux,
                 i64{to.batch} * args->aux_stride_b + i64{to.row} * args->aux_stride_m + to.column,
                 args->aux_stride_m, Dtype{args->aux_dtype});
    load(first_row);
  }
  FLYDSL_DEVICE void load(u32 rows_on) {
#pragma unroll
    for (u32 i = 0; i < kTogether; ++i) ahead[i] = load_16_bytes(aux.row(rows_on + i * rows_apart));
  }

  // The rows that were loaded last, and loads those that follow.
  FLYDSL_DEVICE void finish(const Destination &to, u32 rows_on, float (&sums)[kTogether][8]) {
    // A row after the other, each the first for once: the functions are much code, which is not in a cache yet.
#pragma unroll 1
    for (int row = 0; row < kTogether; ++row) {
      float at[8];
#pragma unroll
      for (int j = 0; j < 8; ++j)
        at[j] = is_bf16 ? element_of<bf16>(ahead[0], j) : element_of<fp16>(ahead[0], j);
      if (function == Activation::relu)
        each<relu_derivative>(at);
      else if (function == Activation::gelu)
        each<gelu_derivative>(at);
      else if (function == Activation::gelu_tanh)
        each<gelu_tanh_derivative>(at);
      else
        each<silu_derivative>(at);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const float done = sums[0][j] * alpha * at[j];
#pragma unroll
        for (int i = 0; i < kTogether - 1; ++i) sums[i][j] = sums[i + 1][j];
        sums[kTogether - 1][j] = done;
      }
#pragma unroll
      for (int i = 0; i < kTogether - 1; ++i) ahead[i] = ahead[i + 1];
    }
    const u32 next = rows_on + kTogether * rows_apart;
    load(next < last ? next : last);
#pragma unroll
    for (u32 i = 0; i < kTogether; ++i) to.store_any(rows_on + i * rows_apart, sums[i]);
  }
  // The last load is for nothing: waited for here, or clang 22 waits where the next tile's main loop uses its registers.
  FLYDSL_DEVICE void end() const {
#pragma unroll
    for (int i = 0; i < kTogether; ++i) asm volatile("" ::"v"(ahead[i]));
  }
  template <float (*function)(float)>
  static FLYDSL_DEVICE void each(float (&at)[8]) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      at[j] = function(at[j]);
      __builtin_amdgcn_sched_barrier(0);  // registers are for one at a time
    }
  }
};

}  // namespace flydsl::kernels::gemm
