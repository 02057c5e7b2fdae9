/* Fused multi-head attention, forward.
 *
 *   s[i,j]   = scale * sum_d q[b,h,i,d] * k[b,g,j,d]            g = h / (Hq / Hkv)
 *              then, with softcap, softcap * tanh(s / softcap); then, where given, + bias[b,h,i,j]
 *              - alibi_slopes[b,h] * |p(i) - j|, p(i) the key at which query i sits (flydsl_aot_mask)
 *   lse[i]   = ln (sum_{j visible} exp(s[i,j]) + exp(sinks[h]), the latter with sinks)
 *   out[i,:] = sum_{j visible} exp(s[i,j] - lse[i]) * v[b,g,j,:]
 *
 * (softmax attention, Vaswani et al. 2017; computed in one pass with a running maximum as in Dao et al.
 * 2022, FlashAttention.) Products of q and k and of the weights and v run on the matrix cores with fp32
 * accumulation; the weights are rounded to the input type, the sum of weights is not; scale is applied in
 * fp32. A weight below about 2^-150 (bf16) or 2^-28 (fp16) of the row's largest is taken as 0 (which shows only where the
 * larger ones meet values of 0 or are dropped; a sink is no weight in this sense).
 *
 * Rules
 * - A key is visible to a query if the mask lets it and its score is not -inf. A query row that sees no
 *   key gives out = 0 exactly and lse = -inf, or the sink.
 * - A NaN or +inf among a row's visible scores makes the row's out and lse NaN. A NaN or infinite value
 *   v[j,d] of a visible key makes out[i,d] NaN or infinite. Nothing that is not visible ever leaks,
 *   whatever its bits are. (Rounding may differ: a row whose tile of 64 keys holds a NaN or infinity, seen or
 *   not, is computed by a slower path with other roundings, within the same error bound.)
 * - A dot product sum_d q k that overflows fp32 before the scale is applied counts as an infinite score (-inf: not
 *   visible). Scores are kept in units of log2: a bias, a score with bias, or a sink counts as infinite from 2.358e38 on, so
 *   that a bias of the least number of fp32 hides its key as -inf does.
 * - A sink of -inf is none; one that is NaN or +inf makes out and lse of its head's rows NaN (out of a row that sees no key
 *   stays 0).
 * - Accuracy: with u = 2^-8 (bf16) or 2^-11 (fp16) and A the same attention applied to |v|, an element is within
 *   1.25 u (|out| + A) and lse within 1e-4 for up to 65,536 keys and ordinary scores (|s| < 1000); sums over n keys are
 *   fp32 additions, whose error grows at most in proportion to n. Scores are fp32 sums: with S the largest of
 *   |scale| sum_d |q k| + |bias| + |slope distance| over the visible keys, 4 * 2^-24 * S * A is added to the first bound and
 *   4 * 2^-24 * S to the second. On gfx90a, whose matrix cores count fp16 numbers below 2^-14 as 0, so do elements of q, k and v, and
 *   weights below 2^-22 of the largest.
 * - Deterministic: equal inputs, shapes and strides give equal bits, hidden data included.
 * - Stream-ordered; no hidden synchronisation. The first use of a kernel on a device loads it (host work,
 *   a device allocation by the runtime); later calls allocate nothing. */
#ifndef FLYDSL_AOT_ATTENTION_FORWARD_H
#define FLYDSL_AOT_ATTENTION_FORWARD_H

#include "flydsl_aot/library.h"
#include "flydsl_aot/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero-initialise, set struct_size = sizeof(flydsl_aot_attention_forward_params). */
typedef struct flydsl_aot_attention_forward_params {
  uint32_t struct_size;
  float scale;             /* usually 1/sqrt(D); any value, also negative, with scale * log2(e) finite in
                              fp32 (|scale| < 2.358e38); 0 is taken as 0, there is no default */
  flydsl_aot_tensor q;     /* (B, Hq, Sq, D), fp16, bf16, e4m3 or e5m2 */
  flydsl_aot_tensor k;     /* (B, Hkv, Sk, D), q's dtype, e4m3 or e5m2; Hq a multiple of Hkv */
  flydsl_aot_tensor v;     /* (B, Hkv, Sk, Dv), k's dtype; D and Dv may differ */
  flydsl_aot_tensor out;   /* (B, Hq, Sq, Dv), q's dtype, or fp16 or bf16 if that has 8 bits; may not overlap an input
                              or itself */
  flydsl_aot_tensor lse;   /* optional: (B, Hq, Sq), fp32, natural logarithm */
  flydsl_aot_mask mask;
  void *workspace;         /* device memory; NULL when the query asks for none */
  uint64_t workspace_bytes;

  /* Sequences of different lengths; all optional, int32 in device memory, see below. */
  flydsl_aot_tensor cu_seqlens_q; /* (B + 1): q is (Hq, total, D), sequence b is its rows cu_seqlens_q[b] up to but
                                     not including cu_seqlens_q[b + 1] */
  flydsl_aot_tensor cu_seqlens_k; /* (B + 1): the same for k and v, (Hkv, total, D) and (Hkv, total, Dv) */
  flydsl_aot_tensor seqused_q;    /* (B): rows of sequence b that are in use, from its first */
  flydsl_aot_tensor seqused_k;    /* (B): the same for its keys */
  int64_t max_seqlen_q;           /* with cu_seqlens_q: the longest sequence; else 0 */
  int64_t max_seqlen_k;           /* with cu_seqlens_k or block_table: the longest sequence; else 0 */

  /* What changes scores, or hides keys one by one; all optional. */
  float softcap;                  /* above 0: scores are capped as above; 0: not */
  float dropout_p;                /* probability that a weight is dropped, in [0, 1); see below */
  flydsl_aot_tensor bias;         /* (B, Hq, Sq, Sk), fp32 or out's dtype; -inf hides the key */
  flydsl_aot_tensor visible;      /* (B, Hq, Sq, Sk), bool: true lets the query see the key, as far as mask and lengths do */
  flydsl_aot_tensor alibi_slopes; /* (Hq) or (B, Hq), fp32, usually positive */
  flydsl_aot_tensor sinks;        /* (Hq), fp32: a logit that takes part in the softmax and has no value; not scaled,
                                     not capped */

  /* Dropout. */
  uint64_t dropout_seed;
  uint64_t dropout_offset;
  const uint64_t *dropout_seed_device;   /* device memory; if not NULL, the seed is there instead */
  const uint64_t *dropout_offset_device; /* device memory; if not NULL, dropout_offset is added to what is there */
  uint64_t *dropout_seed_out;            /* device memory; if not NULL, receives the seed that was used */
  uint64_t *dropout_offset_out;          /* device memory; if not NULL, receives the offset that was used */
  flydsl_aot_tensor kept;                /* optional output, (B, Hq, Sq, Sk), bool: which weights were kept, for every i and
                                            j of a sequence, visible or not; for tests, it is slow */

  flydsl_aot_tensor block_table; /* optional: paged keys and values, (B, blocks of a sequence), int32; see below */

  /* What 8-bit q, k and v are multiplied by: optional, fp32, (1), (H) or (B, H), any axis of size 1 broadcast; H is Hkv, of
   * q_descale also Hq. Absent: 1. */
  flydsl_aot_tensor q_descale;
  flydsl_aot_tensor k_descale;
  flydsl_aot_tensor v_descale;
} flydsl_aot_attention_forward_params;
/* bias and visible: any axis may have size 1 instead, or stride 0, and is then broadcast; all strides are free. With packed
 * sequences Sq and Sk are max_seqlen_q and max_seqlen_k, and i, j count from the start of the sequence. Without an anchor
 * ALiBi's p(i) is that of BOTTOM_RIGHT. */
/* Paged keys and values: with block_table, k is a pool of blocks (blocks, Hkv, block size, D), v the same with Dv, strides
 * free as ever, so that a cache stored as (blocks, block size, Hkv, D) is only other strides; the block size is a power of
 * two (1, 16, 32, 64, 128, 256 and others). Key j of sequence b is row j % block size of block block_table[b, j / block
 * size]. seqused_k is required; entries past a sequence's last block are not read. max_seqlen_k may be 0: then as many as
 * the table has room for. The last axis of block_table has stride 1. Numbers outside [0, blocks) are clamped. */
/* 8-bit types: q_descale * k_descale multiplies the scale, v_descale the output. The bounds are those of out's dtype, with values as they are after
 * widening, S with both factors and A with v_descale: e4m3 and e5m2 have no more significant bits than bf16 or fp16, so that products of q and k are exact in
 * fp32 whether they are taken of 8 bits (all three e4m3, D = Dv = 64 or 128, no feature but mask, lengths and factors: the fast case) or of
 * widened values; v is widened exactly; and the weights that meet it are rounded to out's dtype, never to 8 bits. */
/* Dropout: weights that are kept are multiplied by 1 / (1 - dropout_p) on their way to v, dropped ones by 0; lse is that
 * without dropout. Weight (b, h, i, j) is kept if word j % 4 of Philox4x32-10 (Salmon et al. 2011), as a number below 2^32, is
 * not below dropout_p * 2^32. Its key is the seed, low half first; its counter, four words, low halves first, is
 * offset + floor(j / 4) and (b * Hq + h) * Sq + i, Sq being the longest sequence's (max_seqlen_q when packed). So the choice
 * is the same in every kernel, and calls draw independent numbers when their offsets are at least ceil(Sk / 4) apart.
 * The outputs are not written when there is nothing to compute. */
/* Fields after workspace_bytes were added later: a struct_size that ends before them is accepted, what it lacks is
 * absent. */
/* Lengths. Dense tensors, (B, H, S, D), and packed ones, (H, total, D) with cu_seqlens, may be mixed: a packed q over a
 * dense cache k, v with seqused_k is the usual case. out is packed as q is, (Hq, total, Dv), and lse (Hq, total).
 * Sq and Sk of a sequence, from which masks count, are its own: seqused if given, else the difference of its cu_seqlens,
 * else the tensor's size. Rows that no sequence uses are neither read nor written. Lengths may be 0: such a sequence has
 * no rows, or rows that see no key. The library cannot read these numbers, so it does not refuse bad ones: starts and
 * ends are clamped to [0, total], lengths to [0, max_seqlen] and to the sequence's room, and no memory outside the
 * tensors is touched. max_seqlen is at most 2^30 and decides how many work-groups start: what a sequence has beyond it
 * is not computed, and not seen. Starts that descend give sequences that overlap: which of them are computed is undefined.
 * A few long sequences among many short ones keep all compute units busy. */
/* mask: both bounds may be any; one that hides no key of this problem is taken as no bound.
 * Output layout: the axes of out and of lse are nested, i.e. sorted by stride, each stride is at least the
 * span of the axes below it, so that no element is written twice (INVALID_STRIDE). Overlap of out or lse
 * with another operand is refused (INVALID_POINTER) where it is certain: the same first element, or a tensor
 * without gaps that contains the first or last element of the other. Slices of one packed buffer interleave legally;
 * overlap between two such tensors is not detected and gives undefined results.
 * D is any from 1 to 576, Dv any from 1 to 512; to 768 both where kernels may be compiled (library.h), by general ones (gfx90a and
 * gfx942: D to 640, Dv to 512; a wider problem is NO_KERNEL there). Kernels exist for classes of head dims; others are padded inside the kernel
 * of the next class. The fast ones take 16-bit types with D = Dv = 32, 64, 96, 128, 160, 192, 224 or 256 or D/Dv 192/128, either
 * head dim less by 0, 8, 16 or 24, or e4m3 with 64 or 128; masks and lengths, no other feature; q, k, v and out 16-byte aligned in
 * pointers and strides (64 and 128 also unaligned). 64, 128 and 192/128 are the fastest. With features, 16-bit
 * types of D and Dv up to 128 in multiples of 8, of one class and aligned, run on kernels named "features", 1.2 to 2 times as long (D 64: to 4);
 * all else, and bias with a boolean mask, either with paged keys, and a softcap above 128, on kernels named
 * "general" (a query tells), about 2 to 3 times as long; above a Dv of 256 scores are computed twice. The last axis
 * of q, k, v and out has stride 1; other strides are free. Data is aligned to its element size. Sq, Sk, B and Hq at most
 * 2^30, and ceil(Sq / 128) * B * Hq below 2^31. */
/* What is refused. Every combination of the features above runs. These inputs do not; query, explain, prefetch and the call
 * say so alike (test/v2src/attention_forward_refusals_test.cc walks them in this order):
 *  1. FP32, FP64, the FNUZ forms of e4m3 and e5m2, and all other types of q (UNSUPPORTED_DTYPE); k of 16 bits under another q,
 *     v of another type than k, an out of 8 bits, lengths and block numbers that are not int32 (INVALID_DTYPE)
 *  2. D above 576, Dv above 512, of a handle that may compile kernels above 768 (UNSUPPORTED_HEAD_DIM)
 *  3. k and v with different numbers of heads, Hq not a multiple of it (INVALID_SHAPE)
 *  4. blocks whose size is no power of two (UNSUPPORTED_SIZE); block_table without seqused_k or with cu_seqlens_k
 *     (INVALID_ARGUMENT)
 *  5. negative strides; a last axis of q, k, v, out, block_table, cu_seqlens or seqused whose stride is not 1; output axes that
 *     are not nested (INVALID_STRIDE)
 *  6. sizes beyond the limits (UNSUPPORTED_SIZE)
 *  7. data not aligned to its element size, or certainly overlapping an output (INVALID_POINTER)
 *  8. numbers that mean nothing: a scale that is not finite, a negative or NaN softcap, a dropout_p outside [0, 1), bounds below
 *     -1 or without an anchor (INVALID_SCALE, INVALID_ARGUMENT, INVALID_MASK) */

/* Whether the call would run and with which kernel. Data pointers are ignored except for their alignment
 * (NULL counts as fully aligned). Needs no device: works on a DEVICE_NONE handle. Returns result->status,
 * or an error about the arguments of the query itself. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_attention_forward_query(
    flydsl_aot_handle *handle, const flydsl_aot_attention_forward_params *params,
    flydsl_aot_query_result *result);

/* Calls back once per candidate kernel, best first, with the reason it was taken or refused. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_attention_forward_explain(
    flydsl_aot_handle *handle, const flydsl_aot_attention_forward_params *params,
    flydsl_aot_candidate_callback callback, void *user);

/* Loads the kernel the call would use, so that the call itself can be captured into a graph. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_attention_forward_prefetch(
    flydsl_aot_handle *handle, const flydsl_aot_attention_forward_params *params);

/* Launches on `stream` (hipStream_t), on the device that owns it; NULL: the current device's null stream.
 * Empty outputs are success without a launch. Errors: INVALID_*, UNSUPPORTED_*, NO_KERNEL, ARCHIVE_*,
 * NO_DEVICE, OUT_OF_DEVICE_MEMORY, CAPTURE_NEEDS_PREFETCH, COMPILER_NOT_FOUND, COMPILE_FAILED, KERNEL_LOAD_FAILED: no output was touched; DEVICE_ERROR: the
 * runtime refused the launch (nothing was touched); DEVICE_LOST: also, or a kernel faulted (the outputs are undefined). */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_attention_forward(
    flydsl_aot_handle *handle, const flydsl_aot_attention_forward_params *params, void *stream);

#ifdef __cplusplus
}
#endif

#endif
