/* Tensors, element types and masks, shared by every operator.
 *
 * Conventions, fixed for the life of the ABI:
 * - Axis order is (B, H, S, D) for dense attention tensors and (H, total, D) for varlen ones: batch,
 *   head, sequence, head dim. Memory order is whatever the strides say: BSHD data is the same four
 *   sizes with other strides.
 * - Sizes and strides count elements and are 64-bit. A stride may be 0 (broadcast) where an operand is
 *   only read; strides are never negative. The stride of an axis of size 0 or 1 is ignored.
 * - Streams are hipStream_t passed as void *; NULL is the null stream of the current device. */
#ifndef FLYDSL_AOT_TYPES_H
#define FLYDSL_AOT_TYPES_H

#include <stdint.h>

#include "flydsl_aot/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Element types. The numbers are ABI. Names say encoding and byte format exactly, since OCP and FNUZ
 * forms of fp8 share bit patterns but not values. */
typedef int32_t flydsl_aot_dtype;
enum {
  FLYDSL_AOT_DTYPE_INVALID = 0,
  FLYDSL_AOT_FP64 = 1,
  FLYDSL_AOT_FP32 = 2,
  FLYDSL_AOT_FP16 = 3,
  FLYDSL_AOT_BF16 = 4,
  FLYDSL_AOT_E4M3 = 10,      /* OCP fp8 e4m3 ("e4m3fn"): max 448, no infinity */
  FLYDSL_AOT_E5M2 = 11,      /* OCP fp8 e5m2 */
  FLYDSL_AOT_E4M3_FNUZ = 12, /* bias one higher, 0x80 is NaN, max 240 (gfx942) */
  FLYDSL_AOT_E5M2_FNUZ = 13,
  FLYDSL_AOT_E8M0 = 14,   /* OCP MX scale: 2^(byte - 127), 255 is NaN */
  FLYDSL_AOT_E2M1X2 = 15, /* OCP fp4, two a byte, low nibble first. Sizes count fp4 values; the packed
                             axis is the last, unless an operator names another, has an even size and
                             stride 1; every other stride counts whole bytes (pairs of values). */
  FLYDSL_AOT_INT32 = 20,
  FLYDSL_AOT_INT64 = 21,
  FLYDSL_AOT_BOOL = 22 /* one byte, 0 is false, anything else true */
};

/* "bf16", "e4m3_fnuz", ...; "invalid" for an unknown number. Static storage, never null. */
FLYDSL_AOT_API const char *flydsl_aot_dtype_name(flydsl_aot_dtype dtype);

/* Bytes of one stored element (E2M1X2: of one byte pair, 1); 0 for an unknown number. */
FLYDSL_AOT_API uint32_t flydsl_aot_dtype_bytes(flydsl_aot_dtype dtype);

#define FLYDSL_AOT_MAX_RANK 8

/* A strided view of device memory that the caller owns. The library reads the struct during the call
 * only; the memory must stay valid until the stream has passed the call. An optional tensor is absent
 * when its rank is 0 (all other fields are then ignored): zero-initialise and leave it. */
typedef struct flydsl_aot_tensor {
  void *data; /* may be NULL when any size is 0, and always in a query */
  flydsl_aot_dtype dtype;
  int32_t rank;
  int64_t sizes[FLYDSL_AOT_MAX_RANK];
  int64_t strides[FLYDSL_AOT_MAX_RANK];
} flydsl_aot_tensor;

/* Which diagonal the bounds of a mask count from when Sq != Sk. There is no default: a mask with a
 * finite bound and FLYDSL_AOT_ANCHOR_NONE is INVALID_MASK. */
typedef int32_t flydsl_aot_anchor;
enum {
  FLYDSL_AOT_ANCHOR_NONE = 0,
  FLYDSL_AOT_ANCHOR_TOP_LEFT = 1,    /* query i sits at key i (PyTorch's is_causal) */
  FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT = 2 /* query i sits at key i + Sk - Sq (FlashAttention's causal) */
};

#define FLYDSL_AOT_UNLIMITED (-1)

/* Query i, sitting at key p(i) on the anchored diagonal, sees the keys p(i) - left <= j <= p(i) + right,
 * both ends included. -1 is unlimited, any other negative is INVALID_MASK. Causal is {-1, 0, anchor};
 * no mask is {-1, -1, any}. A zero-initialised mask is therefore *not* "no mask" but a diagonal without
 * an anchor, and is refused. */
typedef struct flydsl_aot_mask {
  int64_t left;
  int64_t right;
  flydsl_aot_anchor anchor;
  int32_t reserved; /* must be 0 */
} flydsl_aot_mask;

#ifdef __cplusplus
}
#endif

#endif
