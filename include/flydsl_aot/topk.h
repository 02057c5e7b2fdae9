/* The K largest or smallest elements along an axis, with their indices (torch.topk).
 *
 * Order: a NaN, of any sign and payload, is greater than everything else; -0 equals +0; of equal elements the one with the lower
 * index comes first, both of the largest and of the smallest. So there is one right answer, and it is the same in every run, on
 * every device: nothing depends on the order of threads.
 *
 * Rules
 * - values holds the elements themselves, bit by bit: a NaN's payload and the sign of a zero are those of the element at
 *   the index beside it. Results are sorted, the best first, with `any_order` or without.
 * - Stream-ordered; no hidden synchronisation or allocation; can be captured into a graph after a prefetch.
 * - K up to 32 along a contiguous axis takes one pass over memory where there are many rows (from N / 8 on, or N is at most 2,048).
 *   Longer rows are cut into parts of 8,192 elements, so that few long rows use all compute units too; K above 2,048 there, and
 *   axes that are not contiguous, are read up to seven times, a row by one work-group. */
#ifndef FLYDSL_AOT_TOPK_H
#define FLYDSL_AOT_TOPK_H

#include "flydsl_aot/library.h"
#include "flydsl_aot/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero-initialise, set struct_size = sizeof(flydsl_aot_topk_params). */
typedef struct flydsl_aot_topk_params {
  uint32_t struct_size;
  int32_t axis;        /* of x; -1 is the last one, and so on */
  flydsl_aot_tensor x; /* fp32, fp16, bf16 or int32, rank 1 to 8, any strides; N = x.sizes[axis] */
  flydsl_aot_tensor
      values; /* x's shape with K in place of N, x's dtype, any strides; K from 0 to N */
  flydsl_aot_tensor indices; /* the same shape, int32 (N up to 2^31 then) or int64 */
  uint32_t smallest;         /* 0: the largest, 1: the smallest */
  uint32_t any_order;        /* 0: sorted, the best first; 1: the caller needs no order */
  void *
      workspace; /* device memory, 16-byte aligned, as large as the query says; its contents do not matter and are
                      undefined afterwards. Calls that may run at the same time need one each */
  uint64_t workspace_bytes;
} flydsl_aot_topk_params;
/* N below 2^32 - 2, K up to 2^30. Axes beside `axis` whose strides are those of one longer axis count as one; more than three of
 * them, or with more than one 2^32 rows, are refused (UNSUPPORTED_SIZE). No output may overlap another operand, or itself. */

/* Whether the call would run, with which kernel (the first, where two are launched) and with how much workspace. Data pointers
 * are ignored except for their alignment (NULL counts as fully aligned), and so is the workspace. Needs no device: works on a
 * DEVICE_NONE handle. Returns result->status, or an error about the arguments of the query itself. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_topk_query(flydsl_aot_handle *handle,
                                                       const flydsl_aot_topk_params *params,
                                                       flydsl_aot_query_result *result);

/* Calls back once per candidate for the first kernel, best first, with the reason it was taken or refused. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_topk_explain(flydsl_aot_handle *handle,
                                                         const flydsl_aot_topk_params *params,
                                                         flydsl_aot_candidate_callback callback,
                                                         void *user);

/* Loads the kernels the call would use, so that the call itself can be captured into a graph. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_topk_prefetch(flydsl_aot_handle *handle,
                                                          const flydsl_aot_topk_params *params);

/* Launches on `stream` (hipStream_t), on the device that owns it; NULL: the current device's null stream.
 * Empty outputs are success without a launch. Errors: INVALID_* about the arguments, INVALID_WORKSPACE among them,
 * UNSUPPORTED_DTYPE, UNSUPPORTED_SIZE, NO_KERNEL, ARCHIVE_*, DEVICE_ERROR; no output was touched but with DEVICE_ERROR, DEVICE_LOST. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_topk(flydsl_aot_handle *handle,
                                                 const flydsl_aot_topk_params *params,
                                                 void *stream);

#ifdef __cplusplus
}
#endif

#endif
