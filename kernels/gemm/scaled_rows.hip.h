// The epilogue of a whole tile whose sums are only scaled, biased and activated: a lane has the same 8 columns in each row, so
// what belongs to columns is looked up once. It does what finish_row8 of epilogue.hip.h does.
#pragma once

#include "gemm/destination.hip.h"

namespace flydsl::kernels::gemm {

struct ScaledRows {
  float factors[8], bias_n[8];  // of the lane's columns
  // Of the lane's first row; null: there are none.
  global_ptr<const char> row_factors, row_biases;
  i64 row_factor_bytes, row_bias_bytes;
  Dtype bias_dtype;
  Activation activation;

  // Whether the arguments allow it, for a whole tile without parts of K.
  static FLYDSL_DEVICE bool takes(Arguments args) {
    const u64 others = (u64)args->c | (u64)args->residual | (u64)args->aux | (u64)args->d_scale |
                       static_cast<u64>(args->d_stride_n - 1) | (args->splits - 1);
    return others == 0 && args->d_dtype <= static_cast<u32>(Dtype::bf16);
  }

  FLYDSL_DEVICE explicit ScaledRows(const Destination &to) {
    Arguments args = fresh_arguments();
    const i64 batch = to.batch;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      factors[i] = 1.0f;
      bias_n[i] = -0.0f;  // changes nothing, not even the sign of 0
    }
    if (args->b_descale)
      load_row8(place(args->b_descale,
                      batch * args->b_descale_stride_b + to.column * args->b_descale_stride_n,
                      Dtype::fp32),
                Dtype::fp32, args->b_descale_stride_n, 8, factors);
    args = fresh_arguments();
    if (args->bias_n) {
      const Dtype dtype{args->bias_n_dtype};
      load_row8(place(args->bias_n,
                      batch * args->bias_n_stride_b + to.column * args->bias_n_stride_n, dtype),
                dtype, args->bias_n_stride_n, 8, bias_n);
    }
    args = fresh_arguments();
    row_factors = nullptr;
    row_factor_bytes = in_lanes(4 * args->a_descale_stride_m);
    if (args->a_descale)
      row_factors = (global_ptr<const char>)args->a_descale +
                    4 * (batch * args->a_descale_stride_b + to.row * args->a_descale_stride_m);
    args = fresh_arguments();
    bias_dtype = Dtype{args->bias_m_dtype};
    row_biases = nullptr;
    row_bias_bytes = in_lanes(args->bias_m_stride_m * bytes_of(bias_dtype));
    if (args->bias_m)
      row_biases = place(
          args->bias_m, batch * args->bias_m_stride_b + to.row * args->bias_m_stride_m, bias_dtype);
    activation = Activation{args->activation};
  }

  // `alpha` times them and what belongs to the row that many after the first.
  FLYDSL_DEVICE void apply(u32 rows_on, float alpha, float (&sums)[8]) const {
    float factor = alpha, bias = -0.0f;
    if (row_factors) factor *= *(global_ptr<const float>)(row_factors + rows_on * row_factor_bytes);
    if (row_biases) bias = load_element(row_biases + rows_on * row_bias_bytes, bias_dtype);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      sums[i] = sums[i] * factor * factors[i];
      sums[i] = sums[i] + bias + bias_n[i];
    }
    // One jump a row, not one an element.
    if (activation == Activation::relu)
      each_of<relu>(sums);
    else if (activation == Activation::gelu)
      each_of<gelu>(sums);
    else if (activation == Activation::gelu_tanh)
      each_of<gelu_tanh>(sums);
    else if (activation == Activation::silu)
      each_of<silu>(sums);
  }
  template <float (*function)(float)>
  static FLYDSL_DEVICE void each_of(float (&values)[8]) {
#pragma unroll
    for (int i = 0; i < 8; ++i) values[i] = function(values[i]);
  }
};

}  // namespace flydsl::kernels::gemm
