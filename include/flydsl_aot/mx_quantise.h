/* bf16, fp16 or fp32 to OCP MX: every 32 neighbours of a row share a power of two as their scale.
 *
 *   scale[m,b] = clamp(floor(log2(max |x|)) - E + 127, 0, 254)     over x[m, 32 b] .. x[m, 32 b + 31]
 *   out[m,k]   = x[m,k] / 2^(scale[m, k / 32] - 127), rounded to out's dtype, saturating at its largest number
 *
 * with E the exponent of that largest number (8 of e4m3, 15 of e5m2, 2 of e2m1): OCP Microscaling Formats 1.0, 6.3. A block of zeros
 * has scale 0, 2^-127. A block with a NaN or an infinity has scale 255, NaN, and NaN elements (zeros in e2m1, which has none).
 *
 * Rounding
 * - FLYDSL_AOT_ROUND_NEAREST_EVEN.
 * - FLYDSL_AOT_ROUND_STOCHASTIC: with v = |x / 2^..|, u the distance of neighbouring numbers of out's dtype at v (that of subnormals
 *   below its normal range) and r a random number of 20 bits, to floor(2^20 v / u + r) >> 20 units, where 2^20 v / u is cut to an
 *   integer. r is the high 20 bits of word i % 4 of Philox4x32-10 (Salmon et al. 2011) with key seed and counter offset + i / 4, in 64
 *   bits, for element i of x counted in the order of its axes.
 *
 * The result is exact by these definitions. Deterministic; no workspace, no hidden synchronisation or allocation; can be captured into a
 * graph after a prefetch. */
#ifndef FLYDSL_AOT_MX_QUANTISE_H
#define FLYDSL_AOT_MX_QUANTISE_H

#include "flydsl_aot/library.h"
#include "flydsl_aot/scaled_gemm.h"
#include "flydsl_aot/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t flydsl_aot_rounding;
enum { FLYDSL_AOT_ROUND_NEAREST_EVEN = 0, FLYDSL_AOT_ROUND_STOCHASTIC = 1 };

/* Zero-initialise, set struct_size = sizeof(flydsl_aot_mx_quantise_params). */
typedef struct flydsl_aot_mx_quantise_params {
  uint32_t struct_size;
  flydsl_aot_scale_layout
      scale_layout; /* as in scaled_gemm, of `scale`; bytes that pad are not written */
  flydsl_aot_rounding rounding;
  uint32_t reserved;       /* must be 0 */
  uint64_t seed, offset;   /* of stochastic rounding */
  flydsl_aot_tensor x;     /* (M, K) or (batch, M, K): bf16, fp16 or fp32; K a multiple of 32 */
  flydsl_aot_tensor out;   /* the same sizes: e4m3, e5m2 or e2m1x2 */
  flydsl_aot_tensor scale; /* e8m0: (M, K / 32) or (batch, M, K / 32), or shuffled */
} flydsl_aot_mx_quantise_params;
/* The last axis of x and out has stride 1, other strides are free; nothing may overlap. Everything is aligned to its element size.
 * Refused: other element types (UNSUPPORTED_DTYPE), K that is no multiple of 32 or above 2^30, or M or batch * M not below 2^31
 * (UNSUPPORTED_SIZE). An operand B (K, N) of scaled_gemm whose K is contiguous is an out of sizes (N, K). */

/* Whether the call would run, and with which kernel. Data pointers are ignored except for their alignment. Needs no device. */
FLYDSL_AOT_API flydsl_aot_status
flydsl_aot_mx_quantise_query(flydsl_aot_handle *handle, const flydsl_aot_mx_quantise_params *params,
                             flydsl_aot_query_result *result);

/* Calls back once per candidate, best first, with the reason it was taken or refused. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_mx_quantise_explain(
    flydsl_aot_handle *handle, const flydsl_aot_mx_quantise_params *params,
    flydsl_aot_candidate_callback callback, void *user);

/* Loads the kernel that the call would use, so that the call itself can be captured into a graph. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_mx_quantise_prefetch(
    flydsl_aot_handle *handle, const flydsl_aot_mx_quantise_params *params);

/* Launches on `stream` (hipStream_t), on the device that owns it; NULL: the current device's null stream. Empty outputs are success
 * without a launch. Errors: INVALID_*, UNSUPPORTED_*, NO_KERNEL, CAPTURE_NEEDS_PREFETCH, DEVICE_ERROR; no output was touched but
 * with DEVICE_ERROR, DEVICE_LOST. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_mx_quantise(flydsl_aot_handle *handle,
                                                        const flydsl_aot_mx_quantise_params *params,
                                                        void *stream);

#ifdef __cplusplus
}
#endif

#endif
