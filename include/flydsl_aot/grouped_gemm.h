/* Many matrix products in one launch, of groups whose sizes only the device knows: the layers of a mixture of experts.
 *
 * PyTorch's torch.nn.functional.grouped_mm, and scaled_grouped_mm with MXFP8 operands. G groups share one axis, cut at offsets[0], offsets[1], ... in device memory:
 * group g has the indices begin(g) <= x < end(g) of it, where end(g) = offsets[g] and begin(g) = end(g - 1), begin(0) = 0. Which
 * axis it is follows from the ranks of a and b:
 *
 *   a        b        d        groups along
 *   (M, K)   (G,K,N)  (M, N)   rows:    d[i,:]   = a[i,:] b[g] + bias[g]              i in group g    a layer, forward
 *   (G,M,K)  (K, N)   (M, N)   columns: d[:,j]   = a[g] b[:,j] + bias                 j in group g
 *   (M, K)   (K, N)   (G,M,N)  K:       d[g,:,:] = a[:,k] b[k,:] + bias[g], over k in group g         its weight's gradient
 *   (G,M,K)  (G,K,N)  (G,M,N)  none:    d[g]     = a[g] b[g] + bias[g]; without offsets
 *
 * Sizes are the mathematical ones in these orders whatever the memory order: a weight stored (G, N, K) is a b of sizes
 * (G, K, N) and strides {N * K, 1, K}; the transposed gradient of a layer's output is an a with strides {1, ld}.
 *
 * MXFP8: where a and b are e4m3 or e5m2, every 32 neighbours along K share a power of two as their scale (OCP MX, as in
 * flydsl_aot/scaled_gemm.h): element k of row i of a counts as a[i,k] 2^(a_scale[i, k / 32] - 127), of column j of b as
 * b[k,j] 2^(b_scale[j, k / 32] - 127). Rows, columns and blocks of scales are counted through all groups, as those of a and b are; where
 * groups are along K, a block that a group's end cuts has the same scale in both.
 *
 * Rules
 * - Rows, or columns, past the last offset belong to no group: d keeps there what it has. So do those of a group that is empty.
 *   Where groups are along K, a group that is empty has a product of 0: its d is 0, or the bias.
 * - Offsets are meant to ascend from 0 to at most the size of the axis. Others are no error, since no host sees them,
 *   and touch no memory outside the tensors: offsets count as min(max(offsets[0], ..., offsets[g], 0), size of the axis). One
 *   that is below an earlier one, or below 0, so ends an empty group, and one beyond the axis ends with it.
 * - Arithmetic: products, with their scales, are exact, sums FP32, the bias is added in FP32, the result rounded once, to
 *   nearest even. Accuracy: with P = sum_k |a||b| over the K of the group (float64 on the stored operands) and u the unit roundoff
 *   of d's dtype (2^-24 fp32, 2^-11 fp16, 2^-8 bf16; half the distance of subnormals below its normal range), an element lies
 *   within u |d| + 2^-23 min(K, 8 sqrt K) P, and with bias + 2^-21 (P + |bias|), of the exact one; with
 *   MXFP8 + 2^-126: matrix instructions may flush what lies below FP32's normal range.
 * - NaN and infinities as in IEEE arithmetic, within a group: nothing of another group, or of what no group has, matters. A scale byte
 *   255 is NaN and makes all that its block takes part in NaN; 0 is 2^-127.
 * - Deterministic: equal inputs, sizes, dtypes, strides, alignments and compute units give equal bits. A group's result does not
 *   depend on the other groups.
 * - One launch, whatever the number of groups: the work-groups, as many as the compute units hold, find their tiles in the
 *   offsets when they run. Stream-ordered; no hidden synchronisation or allocation, no host copy of the offsets; can be captured
 *   into a graph after a prefetch. */
#ifndef FLYDSL_AOT_GROUPED_GEMM_H
#define FLYDSL_AOT_GROUPED_GEMM_H

#include "flydsl_aot/library.h"
#include "flydsl_aot/scaled_gemm.h" /* flydsl_aot_scale_layout */
#include "flydsl_aot/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero-initialise, set struct_size = sizeof(flydsl_aot_grouped_gemm_params). */
typedef struct flydsl_aot_grouped_gemm_params {
  uint32_t struct_size;
  flydsl_aot_scale_layout scale_layout; /* of both scales; 0 without */
  flydsl_aot_tensor a;                  /* fp16, bf16, e4m3 or e5m2; shapes as above */
  flydsl_aot_tensor a_scale; /* of e4m3 and e5m2: e8m0, (M, K / 32), or (G, M, K / 32) if a has groups, or as scale_layout says */
  flydsl_aot_tensor b;       /* a's dtype; e4m3 or e5m2 with an a of either */
  flydsl_aot_tensor b_scale; /* likewise (N, K / 32), or (G, N, K / 32) if b has groups */
  flydsl_aot_tensor d; /* fp16, bf16 or fp32, whatever a's is; may not overlap an input or itself */
  flydsl_aot_tensor
      offsets; /* (G), int32 or int64 in device memory; absent where a and b both have rank 3 */
  flydsl_aot_tensor
      bias; /* optional: (N), or (G, N) unless groups are along columns; fp16, bf16 or fp32 */
  void *
      workspace; /* device memory, 16-byte aligned, as large as the query says (NULL where it says 0); its contents do not
                    matter and are undefined afterwards. Calls that may run at the same time need one each */
  uint64_t workspace_bytes;
} flydsl_aot_grouped_gemm_params;
/* Any strides, in elements, 0 among them where an operand is only read; every operand is aligned to its element size. No more is
 * required; fast instances need an a and b with one stride of 1, and 16-byte aligned otherwise; those of MXFP8 K contiguous in both, a multiple of
 * 256 (128 with shuffled scales), 4-byte aligned scales, and groups along rows or none (plain scales: or columns). Shuffled scales are dense
 * (scaled_gemm.h); what pads them may hold anything.
 * Any size may be 0: K = 0 gives products of 0, no element of d success without a launch; G = 0 leaves d as it is.
 * Refused: other dtypes of a (UNSUPPORTED_DTYPE; e2m1x2 is scaled_gemm's, e4m3 and e5m2 with scales of rows gemm's); e4m3 and e5m2 without scales
 * (INVALID_SHAPE), other dtypes with them (INVALID_ARGUMENT); with MXFP8 a K that is no multiple of 32 (UNSUPPORTED_SIZE); shuffled scales that are not
 * dense (INVALID_STRIDE); a size or G above 2^30; and, with m = ceil(M / 16) (+ G with groups along rows),
 * n = ceil(N / 16) (+ G along columns), m * n (* G along K or none) not below 2^31 (UNSUPPORTED_SIZE). */

/* Whether the call would run, with which kernel and with how much workspace. Data pointers are ignored except for their
 * alignment (NULL counts as fully aligned), and so is the workspace. Needs no device: works on a DEVICE_NONE handle. Returns
 * result->status, or an error about the arguments of the query itself. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_grouped_gemm_query(
    flydsl_aot_handle *handle, const flydsl_aot_grouped_gemm_params *params,
    flydsl_aot_query_result *result);

/* Calls back once per candidate, best first, with the reason it was taken or refused. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_grouped_gemm_explain(
    flydsl_aot_handle *handle, const flydsl_aot_grouped_gemm_params *params,
    flydsl_aot_candidate_callback callback, void *user);

/* Loads the kernel that the call would use, so that the call itself can be captured into a graph. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_grouped_gemm_prefetch(
    flydsl_aot_handle *handle, const flydsl_aot_grouped_gemm_params *params);

/* Launches on `stream` (hipStream_t), on the device that owns it; NULL: the current device's null stream.
 * Errors: INVALID_*, UNSUPPORTED_*, NO_KERNEL, CAPTURE_NEEDS_PREFETCH, DEVICE_ERROR; no output was touched but with
 * DEVICE_ERROR, DEVICE_LOST. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_grouped_gemm(
    flydsl_aot_handle *handle, const flydsl_aot_grouped_gemm_params *params, void *stream);

#ifdef __cplusplus
}
#endif

#endif
