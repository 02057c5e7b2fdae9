/* Fused multi-head attention, backward: the gradients of attention_forward (flydsl_aot/attention_forward.h).
 *
 * With s[i,j] the scores as they enter the softmax there (scaled, capped, with bias and ALiBi), visible keys as there, lse what the
 * forward call gave (with the sink, where there is one), m[i,j] 0 for a weight that dropout drops, else 1 / (1 - dropout_p)
 * (1 without dropout), and g = h / (Hq / Hkv):
 *
 *   p[i,j]     = exp(s[i,j] - lse[i])                           for visible j, else 0
 *   delta[i]   = sum_d dout[i,d] * out[i,d]
 *   ds[i,j]    = p[i,j] * (m[i,j] * (dout[i,:] . v[b,g,j,:]) - delta[i])
 *   dv[b,g,j]  = sum_{h of g, i} m[i,j] * p[i,j] * dout[b,h,i,:]
 *   dbias      = sum of ds over the axes that dbias has with size 1
 *   dsinks[h]  = - sum_{b,i} exp(sinks[h] - lse[b,h,i]) * delta[b,h,i]
 *   ds'[i,j]   = ds[i,j], with softcap times 1 - tanh^2 of the capped score's argument
 *   dq[b,h,i]  = scale * sum_j ds'[i,j] * k[b,g,j,:]
 *   dk[b,g,j]  = scale * sum_{h of g, i} ds'[i,j] * q[b,h,i,:]
 *
 * (As in Dao et al. 2022, FlashAttention, appendix B; the formulas of bias, sinks and softcap by the chain rule.) Scores are
 * computed again from q and k; all products run on the matrix cores with fp32 accumulation; p and ds' are rounded to the input
 * type where they meet dout, q and k; sums over keys, queries and the heads of a group are fp32, in a fixed order, and rounded
 * once. The call launches a few kernels in order: one that forms delta, those for the gradients that are wanted, and what
 * they need.
 *
 * Rules
 * - A row that sees no key (or whose lse is -inf) has p = 0: it adds nothing to any gradient, and its dq is exactly 0. dk and
 *   dv of a key that no query sees are exactly 0. Gradients are always written, also where there are no queries (dk, dv, dbias
 *   and dsinks are then 0) or no keys (dq is then 0). Rows of packed or padded tensors that no sequence uses are neither read
 *   nor written, but for dbias, which is 0 there.
 * - Nothing that is not visible ever leaks, whatever its bits are. A NaN or infinity among what a gradient is made of makes it
 *   NaN or infinite, as the formulas say; a row whose out is 0 throughout has delta = 0, whatever dout is.
 * - lse has to be the forward call's: then no p is above 1. (Of scores of 10^7 and more fp32 leaves no digits of s - lse: weights are
 *   as wrong as the bound below says, but where one would overflow it is taken as 1.) Of other numbers p = exp(s - lse) may be taken as 1 where it
 *   is above; lse of -inf gives p = 0, of NaN NaN.
 * - On gfx90a the matrix cores count fp16 numbers below 2^-14 as 0: elements of q, k, v and dout, and m p and ds' as rounded. What follows
 *   does not hold for fp16 there where these matter, as where dout is small: scale the loss, or take bf16.
 * - Accuracy: with u = 2^-8 (bf16) or 2^-11 (fp16), a row x of dq, dk, dv or dbias differs from the one of exact arithmetic by at
 *   most 4 |e| + 2 u |x| + f, |.| the Euclidean norm, e the error of the formulas above in exact arithmetic but for m p, ds', out
 *   and the gradients rounded to their types (or, where that is more, what independent roundings give on average), and f what
 *   fp32 arithmetic may add. With w = 2^-24, t = 2^-126 (less may be taken as 0), S[i] the largest of |scale| sum_d |q k| +
 *   |bias| + |slope distance| of row i, dp = m (dout . v), and r[i,j] = p (exp(w (4 S[i] + 4 |lse[i]| + 16)) - 1), the error of p
 *   (at most 2^128), f is of
 *     ds[i,j]    g[i,j] = r |dp - delta| + n w (p + r) (m sum_d |dout v| + sum_d |dout out|) + t (|dp - delta| + 1)
 *     ds'[i,j]   g'[i,j] = g, with softcap g (1 - tanh^2) + 2^-20 (|ds| + g)
 *     dq[i,:]    |scale| sum_j (g' + 4 w |ds'|) |k[j,:]|       dk[j,:]: the same with sums over i and q[i,:]
 *     dv[j,:]    sum_i m (r + 4 w (p + r) + t) |dout[i,:]|        dbias: the sum of g + 4 w |ds|
 *     dsinks     sum_i r |delta| + n w (p + r) sum_d |dout out| with p = exp(sink - lse), which is all that it differs by
 *   with n = max(4, Dv). (tools/verify/attention_backward_reference.h computes it.) So sums over Dv are as exact as Dv fp32 additions in any
 *   order are (where the values of all keys are equal, dp - delta is nothing but their rounding), and other sums are taken as exact to 4 w of
 *   their absolute terms, which fp32 additions in a tree or in matrix instructions keep for ordinary data.
 * - Deterministic: equal inputs, shapes and strides give equal bits. There are no atomic sums.
 * - Stream-ordered; no hidden synchronisation or allocation; can be captured into a graph after a prefetch. Lengths are read
 *   when the kernels run. */
#ifndef FLYDSL_AOT_ATTENTION_BACKWARD_H
#define FLYDSL_AOT_ATTENTION_BACKWARD_H

#include "flydsl_aot/library.h"
#include "flydsl_aot/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero-initialise, set struct_size = sizeof(flydsl_aot_attention_backward_params). What has the name of a field of
 * flydsl_aot_attention_forward_params is what the forward call was given, or gave. */
typedef struct flydsl_aot_attention_backward_params {
  uint32_t struct_size;
  float scale;            /* that of the forward call */
  flydsl_aot_tensor q;    /* (B, Hq, Sq, D), fp16 or bf16 */
  flydsl_aot_tensor k;    /* (B, Hkv, Sk, D), q's dtype, as all up to dv but lse; Hq a multiple of Hkv */
  flydsl_aot_tensor v;    /* (B, Hkv, Sk, Dv) */
  flydsl_aot_tensor out;  /* (B, Hq, Sq, Dv), the forward call's */
  flydsl_aot_tensor lse;  /* (B, Hq, Sq), fp32, the forward call's; of packed queries (Hq, total) or
                             (B, Hq, max_seqlen_q) */
  flydsl_aot_tensor dout; /* (B, Hq, Sq, Dv), the gradient of out; any strides, 0 on any axis, also the last */
  flydsl_aot_tensor dq;   /* (B, Hq, Sq, D); as dk, dv, dbias and dsinks optional, computed where present; may not overlap an
                             input, another output or itself */
  flydsl_aot_tensor dk;   /* (B, Hkv, Sk, D) */
  flydsl_aot_tensor dv;   /* (B, Hkv, Sk, Dv) */
  flydsl_aot_mask mask;
  void *workspace; /* device memory, 16-byte aligned, as large as the query says; its contents do not matter and are undefined
                      afterwards. Calls that may run at the same time need one each. If it is smaller, but holds what separate
                      passes need (8 bytes a row of every head, rows rounded up to 128), those compute dq, dk and dv, with other
                      roundings, where the query names one kernel for all of them */
  uint64_t workspace_bytes;

  /* Sequences of different lengths, as in attention_forward: dout and dq are packed as q and out are, dk and dv as k and v. */
  flydsl_aot_tensor cu_seqlens_q;
  flydsl_aot_tensor cu_seqlens_k;
  flydsl_aot_tensor seqused_q;
  flydsl_aot_tensor seqused_k;
  int64_t max_seqlen_q; /* with cu_seqlens_q: the longest sequence; else 0 */
  int64_t max_seqlen_k; /* with cu_seqlens_k: the longest sequence; else 0 */

  /* What changes scores, or hides keys one by one; all optional. */
  float softcap;
  float dropout_p;
  flydsl_aot_tensor bias; /* (B, Hq, Sq, Sk), fp32 or q's dtype, any axis of size 1 or stride 0 broadcast */
  flydsl_aot_tensor visible;
  flydsl_aot_tensor alibi_slopes;
  flydsl_aot_tensor sinks;

  /* Dropout: the numbers that the forward call used (its dropout_seed_out and dropout_offset_out). */
  uint64_t dropout_seed;
  uint64_t dropout_offset;
  const uint64_t *dropout_seed_device;   /* device memory; if not NULL, the seed is there instead */
  const uint64_t *dropout_offset_device; /* device memory; if not NULL, dropout_offset is added to what is there */

  flydsl_aot_tensor dbias;  /* with bias: (B, Hq, Sq, Sk), fp32 or q's dtype. An axis along which bias is broadcast may have size
                               1: the gradient is then summed over it */
  flydsl_aot_tensor dsinks; /* with sinks: (Hq), fp32 */
} flydsl_aot_attention_backward_params;
/* The axes of each output are nested, as those of attention_forward's out; so are the rules for overlap. The last axis of q, k, v,
 * out, dq, dk and dv has stride 1; dbias has any strides. dout with another stride than 1 on its last axis is copied into the
 * workspace first. D is from 1 to 576 and Dv from 1 to 512, with kernels compiled at run time more, as in attention_forward, padded inside the kernel of the next class of head dims; the classes
 * are those of attention_forward, and so is what the fast kernels take: masks, lengths, GQA, no other feature, head dims of at most
 * 256, less than their class's by 0, 8, 16 or 24, tensors 16-byte aligned in pointers and strides. All else runs on kernels named "general". Where dq,
 * dk and dv are all wanted one kernel may compute them together (a query tells). Sq, Sk, B and Hq at most 2^30, and
 * ceil(Sq / 128) * B * Hq and ceil(Sk / 64) * B * Hkv below 2^31 (both with 32 where D or Dv is above 256).
 * What is refused, and with which status, is listed for attention_forward; beyond that
 *  1. q that is not fp16 or bf16, FP32 too (UNSUPPORTED_DTYPE); k, v, out, dout, dq, dk or dv of another type than q, dbias and
 *     bias neither of q's nor fp32 (INVALID_DTYPE)
 *  2. D above 576, Dv above 512, of a handle that may compile kernels above 768 (UNSUPPORTED_HEAD_DIM)
 *  3. no output at all, dbias without bias, dsinks without sinks (INVALID_ARGUMENT); dbias of size 1 along an axis where bias
 *     is not broadcast (INVALID_SHAPE)
 *  4. a workspace that is too small, NULL or unaligned (INVALID_WORKSPACE)
 * Paged keys, 8-bit types: there is no backward of them. */

/* Whether the call would run, with which kernel (of those it launches, the one for dk and dv, or for all gradients, or for the
 * only ones that are wanted) and with how much workspace. Data pointers are ignored except for their alignment (NULL counts as
 * fully aligned), and so is the workspace; a call with less aligned ones needs no more than the query says. Needs no
 * device: works on a DEVICE_NONE handle. Returns result->status, or an error about the arguments of the query itself. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_attention_backward_query(
    flydsl_aot_handle *handle, const flydsl_aot_attention_backward_params *params,
    flydsl_aot_query_result *result);

/* Calls back once per candidate kernel, with the reason it was taken or refused: of each kernel that the call launches,
 * in that order, best first. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_attention_backward_explain(
    flydsl_aot_handle *handle, const flydsl_aot_attention_backward_params *params,
    flydsl_aot_candidate_callback callback, void *user);

/* Loads the kernels the call would use, so that the call itself can be captured into a graph; workspace_bytes other than 0 counts as
 * in the call. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_attention_backward_prefetch(
    flydsl_aot_handle *handle, const flydsl_aot_attention_backward_params *params);

/* Launches on `stream` (hipStream_t), on the device that owns it; NULL: the current device's null stream. Errors: those of
 * flydsl_aot_attention_forward, INVALID_WORKSPACE among them; no output was touched but with DEVICE_ERROR, DEVICE_LOST. */
FLYDSL_AOT_API flydsl_aot_status flydsl_aot_attention_backward(
    flydsl_aot_handle *handle, const flydsl_aot_attention_backward_params *params, void *stream);

#ifdef __cplusplus
}
#endif

#endif
