// Which attention_backward problems are refused, and with what message. The rules are those of
// include/flydsl_aot/attention_backward.h; what it shares with attention_forward is checked there.
#include <algorithm>
#include <array>

#include "v2src/attention_backward.h"
#include "v2src/attention_check.h"
#include "v2src/attention_forward_check.h"
#include "v2src/plain_look.h"
#include "v2src/tensor_check.h"
#include "v2src/types.h"

namespace flydsl::attention_backward {
namespace {

using attention_forward::kBatch;
using attention_forward::kDim;
using attention_forward::kHead;
using attention_forward::kSeq;

constexpr const char *kQueryAxes[] = {"B", "Hq", "Sq", "D"};
constexpr const char *kKeyAxes[] = {"B", "Hkv", "Sk", "D"};
constexpr const char *kValueAxes[] = {"B", "Hkv", "Sk", "Dv"};
constexpr const char *kOutAxes[] = {"B", "Hq", "Sq", "Dv"};
constexpr const char *kLseAxes[] = {"B", "Hq", "Sq"};
constexpr const char *kPackedLseAxes[] = {"Hq", "total_q"};
constexpr const char *kPaddedLseAxes[] = {"B", "Hq", "max_seqlen_q"};
constexpr const char *kScoreAxes[] = {"B", "Hq", "Sq", "Sk"};
constexpr const char *kHeadAxes[] = {"Hq"};

// Names of a packed tensor's axes are those of a dense one but for its first two: (H, total, D).
constexpr const char *kPackedQueryAxes[] = {"Hq", "total_q", "D"};
constexpr const char *kPackedKeyAxes[] = {"Hkv", "total_k", "D"};
constexpr const char *kPackedValueAxes[] = {"Hkv", "total_k", "Dv"};
constexpr const char *kPackedOutAxes[] = {"Hq", "total_q", "Dv"};

struct Operands {
  Operand q, k, v, out, lse, dout;
  // Outputs; those that are absent are left out of `written`.
  Operand dq, dk, dv, dbias, dsinks;
  // Axes that q, out, dout, dq or k, v, dk, dv lack in front: 1 when packed.
  int packed_q, packed_k;
  bool lse_is_padded;
  std::array<Operand, 5> written;
  size_t written_count;

  attention_forward::Outputs outputs() const { return {written.data(), written_count}; }
};

Operands operands_of(const Params &params) {
  const bool q = present(params.cu_seqlens_q), k = present(params.cu_seqlens_k);
  const bool padded = q && params.lse.rank == 3;
  const auto queries = q ? kPackedQueryAxes : kQueryAxes;
  const auto keys = k ? kPackedKeyAxes : kKeyAxes;
  const auto values = k ? kPackedValueAxes : kValueAxes;
  const auto outs = q ? kPackedOutAxes : kOutAxes;
  const auto lses = padded ? kPaddedLseAxes : q ? kPackedLseAxes : kLseAxes;
  Operands all{{"q", &params.q, queries},
               {"k", &params.k, keys},
               {"v", &params.v, values},
               {"out", &params.out, outs},
               {"lse", &params.lse, lses},
               {"dout", &params.dout, outs},
               {"dq", &params.dq, queries},
               {"dk", &params.dk, keys},
               {"dv", &params.dv, values},
               {"dbias", &params.dbias, kScoreAxes},
               {"dsinks", &params.dsinks, kHeadAxes},
               q,
               k,
               padded,
               {},
               0};
  for (const Operand *output : {&all.dq, &all.dk, &all.dv, &all.dbias, &all.dsinks})
    if (present(*output->tensor)) all.written[all.written_count++] = *output;
  return all;
}

Status check_outputs(const Params &params, const Operands &all) {
  if (all.written_count == 0) {
    return error(FLYDSL_AOT_INVALID_ARGUMENT,
                 "dq, dk, dv, dbias and dsinks are all absent: nothing to compute");
  }
  if (present(params.dbias) && !present(params.bias))
    return error(FLYDSL_AOT_INVALID_ARGUMENT, "dbias is given, but there is no bias");
  if (present(params.dsinks) && !present(params.sinks))
    return error(FLYDSL_AOT_INVALID_ARGUMENT, "dsinks is given, but there are no sinks");
  return {};
}

Status check_dtype(const Operand &operand, flydsl_aot_dtype allowed) {
  const flydsl_aot_dtype dtype = operand.tensor->dtype;
  if (!present(*operand.tensor) || dtype == allowed) return {};
  return error(FLYDSL_AOT_INVALID_DTYPE, "%s is %s (number %d); it must be %s", operand.name,
               flydsl_aot_dtype_name(dtype), dtype, flydsl_aot_dtype_name(allowed));
}

Status check_dtypes(const Operands &all) {
  const flydsl_aot_dtype dtype = all.q.tensor->dtype;
  if (!known_dtype(dtype)) {
    return error(FLYDSL_AOT_INVALID_DTYPE,
                 "q has dtype number %d, which is no dtype; supported: fp16, bf16", dtype);
  }
  if (!is_wide(dtype)) {
    return error(FLYDSL_AOT_UNSUPPORTED_DTYPE, "q is %s; supported: fp16, bf16",
                 flydsl_aot_dtype_name(dtype));
  }
  for (const Operand *same : {&all.k, &all.v, &all.out, &all.dout, &all.dq, &all.dk, &all.dv}) {
    if (!present(*same->tensor) || same->tensor->dtype == dtype) continue;
    return error(FLYDSL_AOT_INVALID_DTYPE,
                 "q is %s, but %s is %s (number %d); it must have q's dtype",
                 flydsl_aot_dtype_name(dtype), same->name,
                 flydsl_aot_dtype_name(same->tensor->dtype), same->tensor->dtype);
  }
  FLYDSL_RETURN_IF_ERROR(check_dtype(all.lse, FLYDSL_AOT_FP32));
  FLYDSL_RETURN_IF_ERROR(check_dtype(all.dsinks, FLYDSL_AOT_FP32));
  const flydsl_aot_tensor &dbias = *all.dbias.tensor;
  if (!present(dbias) || dbias.dtype == FLYDSL_AOT_FP32 || dbias.dtype == dtype) return {};
  return error(FLYDSL_AOT_INVALID_DTYPE, "dbias is %s (number %d); it must be fp32 or, as q, %s",
               flydsl_aot_dtype_name(dbias.dtype), dbias.dtype, flydsl_aot_dtype_name(dtype));
}

// `operand`, if present, has the same sizes as `like`.
Status check_like(const Operand &operand, const Operand &like) {
  if (!present(*operand.tensor)) return {};
  FLYDSL_RETURN_IF_ERROR(check_shape(operand, like.tensor->rank));
  for (int axis = 0; axis < like.tensor->rank; ++axis)
    FLYDSL_RETURN_IF_ERROR(check_same_size(like, axis, operand, axis));
  return {};
}

Status check_shapes(const Operands &all) {
  const int q = all.packed_q, k = all.packed_k;
  for (const Operand *operand : {&all.q, &all.out})
    FLYDSL_RETURN_IF_ERROR(check_shape(*operand, 4 - q));
  for (const Operand *operand : {&all.k, &all.v})
    FLYDSL_RETURN_IF_ERROR(check_shape(*operand, 4 - k));
  FLYDSL_RETURN_IF_ERROR(check_shape(all.lse, all.lse_is_padded ? 3 : 3 - q));
  if (!q && !k) FLYDSL_RETURN_IF_ERROR(check_same_size(all.q, kBatch, all.k, kBatch));
  FLYDSL_RETURN_IF_ERROR(check_same_size(all.q, kDim - q, all.k, kDim - k));
  for (int axis = 0; axis <= kSeq - k; ++axis)
    FLYDSL_RETURN_IF_ERROR(check_same_size(all.k, axis, all.v, axis));
  for (int axis = 0; axis <= kSeq - q; ++axis) {
    FLYDSL_RETURN_IF_ERROR(check_same_size(all.q, axis, all.out, axis));
    if (!all.lse_is_padded) FLYDSL_RETURN_IF_ERROR(check_same_size(all.q, axis, all.lse, axis));
  }
  FLYDSL_RETURN_IF_ERROR(check_same_size(all.v, kDim - k, all.out, kDim - q));
  FLYDSL_RETURN_IF_ERROR(check_like(all.dout, all.out));
  FLYDSL_RETURN_IF_ERROR(check_like(all.dq, all.q));
  FLYDSL_RETURN_IF_ERROR(check_like(all.dk, all.k));
  FLYDSL_RETURN_IF_ERROR(check_like(all.dv, all.v));
  return check_heads(all.q.tensor->sizes[kHead - q], all.k.tensor->sizes[kHead - k]);
}

Status check_size(const Operand &operand, int axis, int64_t expected) {
  const int64_t size = operand.tensor->sizes[axis];
  if (size == expected) return {};
  return error(FLYDSL_AOT_INVALID_SHAPE, "%s has %s = %lld (axis %d); it must be %lld",
               operand.name, operand.axes[axis], static_cast<long long>(size), axis,
               static_cast<long long>(expected));
}

Status check_padded_lse(const Operands &all, const Sizes &sizes) {
  if (!all.lse_is_padded) return {};
  const int64_t expected[] = {sizes.batches, sizes.heads_q, sizes.seq_q};
  for (int axis = 0; axis < 3; ++axis)
    FLYDSL_RETURN_IF_ERROR(check_size(all.lse, axis, expected[axis]));
  return {};
}

// The tiles of the kernels can be numbered: those with the fewest keys or rows of any instance. (128 rows are checked with
// the sizes.)
Status check_tiles(const Sizes &sizes, bool no_rows) {
  const bool wide = std::max(sizes.head_dim_qk, sizes.head_dim_v) > 256;
  LinearTiles tiles;
  if (wide && !no_rows)
    FLYDSL_RETURN_IF_ERROR(linear_tiles(sizes.seq_q, sizes.batches, sizes.heads_q, 32, &tiles));
  if (sizes.batches == 0 || sizes.heads_kv == 0 || sizes.seq_k == 0) return {};
  return linear_tiles(sizes.seq_k, sizes.batches, sizes.heads_kv, wide ? 32 : 64, &tiles);
}

Status check_layout(const Operands &all) {
  for (const Operand *operand : {&all.q, &all.k, &all.v, &all.out, &all.dq, &all.dk, &all.dv}) {
    if (!present(*operand->tensor)) continue;
    FLYDSL_RETURN_IF_ERROR(check_strides(*operand));
    FLYDSL_RETURN_IF_ERROR(check_last_axis_contiguous(*operand));
  }
  FLYDSL_RETURN_IF_ERROR(check_strides(all.lse));
  FLYDSL_RETURN_IF_ERROR(check_strides(all.dout));
  for (const Operand &output : all.outputs()) {
    FLYDSL_RETURN_IF_ERROR(check_strides(output));
    FLYDSL_RETURN_IF_ERROR(check_no_self_overlap(output));
  }
  return {};
}

Status check_memory(const Operands &all, bool query) {
  const Operand *inputs[] = {&all.q, &all.k, &all.v, &all.out, &all.lse, &all.dout};
  for (const Operand *input : inputs) FLYDSL_RETURN_IF_ERROR(check_data(*input, query));
  for (const Operand &output : all.outputs()) FLYDSL_RETURN_IF_ERROR(check_data(output, query));
  if (query) return {};
  for (const Operand *input : inputs)
    FLYDSL_RETURN_IF_ERROR(attention_forward::check_input_apart(all.outputs(), *input));
  for (size_t i = 1; i < all.written_count; ++i)
    FLYDSL_RETURN_IF_ERROR(
        attention_forward::check_input_apart(all.outputs().first(i), all.written[i]));
  return {};
}

// Of the gradients of what changes scores, whose own shapes are checked.
Status check_score_outputs(const Params &params, const Operands &all, const Sizes &sizes) {
  if (present(params.dsinks)) {
    FLYDSL_RETURN_IF_ERROR(check_shape(all.dsinks, 1));
    FLYDSL_RETURN_IF_ERROR(check_size(all.dsinks, 0, sizes.heads_q));
  }
  if (!present(params.dbias)) return {};
  FLYDSL_RETURN_IF_ERROR(check_shape(all.dbias, 4));
  const int64_t expected[] = {sizes.batches, sizes.heads_q, sizes.seq_q, sizes.seq_k};
  for (int axis = 0; axis < 4; ++axis) {
    if (params.dbias.sizes[axis] != 1) {
      FLYDSL_RETURN_IF_ERROR(check_size(all.dbias, axis, expected[axis]));
      continue;
    }
    if (expected[axis] == 1 || walked_stride(params.bias, axis) == 0) continue;
    return error(FLYDSL_AOT_INVALID_SHAPE,
                 "dbias has %s = 1 (axis %d), but bias has %lld there and stride %lld; a gradient "
                 "is summed over what bias is broadcast along (size 1 or stride 0)",
                 kScoreAxes[axis], axis, static_cast<long long>(params.bias.sizes[axis]),
                 static_cast<long long>(params.bias.strides[axis]));
  }
  return {};
}

// Whether everything is plain to see right, of a call, dense or with queries and keys packed, without what changes single scores.
template <int rank>
bool is_plain(const Params &params, bool compiled) {
  using Is = PlainLook::Is;
  using Last = PlainLook::Last;
  constexpr int kHeadAxis = rank - 3, kSeqAxis = rank - 2, kDimAxis = rank - 1;
  constexpr bool kPacked = rank == 3;
  const flydsl_aot_tensor &q = params.q, &k = params.k, &v = params.v, &out = params.out;
  PlainLook look;
  const PlainLook::Memory inputs[] = {look.tensor<rank, Is::kInput>(q),
                                      look.tensor<rank, Is::kInput>(k),
                                      look.tensor<rank, Is::kInput>(v),
                                      look.tensor<rank, Is::kInput>(out),
                                      look.tensor<rank - 1, Is::kInput, Last::kAny>(params.lse),
                                      look.tensor<rank, Is::kInput, Last::kAny>(params.dout)};
  const PlainLook::Memory dq = look.if_present<rank, Is::kOutput>(params.dq),
                          dk = look.if_present<rank, Is::kOutput>(params.dk),
                          dv = look.if_present<rank, Is::kOutput>(params.dv);
  look.expect_same_sizes<rank - 1>(q, out);
  look.expect_same_sizes<rank - 1>(q, params.lse);
  look.expect_same_sizes<rank - 1>(k, v);
  look.expect_same_sizes<rank>(out, params.dout);
  look.expect(q.sizes[kDimAxis] == k.sizes[kDimAxis]);
  look.expect(v.sizes[kDimAxis] == out.sizes[kDimAxis]);
  for (const flydsl_aot_tensor *same : {&k, &v, &out, &params.dout})
    look.expect(same->dtype == q.dtype);
  look.expect(params.lse.dtype == FLYDSL_AOT_FP32);
  const auto see_gradient = [&](const flydsl_aot_tensor &of, const flydsl_aot_tensor &gradient) {
    if (!present(gradient)) return;
    look.expect_same_sizes<rank>(of, gradient);
    look.expect(gradient.dtype == q.dtype);
  };
  see_gradient(q, params.dq);
  see_gradient(k, params.dk);
  see_gradient(v, params.dv);
  look.expect(present(params.dq) || present(params.dk) || present(params.dv));
  const auto see_apart = [&](const PlainLook::Memory &input) {
    look.expect_apart(dq, input);
    look.expect_apart(dk, input);
    look.expect_apart(dv, input);
  };
  for (const PlainLook::Memory &input : inputs) see_apart(input);
  look.expect_apart(dq, dk);
  look.expect_apart(dq, dv);
  look.expect_apart(dk, dv);
  const int64_t batches = kPacked ? params.cu_seqlens_q.sizes[0] - 1 : q.sizes[0];
  const int64_t seq_q = kPacked ? params.max_seqlen_q : q.sizes[kSeqAxis];
  const int64_t seq_k = kPacked ? params.max_seqlen_k : k.sizes[kSeqAxis];
  if constexpr (kPacked)
    look.expect((seq_q - 1) >> 28 == 0 && (seq_k - 1) >> 28 == 0);
  else
    look.expect(k.sizes[0] == batches && (params.max_seqlen_q | params.max_seqlen_k) == 0);
  look.expect(batches >= 1);
  const auto see_lengths = [&](const flydsl_aot_tensor &lengths, int64_t size) {
    if (!present(lengths)) return;
    see_apart(look.tensor<1, Is::kInput>(lengths));
    look.expect(lengths.dtype == FLYDSL_AOT_INT32 && lengths.sizes[0] == size);
  };
  if constexpr (kPacked) {
    see_lengths(params.cu_seqlens_q, batches + 1);
    see_lengths(params.cu_seqlens_k, batches + 1);
  }
  see_lengths(params.seqused_q, batches);
  see_lengths(params.seqused_k, batches);
  if (!look.all_plain()) return false;
  const int64_t heads_q = q.sizes[kHeadAxis];
  // The least tile of any instance; each factor is below 2^29.
  const int64_t most_tiles = (std::max(seq_q, seq_k) / 32 + 1) * batches;
  return heads_q % k.sizes[kHeadAxis] == 0 && most_tiles >> 31 == 0 &&
         most_tiles * heads_q >> 31 == 0 && is_wide(q.dtype) &&
         kHeadDimClasses.check(q.sizes[kDimAxis], v.sizes[kDimAxis], compiled).ok() &&
         check_mask(params.mask).ok() && check_scale(params.scale).ok();
}

bool is_plain(const Params &params, bool compiled) {
  const bool options = params.softcap != 0 || params.dropout_p != 0 || present(params.bias) ||
                       present(params.visible) || present(params.alibi_slopes) ||
                       present(params.sinks) || present(params.dbias) || present(params.dsinks) ||
                       params.dropout_seed_device || params.dropout_offset_device;
  const bool packed_q = present(params.cu_seqlens_q), packed_k = present(params.cu_seqlens_k);
  if (options || packed_q != packed_k) return false;
  return packed_q ? is_plain<3>(params, compiled) : is_plain<4>(params, compiled);
}

}  // namespace

Status check(const Params &params, bool query, bool compiled) {
  if (!query && is_plain(params, compiled)) return {};
  const Operands all = operands_of(params);
  FLYDSL_RETURN_IF_ERROR(check_required({&all.q, &all.k, &all.v, &all.out, &all.lse, &all.dout},
                                        "q, k, v, out, lse and dout"));
  FLYDSL_RETURN_IF_ERROR(check_outputs(params, all));
  FLYDSL_RETURN_IF_ERROR(check_dtypes(all));
  FLYDSL_RETURN_IF_ERROR(check_shapes(all));
  const attention_forward::Params forward = forward_of(params);
  FLYDSL_RETURN_IF_ERROR(attention_forward::check_lengths(forward));
  const Sizes sizes = attention_forward::sizes_of(forward);
  FLYDSL_RETURN_IF_ERROR(check_padded_lse(all, sizes));
  FLYDSL_RETURN_IF_ERROR(
      kHeadDimClasses.check(sizes.head_dim_qk, sizes.head_dim_v, compiled));
  const bool no_rows = sizes.batches == 0 || sizes.heads_q == 0 || sizes.seq_q == 0;
  FLYDSL_RETURN_IF_ERROR(attention_forward::check_limits(sizes, no_rows));
  FLYDSL_RETURN_IF_ERROR(check_tiles(sizes, no_rows));
  FLYDSL_RETURN_IF_ERROR(check_layout(all));
  FLYDSL_RETURN_IF_ERROR(check_mask(params.mask));
  FLYDSL_RETURN_IF_ERROR(check_scale(params.scale));
  FLYDSL_RETURN_IF_ERROR(check_memory(all, query));
  FLYDSL_RETURN_IF_ERROR(attention_forward::check_lengths_memory(forward, all.outputs(), query));
  FLYDSL_RETURN_IF_ERROR(attention_forward::check_scores(forward, sizes, all.outputs(), query));
  FLYDSL_RETURN_IF_ERROR(check_score_outputs(params, all, sizes));
  return attention_forward::check_dropout(forward, sizes, all.outputs(), query);
}

}  // namespace flydsl::attention_backward
