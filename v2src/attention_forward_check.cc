// Which attention_forward problems are refused, and with what message. The rules are those of
// include/flydsl_aot/attention_forward.h.
#include "v2src/attention_forward_check.h"
#include "v2src/attention_arguments.h"
#include "v2src/attention_check.h"
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
  const Operands all = operands_of(params);
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
  FLYDSL_RETURN_IF_ERROR(check_paging_memory(params, all.outputs(), query));
  FLYDSL_RETURN_IF_ERROR(check_scores(params, sizes, all.outputs(), query));
  FLYDSL_RETURN_IF_ERROR(check_descale(params, sizes, all.outputs(), query));
  return check_dropout(params, sizes, all.outputs(), query);
}

}  // namespace flydsl::attention_forward
