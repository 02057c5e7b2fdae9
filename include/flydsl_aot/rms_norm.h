/* Root-mean-square norm of rows (Zhang and Sennrich 2019, "Root Mean Square Layer Normalization").
 *
 *   h[m,n]   = x[m,n], or with a residual round(x[m,n] + residual[m,n]), rounded to x's dtype
 *   rstd[m]  = 1 / sqrt(sum_n h[m,n]^2 / N + eps)
 *   y[m,n]   = h[m,n] * rstd[m] * w[n]            w[n] = weight[n] + weight_offset, or 1 without a weight
 *   out[m,n] = y[m,n], rounded once; or quantised, as below
 *
 * Quantised: out is e4m3 or e5m2 (L, its largest number, is 448 or 57344; E, the exponent of that, 8 or 15), and out_scale says
 * what it is to be multiplied by:
 * - one fp32 number a row: s[m] = max(max_n |y[m,n]| / L, 2^-126);
 * - one E8M0 number for each 32 neighbours of a row, of its last ones for fewer: s = 2^(floor(log2(max |y|)) - E), at least
 *   2^-127 (OCP Microscaling Formats 1.0, 6.3);
 * and out = y / s, rounded to nearest even, saturating. Where the maximum is infinite or NaN, s is NaN, and what belongs to
 * it in out, too.
 *
 * Rules
 * - Sums, products and square roots are in fp32: a sum of squares past its range makes rstd 0, as in PyTorch. A NaN in
 *   a row makes that row of out NaN, and its rstd.
 * - eps has no default: 0 means 0 (a row of zeros is then NaN). FLYDSL_AOT_NORM_DEFAULT_EPS is what PyTorch takes where none is
 *   given.
 * - Deterministic: equal inputs, strides and alignments give equal bits.
 * - Stream-ordered; no workspace, no hidden synchronisation or allocation; can be captured into a graph after a prefetch.
 * - Rows are read from memory once, up to 32,768 elements (narrow alignment: 8,192; quantised: 16,384, or 2,048; of fp32 in each case half, but
 *   32,768 where neither applies); of longer ones the parts that caches lost are read again.
 *
 * Error bounds, of values in the normal range of fp32 and N up to 2^20: rstd within 2^-19 of its value relatively, y within
 * 2^-18, out then rounded to its type; quantised with s within 2^-18 of the definition. */
#ifndef FLYDSL_AOT_RMS_NORM_H
#define FLYDSL_AOT_RMS_NORM_H

#include "flydsl_aot/library.h"
#include "flydsl_aot/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FLYDSL_AOT_NORM_DEFAULT_EPS 1.1920929e-07f /* 2^-23 */

/* Rows: the axes before the last one. Tensors are (M, N) or (M0, M1, N), all alike; per row (M) or (M0, M1). The last axis of x,
 * residual, sum, out and weight has stride 1, all other strides are free. Any size may be 0; N below 2^31, M0 * M1 below 2^32 (M is not limited).
 * Zero-initialise, set struct_size = sizeof(flydsl_aot_rms_norm_params). */
typedef struct flydsl_aot_rms_norm_params {
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
} flydsl_aot_rms_norm_params;
/* No output may overlap another operand otherwise, or itself. Pointers are aligned to the element size; where all of them and
 * all strides of rows are multiples of 16 bytes, of an 8-bit out as if it had x's dtype, the kernel is faster. */

/* Whether the call would run, and with which kernel. Data pointers are ignored except for their alignment (NULL counts as
 * fully aligned) and for what may be in place. Needs no device: works on a DEVICE_NONE handle. Returns
 * result->status, or an error about the arguments of the query itself. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_rms_norm_query(flydsl_aot_handle *handle,
                                                           const flydsl_aot_rms_norm_params *params,
                                                           flydsl_aot_query_result *result);

/* Calls back once per candidate, best first, with the reason it was taken or refused. */
FLYDSL_AOT_API flydsl_aot_status
flydsl_aot_rms_norm_explain(flydsl_aot_handle *handle, const flydsl_aot_rms_norm_params *params,
                            flydsl_aot_candidate_callback callback, void *user);

/* Loads the kernel the call would use, so that the call itself can be captured into a graph. */
FLYDSL_AOT_API flydsl_aot_status
flydsl_aot_rms_norm_prefetch(flydsl_aot_handle *handle, const flydsl_aot_rms_norm_params *params);

/* Launches on `stream` (hipStream_t), on the device that owns it; NULL: the current device's null stream.
 * Empty outputs are success without a launch. Errors: INVALID_* about the arguments, UNSUPPORTED_DTYPE, UNSUPPORTED_SIZE,
 * NO_KERNEL, ARCHIVE_*, DEVICE_ERROR; no output was touched but with DEVICE_ERROR, DEVICE_LOST. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_rms_norm(flydsl_aot_handle *handle,
                                                     const flydsl_aot_rms_norm_params *params,
                                                     void *stream);

#ifdef __cplusplus
}
#endif

#endif
