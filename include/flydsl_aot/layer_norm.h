/* Layer norm of rows (Ba, Kiros and Hinton 2016, "Layer Normalization").
 *
 *   h[m,n]   = x[m,n], or with a residual round(x[m,n] + residual[m,n]), rounded to x's dtype
 *   mean[m]  = sum_n h[m,n] / N
 *   var[m]   = sum_n (h[m,n] - mean[m])^2 / N
 *   rstd[m]  = 1 / sqrt(var[m] + eps)
 *   y[m,n]   = (h[m,n] - mean[m]) * rstd[m] * w[n] + b[n]
 *              w[n] = weight[n] + weight_offset, or 1 without a weight; b[n] = bias[n], or 0
 *   out[m,n] = y[m,n], rounded once; or quantised with out_scale, as in rms_norm.h
 *
 * Rules
 * - fp32 throughout. The mean has a correction of its own and deviations are squared, so neither is lost where the spread of a
 *   row is small against its mean; elements that are all equal have deviations of exactly 0.
 * - A NaN or an infinity in a row makes that row of out NaN, its mean and its rstd. Squares of deviations whose sum is past fp32's
 *   range make rstd 0.
 * - eps has no default: 0 means 0 (a row of equal elements is then NaN). FLYDSL_AOT_LAYER_NORM_DEFAULT_EPS is what PyTorch takes
 *   where none is given.
 * - Deterministic: equal inputs, strides and alignments give equal bits.
 * - Stream-ordered; no workspace, no hidden synchronisation or allocation; can be captured into a graph after a prefetch.
 * - Rows are read from memory once, up to 32,768 elements (narrow alignment: 2,048; quantised: 4,096, or 2,048; of fp32 in each
 *   case half); of longer ones the parts that caches lost are read again.
 *
 * Error bounds, of values in the normal range of fp32 and N up to 2^20, with s = sqrt(var): mean within 2^-23 * |mean| +
 * 2^-19 * s, rstd within 2^-19 of its value relatively, y within 2^-18 * ((|h - mean| + s) * rstd * |w| + |b|), out then rounded to its type;
 * quantised with out_scale within the largest such error of what it stands for. */
#ifndef FLYDSL_AOT_LAYER_NORM_H
#define FLYDSL_AOT_LAYER_NORM_H

#include "flydsl_aot/library.h"
#include "flydsl_aot/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FLYDSL_AOT_LAYER_NORM_DEFAULT_EPS 1e-5f

/* Rows: the axes before the last one. Tensors are (M, N) or (M0, M1, N), all alike; per row (M) or (M0, M1). The last axis of x,
 * residual, sum, out, weight and bias has stride 1, all other strides are free. Any size may be 0; N below 2^31, M0 * M1 below 2^32 (M is not limited).
 * Zero-initialise, set struct_size = sizeof(flydsl_aot_layer_norm_params). */
typedef struct flydsl_aot_layer_norm_params {
  uint32_t struct_size;
  float eps;                /* finite, 0 or more */
  flydsl_aot_tensor x;      /* fp32, fp16 or bf16 */
  flydsl_aot_tensor weight; /* optional: (N), fp32, fp16 or bf16 */
  float
      weight_offset; /* 0, or 1: Gemma's weights, which are stored less 1. Must be 0 without a weight */
  uint32_t reserved;          /* must be 0 */
  flydsl_aot_tensor residual; /* optional: x's shape and dtype */
  flydsl_aot_tensor
      sum; /* optional, with a residual: h; x's shape and dtype. May be x or the residual itself: the same
                                 pointer and strides */
  flydsl_aot_tensor out; /* x's shape; x's dtype, e4m3 or e5m2. May be x itself, unless sum is */
  flydsl_aot_tensor
      out_scale; /* with an e4m3 or e5m2 out: fp32, one a row; or e8m0, x's shape with ceil(N / 32) for N */
  flydsl_aot_tensor rstd; /* optional: fp32, one a row */
  flydsl_aot_tensor mean; /* the same */
  flydsl_aot_tensor bias; /* optional: (N), fp32, fp16 or bf16; with a weight or without */
} flydsl_aot_layer_norm_params;
/* No output may overlap another operand otherwise, or itself. Pointers are aligned to the element size; where all of them and
 * all strides of rows are multiples of 16 bytes, of an 8-bit out as if it had x's dtype, the kernel is faster. */

/* Whether the call would run, and with which kernel. Data pointers are ignored except for their alignment (NULL counts as
 * fully aligned) and for what may be in place. Needs no device: works on a DEVICE_NONE handle. Returns
 * result->status, or an error about the arguments of the query itself. */
FLYDSL_AOT_API flydsl_aot_status
flydsl_aot_layer_norm_query(flydsl_aot_handle *handle, const flydsl_aot_layer_norm_params *params,
                            flydsl_aot_query_result *result);

/* Calls back once per candidate, best first, with the reason it was taken or refused. */
FLYDSL_AOT_API flydsl_aot_status
flydsl_aot_layer_norm_explain(flydsl_aot_handle *handle, const flydsl_aot_layer_norm_params *params,
                              flydsl_aot_candidate_callback callback, void *user);

/* Loads the kernel the call would use, so that the call itself can be captured into a graph. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_layer_norm_prefetch(
    flydsl_aot_handle *handle, const flydsl_aot_layer_norm_params *params);

/* Launches on `stream` (hipStream_t), on the device that owns it; NULL: the current device's null stream.
 * Empty outputs are success without a launch. Errors: INVALID_* about the arguments, UNSUPPORTED_DTYPE, UNSUPPORTED_SIZE,
 * NO_KERNEL, ARCHIVE_*, DEVICE_ERROR; no output was touched but with DEVICE_ERROR, DEVICE_LOST. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_layer_norm(flydsl_aot_handle *handle,
                                                       const flydsl_aot_layer_norm_params *params,
                                                       void *stream);

#ifdef __cplusplus
}
#endif

#endif
