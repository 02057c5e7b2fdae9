// Which attention_forward problems are refused, and with what message. The rules are those of
// include/flydsl_aot/attention_forward.h.
#include "v2src/attention_forward_check.h"
#include "v2src/attention_arguments.h"
#include "v2src/attention_check.h"
#include "v2src/plain_look.h"
#include "v2src/tensor_check.h"

namespace flydsl::attention_forward {
namespace {

constexpr const char *kQueryAxes[] = {"B", "Hq", "Sq", "D"};
constexpr const char *kKeyAxes[] = {"B", "Hkv", "Sk", "D"};
constexpr const char *kValueAxes[] = {"B", "Hkv", "Sk", "Dv"};
constexpr const char *kOutAxes[] = {"B", "Hq", "Sq", "Dv"};
constexpr const char *kLseAxes[] = {"B", "Hq", "Sq"};
constexpr const char *kPackedQueryAxes[] = {"Hq", "total_q", "D"};
constexpr const char *kPagedKeyAxes[] = {"blocks", "Hkv", "block size", "D"};
constexpr const char *kPagedValueAxes[] = {"blocks", "Hkv", "block size", "Dv"};
constexpr const char *kPackedKeyAxes[] = {"Hkv", "total_k", "D"};
constexpr const char *kPackedValueAxes[] = {"Hkv", "total_k", "Dv"};
constexpr const char *kPackedOutAxes[] = {"Hq", "total_q", "Dv"};
constexpr const char *kPackedLseAxes[] = {"Hq", "total_q"};

struct Operands {
  Operand q, k, v;
  Operand written[2];  // out, lse
  bool has_lse;
  // Axes that q, out (and lse but for its last) or k, v lack in front: 1 when packed.
  int packed_q, packed_k;
  bool paged;

  const Operand &out() const { return written[0]; }
  const Operand &lse() const { return written[1]; }
  Outputs outputs() const { return {written, has_lse ? 2u : 1u}; }
};

Operands operands_of(const Params &params) {
  const bool q = present(params.cu_seqlens_q), k = present(params.cu_seqlens_k);
  const bool paged = present(params.block_table);
  return {{"q", &params.q, q ? kPackedQueryAxes : kQueryAxes},
          {"k", &params.k,
           k       ? kPackedKeyAxes
           : paged ? kPagedKeyAxes
                   : kKeyAxes},
          {"v", &params.v,
           k       ? kPackedValueAxes
           : paged ? kPagedValueAxes
                   : kValueAxes},
          {{"out", &params.out, q ? kPackedOutAxes : kOutAxes},
           {"lse", &params.lse, q ? kPackedLseAxes : kLseAxes}},
          present(params.lse),
          q,
          k,
          paged};
}

Status check_shapes(const Operands &all) {
  const int q = all.packed_q, k = all.packed_k;
  FLYDSL_RETURN_IF_ERROR(check_shape(all.q, 4 - q));
  FLYDSL_RETURN_IF_ERROR(check_shape(all.k, 4 - k));
  FLYDSL_RETURN_IF_ERROR(check_shape(all.v, 4 - k));
  FLYDSL_RETURN_IF_ERROR(check_shape(all.out(), 4 - q));
  if (all.has_lse) FLYDSL_RETURN_IF_ERROR(check_shape(all.lse(), 3 - q));
  if (!q && !k && !all.paged) FLYDSL_RETURN_IF_ERROR(check_same_size(all.q, kBatch, all.k, kBatch));
  FLYDSL_RETURN_IF_ERROR(check_same_size(all.q, kDim - q, all.k, kDim - k));
  for (int axis = 0; axis <= kSeq - k; ++axis)
    FLYDSL_RETURN_IF_ERROR(check_same_size(all.k, axis, all.v, axis));
  for (int axis = 0; axis <= kSeq - q; ++axis)
    FLYDSL_RETURN_IF_ERROR(check_same_size(all.q, axis, all.out(), axis));
  FLYDSL_RETURN_IF_ERROR(check_same_size(all.v, kDim - k, all.out(), kDim - q));
  for (int axis = 0; axis <= kSeq - q && all.has_lse; ++axis)
    FLYDSL_RETURN_IF_ERROR(check_same_size(all.q, axis, all.lse(), axis));
  return check_heads(all.q.tensor->sizes[kHead - q], all.k.tensor->sizes[kHead - k]);
}

Status check_head_dim(const Sizes &sizes, bool has_lse, bool compiled) {
  // Without an lse there is nothing to compute for Dv = 0; with one there would be.
  if (sizes.head_dim_v == 0 && !has_lse) return {};
  return kHeadDimClasses.check(sizes.head_dim_qk, sizes.head_dim_v, compiled);
}

Status check_layout(const Operands &all) {
  for (const Operand *operand : {&all.q, &all.k, &all.v, &all.out()}) {
    FLYDSL_RETURN_IF_ERROR(check_strides(*operand));
    FLYDSL_RETURN_IF_ERROR(check_last_axis_contiguous(*operand));
  }
  FLYDSL_RETURN_IF_ERROR(check_no_self_overlap(all.out()));
  if (!all.has_lse) return {};
  FLYDSL_RETURN_IF_ERROR(check_strides(all.lse()));
  return check_no_self_overlap(all.lse());
}

Status check_memory(const Operands &all, bool query) {
  for (const Operand *operand : {&all.q, &all.k, &all.v, &all.out()})
    FLYDSL_RETURN_IF_ERROR(check_data(*operand, query));
  if (all.has_lse) FLYDSL_RETURN_IF_ERROR(check_data(all.lse(), query));
  if (query) return {};
  for (const Operand *input : {&all.q, &all.k, &all.v})
    FLYDSL_RETURN_IF_ERROR(check_input_apart(all.outputs(), *input));
  return all.has_lse ? check_no_overlap(all.lse(), all.out()) : Status();
}

Status check_workspace(const Params &params) {
  if (params.workspace || params.workspace_bytes == 0) return {};
  return error(FLYDSL_AOT_INVALID_WORKSPACE,
               "workspace is NULL, but workspace_bytes is %llu (the query asks for 0)",
               static_cast<unsigned long long>(params.workspace_bytes));
}

// Whether what every problem has, dense or with keys and queries packed, is plain to see right.
template <int rank>
bool is_plain(const Params &params, bool compiled) {
  using Is = PlainLook::Is;
  constexpr int kHeadAxis = rank - 3, kSeqAxis = rank - 2, kDimAxis = rank - 1;
  constexpr bool kPacked = rank == 3;
  const flydsl_aot_tensor &q = params.q, &k = params.k, &v = params.v, &out = params.out;
  PlainLook look;
  const PlainLook::Memory inputs[] = {look.tensor<rank, Is::kInput>(q),
                                      look.tensor<rank, Is::kInput>(k),
                                      look.tensor<rank, Is::kInput>(v)};
  const PlainLook::Memory written = look.tensor<rank, Is::kOutput>(out);
  const PlainLook::Memory lse =
      look.if_present<rank - 1, Is::kOutput, PlainLook::Last::kAny>(params.lse);
  look.expect_same_sizes<rank - 1>(q, out);
  look.expect_same_sizes<rank - 1>(k, v);
  if (present(params.lse)) look.expect_same_sizes<rank - 1>(q, params.lse);
  look.expect(q.sizes[kDimAxis] == k.sizes[kDimAxis]);
  look.expect(v.sizes[kDimAxis] == out.sizes[kDimAxis]);
  const int64_t batches = kPacked ? params.cu_seqlens_q.sizes[0] - 1 : q.sizes[0];
  const int64_t seq_q = kPacked ? params.max_seqlen_q : q.sizes[kSeqAxis];
  if constexpr (kPacked)
    look.expect((params.max_seqlen_q - 1) >> 28 == 0 && params.max_seqlen_k >> 28 == 0);
  else
    look.expect(k.sizes[0] == batches && (params.max_seqlen_q | params.max_seqlen_k) == 0);
  look.expect(batches >= 1);
  look.expect_apart(lse, written);
  for (const PlainLook::Memory &input : inputs) {
    look.expect_apart(written, input);
    look.expect_apart(lse, input);
  }
  const auto see_lengths = [&](const flydsl_aot_tensor &lengths, int64_t size) {
    if (!present(lengths)) return;
    const PlainLook::Memory memory = look.tensor<1, Is::kInput>(lengths);
    look.expect(lengths.dtype == FLYDSL_AOT_INT32 && lengths.sizes[0] == size);
    look.expect_apart(written, memory);
    look.expect_apart(lse, memory);
  };
  if constexpr (kPacked) {
    see_lengths(params.cu_seqlens_q, batches + 1);
    see_lengths(params.cu_seqlens_k, batches + 1);
  }
  see_lengths(params.seqused_q, batches);
  see_lengths(params.seqused_k, batches);
  look.expect(params.workspace || params.workspace_bytes == 0);
  if (!look.all_plain()) return false;
  const int64_t heads_q = q.sizes[kHeadAxis], most_rows = (seq_q / kTileRows + 1) * batches;
  // Each factor is below 2^29.
  if (heads_q % k.sizes[kHeadAxis] != 0 || most_rows >> 31 != 0 || most_rows * heads_q >> 31 != 0)
    return false;
  return kHeadDimClasses.check(q.sizes[kDimAxis], v.sizes[kDimAxis], compiled).ok() &&
         check_formats(params).ok() && check_mask(params.mask).ok() &&
         check_scale(params.scale).ok();
}

bool core_is_plain(const Params &params, bool compiled) {
  const bool packed_q = present(params.cu_seqlens_q), packed_k = present(params.cu_seqlens_k);
  if (packed_q != packed_k || present(params.block_table)) return false;
  return packed_q ? is_plain<3>(params, compiled) : is_plain<4>(params, compiled);
}

Status check_core(const Params &params, const Operands &all, bool query, bool compiled) {
  FLYDSL_RETURN_IF_ERROR(check_required({&all.q, &all.k, &all.v, &all.out()}, "q, k, v and out"));
  FLYDSL_RETURN_IF_ERROR(check_formats(params));
  FLYDSL_RETURN_IF_ERROR(check_shapes(all));
  FLYDSL_RETURN_IF_ERROR(check_paging(params));
  FLYDSL_RETURN_IF_ERROR(check_lengths(params));
  const Sizes sizes = sizes_of(params);
  const bool nothing_to_do = empty(params.out) || sizes.batches == 0 || sizes.seq_q == 0;
  FLYDSL_RETURN_IF_ERROR(check_head_dim(sizes, all.has_lse, compiled));
  FLYDSL_RETURN_IF_ERROR(check_limits(sizes, nothing_to_do));
  FLYDSL_RETURN_IF_ERROR(check_layout(all));
  FLYDSL_RETURN_IF_ERROR(check_mask(params.mask));
  FLYDSL_RETURN_IF_ERROR(check_scale(params.scale));
  FLYDSL_RETURN_IF_ERROR(check_workspace(params));
  FLYDSL_RETURN_IF_ERROR(check_memory(all, query));
  FLYDSL_RETURN_IF_ERROR(check_lengths_memory(params, all.outputs(), query));
  return check_paging_memory(params, all.outputs(), query);
}

// Whether anything that not every problem has asks for a look; what else check_options checks is right where it is 0.
bool has_options(const Params &params) {
  return params.softcap != 0 || params.dropout_p != 0 || present(params.bias) ||
         present(params.visible) || present(params.alibi_slopes) || present(params.sinks) ||
         present(params.q_descale) || present(params.k_descale) || present(params.v_descale) ||
         present(params.kept) || params.dropout_seed_device || params.dropout_offset_device ||
         params.dropout_seed_out || params.dropout_offset_out;
}

Status check_options(const Params &params, Outputs outputs, bool query) {
  const Sizes sizes = sizes_of(params);
  FLYDSL_RETURN_IF_ERROR(check_scores(params, sizes, outputs, query));
  FLYDSL_RETURN_IF_ERROR(check_descale(params, sizes, outputs, query));
  return check_dropout(params, sizes, outputs, query);
}

}  // namespace

Status check_input_apart(Outputs outputs, const Operand &input) {
  for (const Operand &output : outputs) FLYDSL_RETURN_IF_ERROR(check_no_overlap(output, input));
  return {};
}

Status check_limits(const Sizes &sizes, bool nothing_to_do) {
  const struct {
    const char *name;
    int64_t value;
  } limited[] = {{"B", sizes.batches},      {"Hq", sizes.heads_q}, {"Sq", sizes.seq_q},
                 {"Hkv", sizes.heads_kv},   {"Sk", sizes.seq_k},   {"total_q", sizes.total_q},
                 {"total_k", sizes.total_k}};
  for (const auto &size : limited) {
    if (size.value > kMaxAttentionSize) {
      return error(FLYDSL_AOT_UNSUPPORTED_SIZE, "%s = %lld; at most 2^30", size.name,
                   static_cast<long long>(size.value));
    }
  }
  if (nothing_to_do) return {};
  LinearTiles tiles;
  return linear_tiles(sizes.seq_q, sizes.batches, sizes.heads_q, kTileRows, &tiles);
}

Status check(const Params &params, bool query, bool compiled) {
  const bool plain = !query && core_is_plain(params, compiled), options = has_options(params);
  if (plain && !options) return {};
  const Operands all = operands_of(params);
  if (!plain) FLYDSL_RETURN_IF_ERROR(check_core(params, all, query, compiled));
  return options ? check_options(params, all.outputs(), query) : Status();
}

}  // namespace flydsl::attention_forward
