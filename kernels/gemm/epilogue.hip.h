// What becomes of the sums of products: scales, C, bias, auxiliary output, activation, residual, D
// (include/flydsl_aot/gemm.h). Whether a part is wanted is the same in all lanes.
#pragma once

#include "common/activation.hip.h"
#include "gemm/arguments.hip.h"
#include "gemm/row8.hip.h"

namespace flydsl::kernels::gemm {

// A place in a batch of matrices, `offset` in elements.
FLYDSL_DEVICE global_ptr<const char> place(const void *base, i64 offset, Dtype dtype) {
  return (global_ptr<const char>)base + offset * bytes_of(dtype);
}
FLYDSL_DEVICE global_ptr<char> place(void *base, i64 offset, Dtype dtype) {
  return (global_ptr<char>)base + offset * bytes_of(dtype);
}

// sums[i] of (row, column + i), of which `count` exist, from 1 up.
FLYDSL_DEVICE void finish_row8(u32 batch, i32 row, i32 column, i32 count, float (&sums)[8]) {
  const Arguments args = fresh_arguments();
  const i64 b = batch, m = row, n = column;
  float scale = args->alpha;
  if (args->a_descale)
    scale *= ((global_ptr<const float>)
                  args->a_descale)[b * args->a_descale_stride_b + m * args->a_descale_stride_m];
#pragma unroll
  for (int i = 0; i < 8; ++i) sums[i] *= scale;
  float other[8];
  if (args->b_descale) {
    load_row8(place(args->b_descale, b * args->b_descale_stride_b + n * args->b_descale_stride_n,
                    Dtype::fp32),
              Dtype::fp32, args->b_descale_stride_n, count, other);
#pragma unroll
    for (int i = 0; i < 8; ++i) sums[i] *= other[i];
  }
  if (args->c) {
    const Dtype dtype{args->c_dtype};
    load_row8(
        place(args->c, b * args->c_stride_b + m * args->c_stride_m + n * args->c_stride_n, dtype),
        dtype, args->c_stride_n, count, other);
#pragma unroll
    for (int i = 0; i < 8; ++i) sums[i] = fma(args->beta, other[i], sums[i]);
  }
  if (args->bias_m) {
    const Dtype dtype{args->bias_m_dtype};
    const float bias = load_element(
        place(args->bias_m, b * args->bias_m_stride_b + m * args->bias_m_stride_m, dtype), dtype);
#pragma unroll
    for (int i = 0; i < 8; ++i) sums[i] += bias;
  }
  if (args->bias_n) {
    const Dtype dtype{args->bias_n_dtype};
    load_row8(place(args->bias_n, b * args->bias_n_stride_b + n * args->bias_n_stride_n, dtype),
              dtype, args->bias_n_stride_n, count, other);
#pragma unroll
    for (int i = 0; i < 8; ++i) sums[i] += other[i];
  }
  const Activation activation{args->activation};
  if (args->aux) {
    const Dtype dtype{args->aux_dtype};
    const global_ptr<char> aux =
        place(args->aux, b * args->aux_stride_b + m * args->aux_stride_m + n * args->aux_stride_n,
              dtype);
    if (args->gradient) {
      load_row8(aux, dtype, args->aux_stride_n, count, other);
#pragma unroll
      for (int i = 0; i < 8; ++i) sums[i] *= derivative(other[i], activation);
    } else {
      store_row8(aux, dtype, args->aux_stride_n, count, sums);
    }
  }
  if (activation != Activation::none && !args->gradient) {
#pragma unroll
    for (int i = 0; i < 8; ++i) sums[i] = activated(sums[i], activation);
  }
  if (args->residual) {
    const Dtype dtype{args->residual_dtype};
    load_row8(place(args->residual,
                    b * args->residual_stride_b + m * args->residual_stride_m +
                        n * args->residual_stride_n,
                    dtype),
              dtype, args->residual_stride_n, count, other);
#pragma unroll
    for (int i = 0; i < 8; ++i) sums[i] += other[i];
  }
  if (args->d_scale) {
    const float d_scale = *(global_ptr<const float>)args->d_scale;
#pragma unroll
    for (int i = 0; i < 8; ++i) sums[i] *= d_scale;
  }
  const Dtype dtype{args->d_dtype};
  store_row8(
      place(args->d, b * args->d_stride_b + m * args->d_stride_m + n * args->d_stride_n, dtype),
      dtype, args->d_stride_n, count, sums);
}

// Where the sums of a part of K go: matrices, where all tiles are in parts,
FLYDSL_DEVICE global_ptr<char> partial_of(Arguments args, u32 split, u32 batch, i32 row,
                                          i32 column) {
  const i64 plane = i64{static_cast<i64>(split)} * args->batches + batch;
  const i64 at = (plane * args->m + row) * args->n + column;
  return (global_ptr<char>)args->partials + at * 4;
}

// else tiles, complete ones even where D has no such rows and columns; `row`, `column`: in the tile.
FLYDSL_DEVICE global_ptr<char> partial_of_tile(Arguments args, u32 split, u32 part_tile, u32 row,
                                               u32 column) {
  const i64 plane = i64{static_cast<i64>(split)} * args->part_tiles + part_tile;
  const i64 at = (plane * args->tile_rows + row) * args->tile_columns + column;
  return (global_ptr<char>)args->partials + at * 4;
}

// The sums of (row, column ..) of part `split` of K: to the second pass if all tiles are in parts, else finished here.
FLYDSL_DEVICE void store_sums(u32 split, u32 batch, i32 row, i32 column, float (&sums)[8]) {
  const Arguments args = fresh_arguments();
  const i32 count = args->n - column;
  if (args->splits > 1 && args->whole_tiles == 0)
    store_row8(partial_of(args, split, batch, row, column), Dtype::fp32, 1, count, sums);
  else
    finish_row8(batch, row, column, count, sums);
}

}  // namespace flydsl::kernels::gemm
