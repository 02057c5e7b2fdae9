/* Fused attention of a few queries over a long key-value cache, the decode step of an inference engine.
 *
 * The same function as attention_forward (flydsl_aot/attention_forward.h: formula, rules, accuracy, what NaN and infinities
 * do), for Sq from 1 to 16 queries a sequence:
 *
 *   s[i,j]   = scale * sum_d q[b,h,i,d] * k[b,g,j,d]            g = h / (Hq / Hkv)
 *              then, with softcap, softcap * tanh(s / softcap); then, with ALiBi, - alibi_slopes[b,h] * |p(i) - j|,
 *              p(i) the key at which query i sits (flydsl_aot_mask)
 *   lse[i]   = ln (sum_{j visible} exp(s[i,j]) + exp(sinks[h]), the latter with sinks)
 *   out[i,:] = sum_{j visible} exp(s[i,j] - lse[i]) * v[b,g,j,:]
 *
 * The keys of all sequences are shared equally among the compute units (split-KV, as in Dao et al. 2023, Flash-Decoding),
 * by a plan that the device makes from the lengths it finds; a second kernel puts the parts together. Both are launched by
 * the call, in order, on the stream.
 *
 * Rules beyond those of attention_forward
 * - Deterministic: equal inputs, shapes, strides and lengths give equal bits on devices with equally many compute units. A
 *   sequence's result may depend on the lengths of the others by rounding only, within the stated bounds.
 * - Stream-ordered; no hidden synchronisation or allocation; can be captured into a graph after a prefetch. Lengths and
 *   block numbers are read when the kernels run. */
#ifndef FLYDSL_AOT_ATTENTION_DECODE_H
#define FLYDSL_AOT_ATTENTION_DECODE_H

#include "flydsl_aot/library.h"
#include "flydsl_aot/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero-initialise, set struct_size = sizeof(flydsl_aot_attention_decode_params). */
typedef struct flydsl_aot_attention_decode_params {
  uint32_t struct_size;
  float scale;         /* as in attention_forward: no default, 0 is taken as 0 */
  flydsl_aot_tensor q; /* (B, Hq, Sq, D), fp16 or bf16; Sq from 0 to 16 */
  flydsl_aot_tensor
      k; /* (B, Hkv, Sk, D), q's dtype, e4m3 or e5m2; Hq a multiple of Hkv. Paged: (blocks, Hkv, block size, D) */
  flydsl_aot_tensor
      v; /* (B, Hkv, Sk, Dv), k's dtype. Paged: (blocks, Hkv, block size, Dv). May be part of k */
  flydsl_aot_tensor out; /* (B, Hq, Sq, Dv), q's dtype; may not overlap an input or itself */
  flydsl_aot_tensor lse; /* optional: (B, Hq, Sq), fp32, natural logarithm */
  flydsl_aot_mask
      mask; /* counted from each sequence's own length; a causal one is usually BOTTOM_RIGHT */
  void *
      workspace; /* device memory, 16-byte aligned, as large as the query says; its contents do not matter and
                              are undefined afterwards. Calls that may run at the same time need one each */
  uint64_t workspace_bytes;
  flydsl_aot_tensor
      seqused_k; /* (B), int32 in device memory: keys of sequence b that are in use, from its first; absent:
                                    all. Required with block_table */
  flydsl_aot_tensor
      block_table; /* optional: paged keys and values, (B, blocks of a sequence), int32 in device memory */
  int64_t
      max_seqlen_k; /* with block_table: the longest sequence, or 0: as many keys as the table has room for;
                                    without: 0 */
  float softcap;                  /* above 0: scores are capped as above; 0: not */
  flydsl_aot_tensor alibi_slopes; /* optional: (Hq) or (B, Hq), fp32 */
  flydsl_aot_tensor sinks;        /* optional: (Hq), fp32, as in attention_forward */
  flydsl_aot_tensor
      k_descale; /* what 8-bit k and v are multiplied by: optional, fp32, (1), (Hkv) or (B, Hkv), any axis of size 1
                              broadcast; absent: 1 */
  flydsl_aot_tensor v_descale;
} flydsl_aot_attention_decode_params;
/* Paged keys and values: the block size is a power of two (1, 16, 32, 64, 128, 256 and others), strides are free, so that a
 * cache stored as (blocks, block size, Hkv, D) is only other strides, and the pool may be of any size. Key j of sequence b is
 * row j % block size of block block_table[b, j / block size]. The last axis of block_table has stride 1. Numbers outside
 * [0, blocks) and lengths outside [0, longest] are clamped; no memory outside the tensors is touched, and no key or value
 * that no query sees is read.
 * D and Dv: up to 256 each, multiples of 8, or D up to 576 with Dv up to 512. e4m3 k and v: multiples of 16, above 256 only
 * where v is part of k; e5m2: multiples of 16 up to 128. Where kernels may be compiled (library.h) 16-bit types have D up to 768
 * with Dv up to 512, e4m3 and e5m2 D up to 576 with Dv up to 512. Others are refused (UNSUPPORTED_HEAD_DIM). Memory is read once for
 * both where v is the first Dv elements of k, as in MLA: D above 256, the same pointer, dtype and strides (a query without
 * pointers names the kernel for v apart, if an archive may have one, and tells enough workspace for either).
 * 8-bit k and v are widened exactly to q's dtype; so bounds are q's. k_descale multiplies the scale, v_descale the output.
 * Fields after sinks were added later: a struct_size that ends before them is accepted. The last axis of q, k, v and out has
 * stride 1; k and v are 16-byte aligned, in their pointers and in all other strides (NO_KERNEL otherwise); all else is
 * aligned to its element size. FP32, FP64 and 8-bit q are refused (UNSUPPORTED_DTYPE). B, Hq and Sk at most 2^30;
 * B * Hq * Sq below 2^31, B * ceil(Sk / 32) * Hkv * ceil(Hq * Sq / Hkv / 16) below 2^32. More than 16 queries, packed
 * queries, bias, boolean masks, dropout: attention_forward.
 * The workspace depends on sizes, types and compute units, not on the numbers in seqused_k and block_table. */

/* Whether the call would run, with which kernel and with how much workspace (for the current device's compute units; without
 * a device, 256). Data pointers are ignored except for their alignment (NULL counts as fully aligned) and
 * whether k and v share one, and so is the workspace. Needs no device: works on a DEVICE_NONE handle. Returns
 * result->status, or an error about the arguments of the query itself. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_attention_decode_query(
    flydsl_aot_handle *handle, const flydsl_aot_attention_decode_params *params,
    flydsl_aot_query_result *result);

/* Calls back once per candidate for the pass over the keys, best first, with the reason it was taken or refused. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_attention_decode_explain(
    flydsl_aot_handle *handle, const flydsl_aot_attention_decode_params *params,
    flydsl_aot_candidate_callback callback, void *user);

/* Loads both kernels the call would use, so that the call itself can be captured into a graph. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_attention_decode_prefetch(
    flydsl_aot_handle *handle, const flydsl_aot_attention_decode_params *params);

/* Launches on `stream` (hipStream_t), on the device that owns it; NULL: the current device's null stream.
 * Empty outputs are success without a launch. Errors: those of flydsl_aot_attention_forward, INVALID_WORKSPACE among them;
 * no output was touched but with DEVICE_ERROR, DEVICE_LOST. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_attention_decode(
    flydsl_aot_handle *handle, const flydsl_aot_attention_decode_params *params, void *stream);

#ifdef __cplusplus
}
#endif

#endif
