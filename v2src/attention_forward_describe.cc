// A checked attention_forward problem as what selection looks up.
#include <algorithm>

#include "v2src/attention_forward.h"
#include "v2src/tensor_check.h"

namespace flydsl::attention_forward {
namespace {

// The classes of codegen/describe/attention_forward.py, best first.
#define FLYDSL_AOT_CLASS(qk, v) {qk, v},
constexpr HeadDims kClasses[] = {FLYDSL_AOT_ATTENTION_FORWARD_HEAD_DIM_CLASSES(FLYDSL_AOT_CLASS)};
#undef FLYDSL_AOT_CLASS

// mask_shift in [-Sq, Sk]: beyond that range it shows nothing, or everything, just as at its ends.
int32_t mask_shift(const flydsl_aot_mask &mask, int64_t seq_q, int64_t seq_k) {
  if (mask.right == FLYDSL_AOT_UNLIMITED) return static_cast<int32_t>(seq_k);
  const int64_t diagonal = mask.anchor == FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT ? seq_k - seq_q : 0;
  const int64_t right =
      std::min(mask.right, 2 * kMaxSize);  // no overflow below; larger bounds hide nothing either
  return static_cast<int32_t>(std::clamp(right + diagonal, -seq_q, seq_k));
}

uint64_t align_bytes(const Params &params) {
  uint64_t mask = 4096;  // more alignment than that is not told apart
  for (const flydsl_aot_tensor *tensor : {&params.q, &params.k, &params.v, &params.out})
    mask |= alignment_mask(*tensor);
  return mask & (~mask + 1);
}

// Whether the left bound hides a key: the last query, which it leaves the fewest, does not see key 0
// from where it sits.
bool left_bound_hides(const flydsl_aot_mask &mask, int64_t seq_q, int64_t seq_k) {
  if (mask.left == FLYDSL_AOT_UNLIMITED) return false;
  return mask.left < (mask.anchor == FLYDSL_AOT_ANCHOR_TOP_LEFT ? seq_q : seq_k) - 1;
}

bool has_exact_instances(int64_t head_dim_qk, int64_t head_dim_v) {
#define FLYDSL_AOT_IS_EXACT(dim) \
  if (head_dim_qk == (dim) && head_dim_v == (dim)) return true;
  FLYDSL_AOT_ATTENTION_FORWARD_EXACT_HEAD_DIMS(FLYDSL_AOT_IS_EXACT)
#undef FLYDSL_AOT_IS_EXACT
  return false;
}

bool needs_general_instance(const Params &params) {
  return params.q.dtype != element_type(params) || params.k.dtype != element_type(params) ||
         present(params.cu_seqlens_q) || present(params.cu_seqlens_k) ||
         present(params.seqused_q) || present(params.seqused_k) || has_score_terms(params) ||
         present(params.visible) || params.dropout_p > 0 || params.dropout_seed_out ||
         params.dropout_offset_out || present(params.kept) || present(params.block_table);
}

uint64_t functional_key(const Problem &problem) {
  const flydsl_aot_mask &mask = problem.params->mask;
  const HeadDims *dims = class_of(problem.head_dim_qk, problem.head_dim_v);
  if (!dims) return 0;  // an empty problem; nothing is looked up for it
  const bool general = !has_exact_instances(problem.head_dim_qk, problem.head_dim_v) ||
                       left_bound_hides(mask, problem.seq_q, problem.seq_k) ||
                       needs_general_instance(*problem.params);
  // Query 0 sees the fewest keys: when it sees all of them, the right bound hides nothing.
  const bool bounded = !general && problem.mask_shift < problem.seq_k - 1;
  return flydsl_aot_attention_forward_key(static_cast<uint64_t>(element_type(*problem.params)),
                                          static_cast<uint64_t>(dims->qk),
                                          static_cast<uint64_t>(dims->v), bounded, general);
}

// As many keys as a row of the block table has room for, or fewer if the caller says so.
int64_t longest_paged(const Params &params) {
  if (params.k.sizes[kBatch] == 0) return 0;
  int64_t room = 0;
  if (__builtin_mul_overflow(params.block_table.sizes[1], params.k.sizes[kSeq], &room))
    room = INT64_MAX;
  return params.max_seqlen_k > 0 ? std::min(params.max_seqlen_k, room) : room;
}

}  // namespace

bool has_score_terms(const Params &params) {
  return params.softcap > 0 || present(params.bias) || present(params.alibi_slopes) ||
         present(params.sinks) || present(params.q_descale) || present(params.k_descale);
}

Sizes sizes_of(const Params &params) {
  const auto size = [](const flydsl_aot_tensor &tensor, Axis axis) {
    return tensor.sizes[axis - (4 - tensor.rank)];
  };
  Sizes sizes{};
  const bool packed_q = present(params.cu_seqlens_q), packed_k = present(params.cu_seqlens_k);
  sizes.batches = packed_q ? params.cu_seqlens_q.sizes[0] - 1 : params.q.sizes[kBatch];
  sizes.heads_q = size(params.q, kHead);
  sizes.heads_kv = size(params.k, kHead);
  sizes.total_q = size(params.q, kSeq);
  sizes.total_k = size(params.k, kSeq);
  sizes.seq_q = packed_q ? params.max_seqlen_q : sizes.total_q;
  sizes.seq_k = packed_k ? params.max_seqlen_k : sizes.total_k;
  if (present(params.block_table)) sizes.seq_k = sizes.total_k = longest_paged(params);
  sizes.head_dim_qk = size(params.q, kDim);
  sizes.head_dim_v = size(params.v, kDim);
  return sizes;
}

const HeadDims *class_of(int64_t head_dim_qk, int64_t head_dim_v) {
  for (const HeadDims &dims : kClasses) {
    if (head_dim_qk <= dims.qk && head_dim_v <= dims.v) return &dims;
  }
  return nullptr;
}

std::string class_list() {
  std::string list;
  for (const HeadDims &dims : kClasses)
    list += (list.empty() ? "" : ", ") + std::to_string(dims.qk) + "/" + std::to_string(dims.v);
  return list;
}

Problem describe(const Params &params) {
  Problem problem{};
  static_cast<Sizes &>(problem) = sizes_of(params);
  problem.params = &params;
  problem.empty = empty(params.out) || problem.batches == 0 || problem.seq_q == 0;
  problem.mask_shift = mask_shift(params.mask, problem.seq_q, problem.seq_k);
  problem.key.op = kName;
  problem.key.functional_key = functional_key(problem);
  problem.key.align_bytes = align_bytes(params);
  problem.key.seq_q = static_cast<uint64_t>(problem.seq_q);
  problem.key.seq_k = static_cast<uint64_t>(problem.seq_k);
  return problem;
}

}  // namespace flydsl::attention_forward
