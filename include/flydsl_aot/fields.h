/* The fields of every operator's parameters, as lists for programs that go through them: bindings, recorders of calls,
 * `flydsl-aot run --replay`. A list calls FIELD(kind, member) for each member but struct_size, reserved ones and the
 * workspace (void *workspace and uint64_t workspace_bytes, which have no meaning of their own). `member` may be that of a
 * nested struct. Kinds: tensor (flydsl_aot_tensor), f32, i32, u32, i64, u64 (numbers of these types and what is typedef'd to
 * them), in64 and out64 (const uint64_t * and uint64_t *, one number in device memory, or NULL).
 *
 * A call as text, which FLYDSL_AOT_VERBOSE writes (library.h): the fields that are not absent, 0 or NULL, in their order, as
 * "member=value" with one space between. Of a tensor the value is
 *   dtype:sizes:strides:alignment      e.g. bf16:1x16x4096x128:8388608x524288x128x1:256
 * where `alignment` is the greatest power of two up to 256 that divides the address; of a number its shortest exact decimal
 * form; of a pointer "device". */
#ifndef FLYDSL_AOT_FIELDS_H
#define FLYDSL_AOT_FIELDS_H

/* clang-format off */
#define FLYDSL_AOT_MASK_FIELDS(FIELD) \
  FIELD(i64, mask.left) FIELD(i64, mask.right) FIELD(i32, mask.anchor)

#define FLYDSL_AOT_SEQUENCE_FIELDS(FIELD) \
  FIELD(tensor, cu_seqlens_q) FIELD(tensor, cu_seqlens_k) FIELD(tensor, seqused_q) \
  FIELD(tensor, seqused_k) FIELD(i64, max_seqlen_q) FIELD(i64, max_seqlen_k)

#define FLYDSL_AOT_SCORE_FIELDS(FIELD) \
  FIELD(f32, softcap) FIELD(f32, dropout_p) FIELD(tensor, bias) FIELD(tensor, visible) \
  FIELD(tensor, alibi_slopes) FIELD(tensor, sinks) FIELD(u64, dropout_seed) \
  FIELD(u64, dropout_offset) FIELD(in64, dropout_seed_device) FIELD(in64, dropout_offset_device)

#define FLYDSL_AOT_ATTENTION_FORWARD_FIELDS(FIELD) \
  FIELD(f32, scale) FIELD(tensor, q) FIELD(tensor, k) FIELD(tensor, v) FIELD(tensor, out) \
  FIELD(tensor, lse) FLYDSL_AOT_MASK_FIELDS(FIELD) FLYDSL_AOT_SEQUENCE_FIELDS(FIELD) \
  FLYDSL_AOT_SCORE_FIELDS(FIELD) FIELD(out64, dropout_seed_out) FIELD(out64, dropout_offset_out) \
  FIELD(tensor, kept) FIELD(tensor, block_table) FIELD(tensor, q_descale) \
  FIELD(tensor, k_descale) FIELD(tensor, v_descale)

#define FLYDSL_AOT_ATTENTION_BACKWARD_FIELDS(FIELD) \
  FIELD(f32, scale) FIELD(tensor, q) FIELD(tensor, k) FIELD(tensor, v) FIELD(tensor, out) \
  FIELD(tensor, lse) FIELD(tensor, dout) FIELD(tensor, dq) FIELD(tensor, dk) FIELD(tensor, dv) \
  FLYDSL_AOT_MASK_FIELDS(FIELD) FLYDSL_AOT_SEQUENCE_FIELDS(FIELD) FLYDSL_AOT_SCORE_FIELDS(FIELD) \
  FIELD(tensor, dbias) FIELD(tensor, dsinks)

#define FLYDSL_AOT_ATTENTION_DECODE_FIELDS(FIELD) \
  FIELD(f32, scale) FIELD(tensor, q) FIELD(tensor, k) FIELD(tensor, v) FIELD(tensor, out) \
  FIELD(tensor, lse) FLYDSL_AOT_MASK_FIELDS(FIELD) FIELD(tensor, seqused_k) \
  FIELD(tensor, block_table) FIELD(i64, max_seqlen_k) FIELD(f32, softcap) \
  FIELD(tensor, alibi_slopes) FIELD(tensor, sinks) FIELD(tensor, k_descale) FIELD(tensor, v_descale)

#define FLYDSL_AOT_GEMM_FIELDS(FIELD) \
  FIELD(f32, alpha) FIELD(f32, beta) FIELD(tensor, a) FIELD(tensor, b) FIELD(tensor, c) \
  FIELD(tensor, d) FIELD(tensor, a_descale) FIELD(tensor, b_descale) FIELD(tensor, d_scale) \
  FIELD(tensor, epilogue.bias_n) FIELD(tensor, epilogue.bias_m) FIELD(i32, epilogue.activation) \
  FIELD(i32, epilogue.gradient) \
  FIELD(tensor, epilogue.residual) FIELD(tensor, epilogue.aux) FIELD(tensor, d_sum_m) \
  FIELD(tensor, d_sum_n) FIELD(tensor, a_sum_m) FIELD(tensor, b_sum_n)

#define FLYDSL_AOT_GROUPED_GEMM_FIELDS(FIELD) \
  FIELD(i32, scale_layout) FIELD(tensor, a) FIELD(tensor, a_scale) FIELD(tensor, b) \
  FIELD(tensor, b_scale) FIELD(tensor, d) FIELD(tensor, offsets) FIELD(tensor, bias)

#define FLYDSL_AOT_SCALED_GEMM_FIELDS(FIELD) \
  FIELD(i32, scale_layout) FIELD(tensor, a) FIELD(tensor, a_scale) FIELD(tensor, b) \
  FIELD(tensor, b_scale) FIELD(tensor, bias) FIELD(tensor, d)

#define FLYDSL_AOT_MX_QUANTISE_FIELDS(FIELD) \
  FIELD(i32, scale_layout) FIELD(i32, rounding) FIELD(u64, seed) FIELD(u64, offset) \
  FIELD(tensor, x) FIELD(tensor, out) FIELD(tensor, scale)

#define FLYDSL_AOT_RMS_NORM_FIELDS(FIELD) \
  FIELD(f32, eps) FIELD(tensor, x) FIELD(tensor, weight) FIELD(f32, weight_offset) \
  FIELD(tensor, residual) FIELD(tensor, sum) FIELD(tensor, out) FIELD(tensor, out_scale) \
  FIELD(tensor, rstd)

#define FLYDSL_AOT_LAYER_NORM_FIELDS(FIELD) \
  FLYDSL_AOT_RMS_NORM_FIELDS(FIELD) FIELD(tensor, mean) FIELD(tensor, bias)

#define FLYDSL_AOT_RMS_NORM_BACKWARD_FIELDS(FIELD) \
  FIELD(f32, weight_offset) FIELD(tensor, x) FIELD(tensor, weight) FIELD(tensor, rstd) \
  FIELD(tensor, dout) FIELD(tensor, dsum) FIELD(tensor, dx) FIELD(tensor, dweight)

#define FLYDSL_AOT_LAYER_NORM_BACKWARD_FIELDS(FIELD) \
  FLYDSL_AOT_RMS_NORM_BACKWARD_FIELDS(FIELD) FIELD(tensor, mean) FIELD(tensor, dbias)

#define FLYDSL_AOT_TOPK_FIELDS(FIELD) \
  FIELD(i32, axis) FIELD(tensor, x) FIELD(tensor, values) FIELD(tensor, indices) \
  FIELD(u32, smallest) FIELD(u32, any_order)

#define FLYDSL_AOT_TOPK_SOFTMAX_FIELDS(FIELD) \
  FIELD(u32, chosen_only) FIELD(tensor, x) FIELD(tensor, weights) FIELD(tensor, indices)
/* clang-format on */

/* Every operator: OPERATOR(name, list of its fields). */
#define FLYDSL_AOT_OPERATORS(OPERATOR)                               \
  OPERATOR(attention_forward, FLYDSL_AOT_ATTENTION_FORWARD_FIELDS)   \
  OPERATOR(attention_backward, FLYDSL_AOT_ATTENTION_BACKWARD_FIELDS) \
  OPERATOR(attention_decode, FLYDSL_AOT_ATTENTION_DECODE_FIELDS)     \
  OPERATOR(gemm, FLYDSL_AOT_GEMM_FIELDS)                             \
  OPERATOR(grouped_gemm, FLYDSL_AOT_GROUPED_GEMM_FIELDS)             \
  OPERATOR(layer_norm, FLYDSL_AOT_LAYER_NORM_FIELDS)                 \
  OPERATOR(layer_norm_backward, FLYDSL_AOT_LAYER_NORM_BACKWARD_FIELDS) \
  OPERATOR(mx_quantise, FLYDSL_AOT_MX_QUANTISE_FIELDS)               \
  OPERATOR(rms_norm, FLYDSL_AOT_RMS_NORM_FIELDS)                     \
  OPERATOR(rms_norm_backward, FLYDSL_AOT_RMS_NORM_BACKWARD_FIELDS)   \
  OPERATOR(scaled_gemm, FLYDSL_AOT_SCALED_GEMM_FIELDS)               \
  OPERATOR(topk, FLYDSL_AOT_TOPK_FIELDS)                             \
  OPERATOR(topk_softmax, FLYDSL_AOT_TOPK_SOFTMAX_FIELDS)

#endif
