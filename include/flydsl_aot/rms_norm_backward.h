/* Gradients of the root-mean-square norm of rows, rms_norm.h (Zhang and Sennrich 2019, "Root Mean Square Layer Normalization").
 *
 *   z[m,n]       = h[m,n] * rstd[m]           h and rstd: of the forward call, h what it normalised: x, or its sum
 *   g[m,n]       = dout[m,n] * w[n]           w[n] = weight[n] + weight_offset, or 1 without a weight
 *   c[m]         = sum_n g[m,n] * z[m,n] / N
 *   dx[m,n]      = rstd[m] * (g[m,n] - z[m,n] * c[m]) + dsum[m,n], rounded once; dsum 0 where there is none
 *   dweight[n]   = sum_m dout[m,n] * z[m,n], rounded once
 *
 * which follows from d rstd / d h[m,n] = -rstd^3 h[m,n] / N. The gradient of the residual that the forward call added is dx,
 * too; dsum is the gradient that reaches its output sum from elsewhere.
 *
 * Rules
 * - fp32 throughout, but that sums over slots of rows are added in fp64. z is made of h and rstd as they are given: what they lost
 *   when they were rounded is no part of the error bounds.
 * - A NaN or an infinity in a row of h or dout makes that row of dx NaN, and the elements of dweight it belongs to NaN or infinite.
 * - dx and dweight are each optional; one of them must be there. Without rows dweight is 0.
 * - Deterministic: equal inputs, strides and alignments give equal bits; no atomic sums. Rows are added in slots of up to 128 rows a team of
 *   threads, slots in a fixed order.
 * - Stream-ordered; no hidden synchronisation or allocation; can be captured into a graph after a prefetch.
 * - h and dout are read from memory once where dx is wanted and rows have up to 32,768 elements, fp32 16,384, on gfx950
 *   (other GPUs: 8,192, fp32 4,096; narrow alignment: 2,048, fp32 1,024), else twice. One call is two or three launches: dx and sums of slots; their totals.
 *
 * Error bounds, of values in the normal range of fp32, N up to 2^20 and M up to 2^32: dx within
 *   2^-18 * rstd * (|g| + |z| * sum_n |g * z| / N) + 2^-23 * |dsum|, dweight within 2^-17 * sum_m |dout * z|, then rounded to their types. */
#ifndef FLYDSL_AOT_RMS_NORM_BACKWARD_H
#define FLYDSL_AOT_RMS_NORM_BACKWARD_H

#include "flydsl_aot/library.h"
#include "flydsl_aot/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows: the axes before the last one. Tensors are (M, N) or (M0, M1, N), all alike; per row (M) or (M0, M1). The last axis of all
 * tensors with columns has stride 1, all other strides are free. Any size may be 0; N below 2^31, M0 * M1 below 2^32 (M is not limited).
 * Zero-initialise, set struct_size = sizeof(flydsl_aot_rms_norm_backward_params). */
typedef struct flydsl_aot_rms_norm_backward_params {
  uint32_t struct_size;
  float weight_offset;      /* 0, or 1, as the forward call had it. Must be 0 without a weight */
  flydsl_aot_tensor x;      /* h: fp32, fp16 or bf16 */
  flydsl_aot_tensor weight; /* optional: (N), fp32, fp16 or bf16; read where dx is wanted */
  flydsl_aot_tensor rstd;   /* fp32, one a row: the forward call's */
  flydsl_aot_tensor dout;   /* x's shape and dtype */
  flydsl_aot_tensor dsum;   /* optional, where dx is wanted: x's shape and dtype */
  flydsl_aot_tensor
      dx; /* optional: x's shape and dtype. May be x, dout or dsum itself: the same pointer and strides */
  flydsl_aot_tensor dweight; /* optional: (N), fp32, fp16 or bf16; also without a weight */
  void *
      workspace; /* device memory, 16-byte aligned; what it holds does not matter. NULL if none is needed */
  uint64_t workspace_bytes; /* at least the query's */
} flydsl_aot_rms_norm_backward_params;
/* No output may overlap another operand otherwise, or itself; nor may the workspace, which two calls that may run at the same time must
 * not share. Pointers are aligned to the element size; where all of them and all strides of rows are multiples of 16 bytes the kernels
 * are faster. */

/* Whether the call would run, how much workspace it needs (which data pointers do not change), and with which kernel, of several the one
 * that writes dx. Data pointers are ignored except for their alignment (NULL counts as fully aligned) and for what may be in place. Needs
 * no device: works on a DEVICE_NONE handle. Returns result->status, or an error about the arguments of the query itself. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_rms_norm_backward_query(
    flydsl_aot_handle *handle, const flydsl_aot_rms_norm_backward_params *params,
    flydsl_aot_query_result *result);

/* Calls back once per candidate for that kernel, best first, with the reason it was taken or refused. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_rms_norm_backward_explain(
    flydsl_aot_handle *handle, const flydsl_aot_rms_norm_backward_params *params,
    flydsl_aot_candidate_callback callback, void *user);

/* Loads the kernels the call would use, so that the call itself can be captured into a graph. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_rms_norm_backward_prefetch(
    flydsl_aot_handle *handle, const flydsl_aot_rms_norm_backward_params *params);

/* Launches on `stream` (hipStream_t), on the device that owns it; NULL: the current device's null stream.
 * Empty outputs are success without a launch. Errors: INVALID_* about the arguments, UNSUPPORTED_DTYPE, UNSUPPORTED_SIZE,
 * NO_KERNEL, ARCHIVE_*, DEVICE_ERROR; no output was touched but with DEVICE_ERROR. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_rms_norm_backward(
    flydsl_aot_handle *handle, const flydsl_aot_rms_norm_backward_params *params, void *stream);

#ifdef __cplusplus
}
#endif

#endif
