/* The K largest of each row of logits and their softmax: the gate of a mixture of experts (topk_softmax of vLLM and AITER).
 *
 *   indices[r, i] = the place of the i-th best of x[r, :], weights[r, i] = e(x[r, indices[r, i]]) / sum of e(x[r, j]),
 *   e(v) = exp(v - max of x[r, :])
 *
 * The sum is over all N (softmax, then selection), or with `chosen_only` over the K chosen: softmax of what was selected, which is the
 * same as dividing the weights of the first form by their sum (renormalize).
 *
 * Order: that of flydsl_aot_topk. A NaN, of any sign and payload, is greater than everything else, -0 equals +0, of equal
 * logits the one with the lower index comes first. So indices are always in [0, N), different within a row, and the same in every run.
 *
 * Rules
 * - A NaN or +inf in a row, or -inf alone, makes all weights of the row NaN, as in PyTorch; its indices are as ever.
 * - Computed in fp32: relative error at most (16 + 2 |x - max|) 2^-23, then rounded to nearest even to the type of the weights; exponentials
 *   below 2^-126 count as 0. The same bits in every run.
 * - Stream-ordered; no hidden synchronisation or allocation; no workspace; one pass over x; can be captured into a graph after a
 *   prefetch. */
#ifndef FLYDSL_AOT_TOPK_SOFTMAX_H
#define FLYDSL_AOT_TOPK_SOFTMAX_H

#include "flydsl_aot/library.h"
#include "flydsl_aot/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero-initialise, set struct_size = sizeof(flydsl_aot_topk_softmax_params). */
typedef struct flydsl_aot_topk_softmax_params {
  uint32_t struct_size;
  uint32_t chosen_only; /* 0: weights are shares of all N, 1: of the K chosen */
  flydsl_aot_tensor
      x; /* (M, N) or (M0, M1, N); fp32, fp16 or bf16; N up to 512, its axis contiguous */
  flydsl_aot_tensor
      weights; /* x's shape with K in place of N; fp32 or x's dtype, any strides; K from 0 to 16 and to N */
  flydsl_aot_tensor indices; /* the same shape, int32 or int64, any strides */
} flydsl_aot_topk_softmax_params;
/* M0 * M1 below 2^32. No output may overlap another operand, or itself. */

/* Whether the call would run, and with which kernel. Data pointers are ignored except for their alignment (NULL counts as fully
 * aligned). Needs no device: works on a DEVICE_NONE handle. Returns result->status, or an error about the arguments of the
 * query itself. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_topk_softmax_query(
    flydsl_aot_handle *handle, const flydsl_aot_topk_softmax_params *params,
    flydsl_aot_query_result *result);

/* Calls back once per candidate kernel, best first, with the reason it was taken or refused. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_topk_softmax_explain(
    flydsl_aot_handle *handle, const flydsl_aot_topk_softmax_params *params,
    flydsl_aot_candidate_callback callback, void *user);

/* Loads the kernel the call would use, so that the call itself can be captured into a graph. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_topk_softmax_prefetch(
    flydsl_aot_handle *handle, const flydsl_aot_topk_softmax_params *params);

/* Launches on `stream` (hipStream_t), on the device that owns it; NULL: the current device's null stream.
 * Empty outputs are success without a launch. Errors: INVALID_* about the arguments, UNSUPPORTED_DTYPE, UNSUPPORTED_SIZE,
 * NO_KERNEL, ARCHIVE_*, DEVICE_ERROR; no output was touched but with DEVICE_ERROR. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_topk_softmax(
    flydsl_aot_handle *handle, const flydsl_aot_topk_softmax_params *params, void *stream);

#ifdef __cplusplus
}
#endif

#endif
