/* Matrix products with an epilogue: D = act(alpha A B + beta C + bias) + residual.
 *
 * For A (M, K), B (K, N), C and D (M, N), alone or batched (batch, M, K), ...:
 *
 *   p[i,j] = sum_k a[i,k] * b[k,j]
 *   z[i,j] = alpha * a_descale[i] * b_descale[j] * p[i,j] + beta * c[i,j] + bias_m[i] + bias_n[j]
 *   aux[i,j] = z[i,j]
 *   d[i,j] = d_scale * (activation(z[i,j]) + residual[i,j])
 *
 * or, with epilogue.gradient, for the way back through a layer, whose forward call wrote aux,
 *
 *   d[i,j] = d_scale * (activation'(aux[i,j]) * z[i,j] + residual[i,j])
 *
 * where what is absent is 1 as a factor and 0 as a term. Beside them, each if it is given, sums of elements as they are stored:
 * gradients of biases, where d is the gradient of a layer's sum z, or a or b in the product that is the gradient of its weight:
 *
 *   d_sum_n[j] = sum_i d[i,j]    d_sum_m[i] = sum_j d[i,j]    a_sum_m[i] = sum_k a[i,k]    b_sum_n[j] = sum_k b[k,j]
 *
 * op(A) and op(B) of BLAS are strides: sizes are always the mathematical
 * ones, in the order above, so a transposed operand, row-major or column-major ones, leading dimensions and batch strides need no
 * flags. A stored row-major as (M, K) has strides {lda, 1}; B stored as (N, K), the weight of a linear layer, has sizes {K, N} and
 * strides {1, ldb}.
 *
 * Arithmetic
 * - fp16, bf16, e4m3 and e5m2 operands: products are exact, sums FP32. fp32 operands: FP32 products and sums; never TF32 or
 *   another narrower form. All that follows the sum is computed in FP32. Each output is rounded once, to nearest even; e4m3
 *   and e5m2 outputs saturate to the largest finite value (infinities too), NaN stays NaN. z is not rounded to aux's dtype
 *   before the activation.
 * - Accuracy: with P = |alpha a_descale b_descale| sum_k |a||b| (float64 on the stored operands), and u the unit roundoff of the
 *   output's dtype (2^-24 fp32, 2^-11 fp16, 2^-8 bf16, 2^-4 e4m3, 2^-3 e5m2; half the distance of subnormals below its normal range),
 *   z is computed to within
 *     e = 2^-23 min(K, 8 sqrt K) P, and where anything but p enters z: + 2^-21 (P + |beta c| + |bias_m| + |bias_n|)
 *   and an output d to within u |d| + |d_scale| (1.13 e + 2^-20 (|activation(z)| + |residual|)), 1 for 1.13 and 0 for 2^-20 where
 *   the activation is none and residual and d_scale are absent; with a gradient |z| in place of |activation(z)|. (The first term of e is twice the usual bound of a sum of K
 *   products in FP32 in any order, or its growth for rounding errors of random sign; 1.13 is the steepest slope of GELU.)
 *   Sums of L elements x are computed to within u |sum| + 2^-23 min(L, 8 sqrt L) sum|x|.
 * - Deterministic: no sum depends on the order in which work-groups run. Equal inputs, sizes, dtypes, strides, alignments and
 *   compute units give equal bits.
 *
 * Derivatives: that of RELU at 0 is 0; at infinities they are their limits, 0 and 1.
 * NaN and infinities: as in IEEE arithmetic on the elements above. A NaN in row i of A makes row i of D NaN, one in column j of B
 * column j; 0 times infinity is NaN; relu(NaN) is NaN. Memory outside the sizes never matters.
 * beta = 0: C is not read, and may be absent. alpha = 0, as in BLAS: A and B are not read, but for their sums. K = 0: p is 0. M, N or
 * the batch 0: success without a launch, but for sums of nothing, which are 0.
 *
 * Sources: the BLAS Technical Forum standard, GEMM; the epilogues of cuBLASLt and hipBLASLt; Hendrycks and Gimpel 2016, GELU. */
#ifndef FLYDSL_AOT_GEMM_H
#define FLYDSL_AOT_GEMM_H

#include "flydsl_aot/library.h"
#include "flydsl_aot/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t flydsl_aot_activation;
enum {
  FLYDSL_AOT_ACTIVATION_NONE = 0,      /* x */
  FLYDSL_AOT_ACTIVATION_RELU = 1,      /* max(x, 0) */
  FLYDSL_AOT_ACTIVATION_GELU = 2,      /* x / 2 (1 + erf(x / sqrt 2)) */
  FLYDSL_AOT_ACTIVATION_GELU_TANH = 3, /* x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) */
  FLYDSL_AOT_ACTIVATION_SILU = 4       /* x / (1 + exp(-x)) */
};

/* What is done to each element of a product before it is stored. Zero-initialised: nothing. A part of parameter structs, and
 * fixed for the life of the ABI. Which fields an operator takes is said in its header; others must be zero. */
typedef struct flydsl_aot_epilogue {
  flydsl_aot_tensor
      bias_n; /* optional: (N) or (batch, N), one value for each column, the bias of a linear layer; fp32, fp16 or bf16 */
  flydsl_aot_tensor
      bias_m; /* optional: (M) or (batch, M), one value for each row; dtypes as bias_n */
  flydsl_aot_activation activation;
  int32_t gradient; /* 1: the activation's derivative at aux, an input then, is a factor of z; else 0 */
  flydsl_aot_tensor
      residual; /* optional: (M, N) or (batch, M, N), added after the activation; fp32, fp16 or bf16 */
  flydsl_aot_tensor
      aux; /* optional output: (M, N), or (batch, M, N) as d; z, which the backward pass of the activation needs; fp32,
              fp16 or bf16. With gradient 1 an input, (M, N) or (batch, M, N), and not optional */
} flydsl_aot_epilogue;

/* Zero-initialise, set struct_size = sizeof(flydsl_aot_gemm_params). */
typedef struct flydsl_aot_gemm_params {
  uint32_t struct_size;
  float alpha; /* no default: 0 is taken as 0 */
  float beta;
  int32_t reserved;    /* must be 0 */
  flydsl_aot_tensor a; /* (M, K) or (batch, M, K): fp32, fp16, bf16, e4m3 or e5m2 */
  flydsl_aot_tensor b; /* (K, N) or (batch, K, N): a's dtype; e4m3 and e5m2 may be mixed */
  flydsl_aot_tensor
      c; /* (M, N) or (batch, M, N): fp32, fp16 or bf16; not looked at when beta is 0 */
  flydsl_aot_tensor d; /* (M, N) or (batch, M, N): fp32, fp16, bf16, e4m3 or e5m2 */
  flydsl_aot_tensor
      a_descale; /* optional, with e4m3 or e5m2 a: fp32 in device memory, (1) for all of it, (M) for each row, or
                                  (batch, 1) or (batch, M) */
  flydsl_aot_tensor
      b_descale; /* optional, with e4m3 or e5m2 b: (1), (N) for each column, (batch, 1) or (batch, N) */
  flydsl_aot_tensor d_scale; /* optional, with e4m3 or e5m2 d: (1), fp32 in device memory */
  flydsl_aot_epilogue epilogue;
  void *
      workspace; /* device memory, 16-byte aligned, as large as the query says (NULL where it says 0); its contents do not
                    matter and are undefined afterwards. Calls that may run at the same time need one each */
  uint64_t workspace_bytes;
  /* Optional outputs: (M) or (N), over all matrices of the batch, too, or (batch, M), (batch, N), for each; fp32, fp16 or bf16, as the
   * matrix must be. */
  flydsl_aot_tensor d_sum_m, d_sum_n, a_sum_m, b_sum_n;
} flydsl_aot_gemm_params;
/* d is batched when a or b is; any other operand of rank one less is the same for all batches, as one whose batch stride is 0 or
 * whose batch size is 1 is. Any strides, in elements, 0 among them where an operand is only read; d and aux may not overlap
 * themselves, each other or an input, except that c may be exactly d or exactly aux (pointer, dtype, sizes and strides),
 * residual exactly d, and aux that is an input exactly d; sums overlap nothing. Every operand is aligned to its element size; no more is required, but fast instances need an a and b with one
 * stride of 1, and 16-byte aligned otherwise.
 * Refused: fp64, FNUZ forms, e8m0, e2m1 and integers (UNSUPPORTED_DTYPE; scales of blocks along K are scaled_gemm's); a and b
 * whose dtypes differ (INVALID_DTYPE); sums of e4m3 or e5m2 matrices (UNSUPPORTED_DTYPE); a descale for a dtype of 16 or 32 bits, a gradient without an activation (INVALID_ARGUMENT) or
 * without aux (INVALID_SHAPE); alpha or beta that is not
 * finite (INVALID_SCALE); M, N, K or the batch above 2^30, or ceil(M / 64) * ceil(N / 64) * batch not below 2^31
 * (UNSUPPORTED_SIZE). */

/* Whether the call would run, with which kernel and with how much workspace (for the current device's compute units; without
 * a device, 256). Data pointers are ignored except for their alignment (NULL counts as fully aligned), and so is the
 * workspace. Needs no device: works on a DEVICE_NONE handle. Returns result->status, or an error about the arguments of the
 * query itself. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_gemm_query(flydsl_aot_handle *handle,
                                                       const flydsl_aot_gemm_params *params,
                                                       flydsl_aot_query_result *result);

/* Calls back once per candidate, best first, with the reason it was taken or refused. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_gemm_explain(flydsl_aot_handle *handle,
                                                         const flydsl_aot_gemm_params *params,
                                                         flydsl_aot_candidate_callback callback,
                                                         void *user);

/* Loads the kernels that the call would use, so that the call itself can be captured into a graph. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_gemm_prefetch(flydsl_aot_handle *handle,
                                                          const flydsl_aot_gemm_params *params);

/* Launches on `stream` (hipStream_t), on the device that owns it; NULL: the current device's null stream. Stream-ordered; no
 * hidden synchronisation or allocation; can be captured into a graph after a prefetch. Data in device memory, scales among
 * them, is read when the kernels run.
 * Errors: INVALID_*, UNSUPPORTED_*, NO_KERNEL, CAPTURE_NEEDS_PREFETCH, DEVICE_ERROR; no output was touched but with
 * DEVICE_ERROR, DEVICE_LOST. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_gemm(flydsl_aot_handle *handle,
                                                 const flydsl_aot_gemm_params *params,
                                                 void *stream);

#ifdef __cplusplus
}
#endif

#endif
