// Kernel arguments that the attention operators share. Their structures are generated, an operator's from its own
// description, and name these members alike.
#pragma once

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <initializer_list>

#include "v2src/tensor_check.h"

namespace flydsl {

// Whether instances for head dims below their class's take this one.
inline bool is_nearly(int64_t head_dim, int64_t of_class) {
  return head_dim % 8 == 0 && of_class - head_dim < 32;
}

// Limit of sizes that the headers state.
constexpr int64_t kMaxAttentionSize = int64_t{1} << 30;

inline uint64_t align_bytes(std::initializer_list<const flydsl_aot_tensor *> tensors) {
  uint64_t mask = 4096;  // more alignment than that is not told apart
  for (const flydsl_aot_tensor *tensor : tensors) mask |= alignment_mask(*tensor);
  return mask & (~mask + 1);
}

// As many keys as a row of the block table has room for, or fewer if the caller says so. `k` is
// (blocks, Hkv, block size, D).
inline int64_t longest_paged(const flydsl_aot_tensor &block_table, const flydsl_aot_tensor &k,
                             int64_t max_seqlen_k) {
  if (k.sizes[0] == 0) return 0;
  int64_t room = 0;
  if (__builtin_mul_overflow(block_table.sizes[1], k.sizes[2], &room)) room = INT64_MAX;
  return max_seqlen_k > 0 ? std::min(max_seqlen_k, room) : room;
}

// A bound as the kernel takes it: none of 2^30 or more hides anything from fewer keys.
inline int32_t window_bound(int64_t bound) {
  return static_cast<int32_t>(std::min(bound, kMaxAttentionSize));
}

// common/float8.hip.h
inline uint32_t format_of(flydsl_aot_dtype dtype) {
  return dtype == FLYDSL_AOT_E4M3 ? 1 : dtype == FLYDSL_AOT_E5M2 ? 2 : 0;
}

// |scale| * log2(e); 1 for a scale of 0, which the sign makes 0.
inline float scale_log2_of(float scale) {
  return scale == 0 ? 1.0f : static_cast<float>(std::fabs(static_cast<double>(scale)) * M_LOG2E);
}

// (H) or (B, H), fp32.
inline void set_per_head(const flydsl_aot_tensor &tensor, const float **data, int64_t *batch,
                         int64_t *head) {
  if (!present(tensor)) return;
  *data = static_cast<const float *>(tensor.data);
  *batch = tensor.rank == 2 ? walked_stride(tensor, 0) : 0;
  *head = walked_stride(tensor, tensor.rank - 1);
}

// Of a tensor with batch, head and sequence axes and `inner` more; a packed one has no batch axis.
inline void set_strides(const flydsl_aot_tensor &tensor, int inner, int64_t *batch, int64_t *head,
                        int64_t *seq) {
  const int packed = 3 + inner - tensor.rank;
  *batch = packed ? 0 : walked_stride(tensor, 0);
  *head = walked_stride(tensor, 1 - packed);
  *seq = walked_stride(tensor, 2 - packed);
}

inline const int32_t *numbers(const flydsl_aot_tensor &tensor) {
  return present(tensor) ? static_cast<const int32_t *>(tensor.data) : nullptr;
}

// The sign and the zero of the scale go into Q's bits, exactly, so that the kernel's scale is
// positive and the running maximum may be taken over the raw products.
template <class Kernarg>
void set_scale(float scale, Kernarg *kernarg) {
  kernarg->scale_log2 = scale_log2_of(scale);
  kernarg->q_and = scale == 0 ? 0u : 0xffffffffu;
  kernarg->q_xor = scale < 0 ? 0x80008000u : 0u;
}

template <class Params, class Kernarg>
void set_mask(const Params &params, Kernarg *kernarg) {
  kernarg->window_left = window_bound(params.mask.left);
  kernarg->window_right = window_bound(params.mask.right);
  // Without an anchor it counts for ALiBi only.
  kernarg->bottom_right = params.mask.anchor != FLYDSL_AOT_ANCHOR_TOP_LEFT;
}

template <class Params, class Kernarg>
void set_paging(const Params &params, Kernarg *kernarg) {
  if (!present(params.block_table)) return;
  kernarg->block_table = static_cast<const int32_t *>(params.block_table.data);
  kernarg->block_table_stride_b = walked_stride(params.block_table, 0);
  kernarg->block_shift =
      static_cast<uint32_t>(std::countr_zero(static_cast<uint64_t>(params.k.sizes[2])));
  kernarg->last_block = static_cast<int32_t>(std::min<int64_t>(params.k.sizes[0] - 1, INT32_MAX));
}

// Softcap, ALiBi, sinks.
template <class Params, class Kernarg>
void set_score_terms(const Params &params, Kernarg *kernarg) {
  if (params.softcap > 0) {
    const double scale = params.scale == 0 ? 1 : std::fabs(static_cast<double>(params.scale));
    const double cap = static_cast<double>(params.softcap);
    // Not infinite, since a product of 0 must stay 0.
    kernarg->softcap_ratio =
        static_cast<float>(std::min(scale / cap, static_cast<double>(FLT_MAX)));
    kernarg->softcap_log2 = static_cast<float>(cap * M_LOG2E);
  }
  set_per_head(params.alibi_slopes, &kernarg->alibi_slopes, &kernarg->alibi_stride_b,
               &kernarg->alibi_stride_h);
  if (const flydsl_aot_tensor &sinks = params.sinks; present(sinks)) {
    kernarg->sinks = static_cast<const float *>(sinks.data);
    kernarg->sinks_stride_h = walked_stride(sinks, 0);
  }
}

// Bias and boolean mask.
template <class Params, class Kernarg>
void set_terms_of_pairs(const Params &params, Kernarg *kernarg) {
  const auto stride = [](const flydsl_aot_tensor &tensor, int axis) {
    return walked_stride(tensor, axis);
  };
  if (const flydsl_aot_tensor &bias = params.bias; present(bias)) {
    kernarg->bias = bias.data;
    kernarg->bias_is_fp32 = bias.dtype == FLYDSL_AOT_FP32;
    kernarg->bias_stride_b = stride(bias, 0);
    kernarg->bias_stride_h = stride(bias, 1);
    kernarg->bias_stride_q = stride(bias, 2);
    kernarg->bias_stride_k = stride(bias, 3);
  }
  if (const flydsl_aot_tensor &visible = params.visible; present(visible)) {
    kernarg->visible = visible.data;
    kernarg->visible_stride_b = stride(visible, 0);
    kernarg->visible_stride_h = stride(visible, 1);
    kernarg->visible_stride_q = stride(visible, 2);
    kernarg->visible_stride_k = stride(visible, 3);
  }
}

// Without its outputs.
template <class Params, class Kernarg>
void set_dropout(const Params &params, Kernarg *kernarg) {
  const double p = static_cast<double>(params.dropout_p);
  kernarg->dropout_threshold = static_cast<uint32_t>(p * 0x1p32);
  kernarg->dropout_scale = static_cast<float>(1 / (1 - p));
  kernarg->dropout_seed = params.dropout_seed;
  kernarg->dropout_offset = params.dropout_offset;
  kernarg->dropout_seed_device = params.dropout_seed_device;
  kernarg->dropout_offset_device = params.dropout_offset_device;
}

}  // namespace flydsl
