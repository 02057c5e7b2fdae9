/* Matrix products of OCP MX operands: D = A B + bias, where every 32 neighbours along K share a power of two as their scale.
 *
 * For A (M, K), B (K, N) and D (M, N), alone or batched (batch, M, K), ...:
 *
 *   d[i,j] = sum_k a[i,k] * 2^(a_scale[i, k / 32] - 127) * b[k,j] * 2^(b_scale[j, k / 32] - 127) + bias[j]
 *
 * MXFP8: a and b are each e4m3 or e5m2. MXFP4: both are e2m1. (K, N) are the mathematical sizes of B: stored as (N, K), the weight
 * of a linear layer, it has strides {1, ldb}.
 *
 * Arithmetic
 * - Products with their scales are exact, sums FP32; bias is added in FP32. Each output is rounded once, to nearest even.
 * - Accuracy: with P = sum_k |a 2^.. b 2^..| (float64 on the stored operands) and u the unit roundoff of d's dtype (2^-24 fp32, 2^-11
 *   fp16, 2^-8 bf16; half the distance of subnormals below its normal range), an output is within
 *     u |d| + 2^-23 min(K, 8 sqrt K) P + 2^-126, and with bias + 2^-21 (P + |bias|).
 *   (2^-126: matrix instructions may flush what lies below FP32's normal range.)
 * - Deterministic: no sum depends on the order in which work-groups run. Equal inputs, sizes, dtypes, strides, alignments and
 *   compute units give equal bits.
 *
 * NaN and infinities: as in IEEE arithmetic on the elements above. A scale byte 255 is NaN, and makes all that its block takes part in
 * NaN, elements that are 0 too; 0 is 2^-127. Memory outside the sizes never matters.
 * K = 0: d is bias, or 0. M, N or the batch 0: success without a launch.
 *
 * Source: OCP Microscaling Formats (MX) Specification 1.0. flydsl_aot/mx_quantise.h makes such operands. */
#ifndef FLYDSL_AOT_SCALED_GEMM_H
#define FLYDSL_AOT_SCALED_GEMM_H

#include "flydsl_aot/library.h"
#include "flydsl_aot/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where the scale of row r (of A; of B: column) and block c of 32 along K lies. */
typedef int32_t flydsl_aot_scale_layout;
enum {
  /* Sizes (rows, K / 32) or (batch, rows, K / 32), any strides. What PyTorch's F.scaled_mm passes on AMD (NO_SWIZZLE). */
  FLYDSL_AOT_SCALES_PLAIN = 0,
  /* Shuffled in blocks of 32 rows and 8 columns, as AITER's e8m0_shuffle and hipBLASLt's BLK32_UE8M0_32_8 have them: sizes (R, C) or
   * (batch, R, C) with R = rows rounded up to a multiple of 32 and C = K / 32 to one of 8; dense but for the batch stride, strides
   * {C, 1}. Byte (r / 32 * 32) * C + c / 8 * 256 + c % 4 * 64 + r % 16 * 4 + c % 8 / 4 * 2 + r % 32 / 16 of a matrix. The bytes that
   * pad it may hold anything. */
  FLYDSL_AOT_SCALES_SHUFFLED_32_8 = 1
};

/* Zero-initialise, set struct_size = sizeof(flydsl_aot_scaled_gemm_params). */
typedef struct flydsl_aot_scaled_gemm_params {
  uint32_t struct_size;
  flydsl_aot_scale_layout scale_layout; /* of both scales */
  flydsl_aot_tensor a;                  /* (M, K) or (batch, M, K): e4m3, e5m2 or e2m1x2 */
  flydsl_aot_tensor a_scale;            /* e8m0, sizes as scale_layout says for M rows */
  flydsl_aot_tensor
      b; /* (K, N) or (batch, K, N): e4m3 or e5m2 with an a of either, e2m1x2 with e2m1x2 */
  flydsl_aot_tensor b_scale; /* e8m0, sizes as scale_layout says for N rows */
  flydsl_aot_tensor bias;    /* optional: (N) or (batch, N); fp32, fp16 or bf16 */
  flydsl_aot_tensor d;       /* (M, N) or (batch, M, N): fp32, fp16 or bf16 */
  void *
      workspace; /* device memory, 16-byte aligned, as large as the query says (NULL where it says 0); its contents do not
                    matter and are undefined afterwards. Calls that may run at the same time need one each */
  uint64_t workspace_bytes;
} flydsl_aot_scaled_gemm_params;
/* K is a multiple of 32. d is batched when a or b is; any other operand of rank one less is the same for all batches, as one whose
 * batch stride is 0 is. A scale has the rank of its operand. Strides are free, 0 among them where an operand is only read; d may not
 * overlap itself or an input. e2m1x2: sizes count fp4 values, the packed axis is K, in B too, and has stride 1; all other strides
 * count bytes. Every operand is aligned to its element size; no more is required, but fast instances need K contiguous in a and b, 16-byte
 * aligned otherwise, K a multiple of 256 (128 for e4m3 and e5m2 with shuffled scales, and where M is at most 256), and 4-byte aligned scales.
 * Refused: other element types (UNSUPPORTED_DTYPE; scales of a tensor or its rows are gemm's); e2m1 with another type
 * (INVALID_DTYPE); scales that are not e8m0 (INVALID_DTYPE); K that is no multiple of 32, M, N, K or the batch above 2^30, or
 * ceil(M / 128) * ceil(N / 128) * batch not below 2^31 (UNSUPPORTED_SIZE); an e2m1 operand whose K is not packed, shuffled scales
 * that are not dense (INVALID_STRIDE). */

/* Whether the call would run, with which kernel and with how much workspace (for the current device's compute units; without
 * a device, 256). Data pointers are ignored except for their alignment (NULL counts as fully aligned), and so is the
 * workspace. Needs no device: works on a DEVICE_NONE handle. Returns result->status, or an error about the arguments of the
 * query itself. */
FLYDSL_AOT_API flydsl_aot_status
flydsl_aot_scaled_gemm_query(flydsl_aot_handle *handle, const flydsl_aot_scaled_gemm_params *params,
                             flydsl_aot_query_result *result);

/* Calls back once per candidate, best first, with the reason it was taken or refused. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_scaled_gemm_explain(
    flydsl_aot_handle *handle, const flydsl_aot_scaled_gemm_params *params,
    flydsl_aot_candidate_callback callback, void *user);

/* Loads the kernels that the call would use, so that the call itself can be captured into a graph. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_scaled_gemm_prefetch(
    flydsl_aot_handle *handle, const flydsl_aot_scaled_gemm_params *params);

/* Launches on `stream` (hipStream_t), on the device that owns it; NULL: the current device's null stream. Stream-ordered; no
 * hidden synchronisation or allocation; can be captured into a graph after a prefetch.
 * Errors: INVALID_*, UNSUPPORTED_*, NO_KERNEL, CAPTURE_NEEDS_PREFETCH, DEVICE_ERROR; no output was touched but with
 * DEVICE_ERROR, DEVICE_LOST. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_scaled_gemm(flydsl_aot_handle *handle,
                                                        const flydsl_aot_scaled_gemm_params *params,
                                                        void *stream);

#ifdef __cplusplus
}
#endif

#endif
