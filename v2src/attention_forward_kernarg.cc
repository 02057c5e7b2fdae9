// The kernel arguments of a described attention_forward problem
// (codegen/describe/attention_forward/arguments.py).
#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>

#include "v2src/attention_forward.h"
#include "v2src/tensor_check.h"

namespace flydsl::attention_forward {
namespace {

// Of a tensor with batch, head and sequence axes and `inner` more; a packed one has no batch axis.
void set_strides(const flydsl_aot_tensor &tensor, int inner, int64_t *batch, int64_t *head,
                 int64_t *seq) {
  const int packed = 3 + inner - tensor.rank;
  *batch = packed ? 0 : walked_stride(tensor, kBatch);
  *head = walked_stride(tensor, kHead - packed);
  *seq = walked_stride(tensor, kSeq - packed);
}

const int32_t *numbers(const flydsl_aot_tensor &tensor) {
  return present(tensor) ? static_cast<const int32_t *>(tensor.data) : nullptr;
}

// The sign and the zero of the scale go into Q's bits, exactly, so that the kernel's scale is
// positive and the running maximum may be taken over the raw products.
void set_scale(float scale, Kernarg *kernarg) {
  kernarg->scale_log2 =
      scale == 0 ? 1.0f : static_cast<float>(std::fabs(static_cast<double>(scale)) * M_LOG2E);
  kernarg->q_and = scale == 0 ? 0u : 0xffffffffu;
  kernarg->q_xor = scale < 0 ? 0x80008000u : 0u;
}

// A bound as the kernel takes it: none of 2^30 or more hides anything from fewer keys.
int32_t window_bound(int64_t bound) {
  return static_cast<int32_t>(std::min(bound, kMaxSize));
}

void set_paging(const Params &params, Kernarg *kernarg) {
  if (!present(params.block_table)) return;
  kernarg->block_table = static_cast<const int32_t *>(params.block_table.data);
  kernarg->block_table_stride_b = walked_stride(params.block_table, 0);
  kernarg->block_shift =
      static_cast<uint32_t>(std::countr_zero(static_cast<uint64_t>(params.k.sizes[kSeq])));
  kernarg->last_block =
      static_cast<int32_t>(std::min<int64_t>(params.k.sizes[kBatch] - 1, INT32_MAX));
}

// common/float8.hip.h
uint32_t format_of(const flydsl_aot_tensor &tensor) {
  return tensor.dtype == FLYDSL_AOT_E4M3 ? 1 : tensor.dtype == FLYDSL_AOT_E5M2 ? 2 : 0;
}

void set_formats(const Problem &problem, Kernarg *kernarg) {
  const Params &params = *problem.params;
  kernarg->q_format = format_of(params.q);
  kernarg->kv_format = format_of(params.k);
  const auto set = [](const flydsl_aot_tensor &descale, const float **data, int64_t *batch,
                      int64_t *head) {
    if (!present(descale)) return;
    *data = static_cast<const float *>(descale.data);
    *batch = descale.rank == 2 ? walked_stride(descale, 0) : 0;
    *head = walked_stride(descale, descale.rank - 1);
  };
  set(params.q_descale, &kernarg->q_descale, &kernarg->q_descale_stride_b,
      &kernarg->q_descale_stride_h);
  set(params.k_descale, &kernarg->k_descale, &kernarg->k_descale_stride_b,
      &kernarg->k_descale_stride_h);
  set(params.v_descale, &kernarg->v_descale, &kernarg->v_descale_stride_b,
      &kernarg->v_descale_stride_h);
  const flydsl_aot_tensor &q_descale = params.q_descale;
  kernarg->q_descale_by_kv =
      present(q_descale) && q_descale.sizes[q_descale.rank - 1] == problem.heads_kv;
}

void set_score_terms(const Params &params, Kernarg *kernarg) {
  kernarg->score_terms = has_score_terms(params);
  if (params.softcap > 0) {
    const double scale = params.scale == 0 ? 1 : std::fabs(static_cast<double>(params.scale));
    const double cap = static_cast<double>(params.softcap);
    // Not infinite, since a product of 0 must stay 0.
    kernarg->softcap_ratio =
        static_cast<float>(std::min(scale / cap, static_cast<double>(FLT_MAX)));
    kernarg->softcap_log2 = static_cast<float>(cap * M_LOG2E);
  }
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
  if (const flydsl_aot_tensor &slopes = params.alibi_slopes; present(slopes)) {
    kernarg->alibi_slopes = static_cast<const float *>(slopes.data);
    kernarg->alibi_stride_b = slopes.rank == 2 ? stride(slopes, 0) : 0;
    kernarg->alibi_stride_h = stride(slopes, slopes.rank - 1);
  }
  if (const flydsl_aot_tensor &sinks = params.sinks; present(sinks)) {
    kernarg->sinks = static_cast<const float *>(sinks.data);
    kernarg->sinks_stride_h = stride(sinks, 0);
  }
  if (const flydsl_aot_tensor &visible = params.visible; present(visible)) {
    kernarg->visible = visible.data;
    kernarg->visible_stride_b = stride(visible, 0);
    kernarg->visible_stride_h = stride(visible, 1);
    kernarg->visible_stride_q = stride(visible, 2);
    kernarg->visible_stride_k = stride(visible, 3);
  }
}

void set_dropout(const Params &params, Kernarg *kernarg) {
  const double p = static_cast<double>(params.dropout_p);
  kernarg->dropout_threshold = static_cast<uint32_t>(p * 0x1p32);
  kernarg->dropout_scale = static_cast<float>(1 / (1 - p));
  kernarg->dropout_seed = params.dropout_seed;
  kernarg->dropout_offset = params.dropout_offset;
  kernarg->dropout_seed_device = params.dropout_seed_device;
  kernarg->dropout_offset_device = params.dropout_offset_device;
  kernarg->dropout_seed_out = params.dropout_seed_out;
  kernarg->dropout_offset_out = params.dropout_offset_out;
  if (!present(params.kept)) return;
  kernarg->kept = params.kept.data;
  kernarg->kept_stride_b = walked_stride(params.kept, 0);
  kernarg->kept_stride_h = walked_stride(params.kept, 1);
  kernarg->kept_stride_q = walked_stride(params.kept, 2);
  kernarg->kept_stride_k = walked_stride(params.kept, 3);
}

}  // namespace

Kernarg kernarg_of(const Problem &problem, const LinearTiles &tiles) {
  const Params &params = *problem.params;
  Kernarg kernarg{};
  kernarg.q = params.q.data;
  kernarg.k = params.k.data;
  kernarg.v = params.v.data;
  kernarg.out = params.out.data;
  set_strides(params.q, 1, &kernarg.q_stride_b, &kernarg.q_stride_h, &kernarg.q_stride_s);
  set_strides(params.k, 1, &kernarg.k_stride_b, &kernarg.k_stride_h, &kernarg.k_stride_s);
  set_strides(params.v, 1, &kernarg.v_stride_b, &kernarg.v_stride_h, &kernarg.v_stride_s);
  set_strides(params.out, 1, &kernarg.out_stride_b, &kernarg.out_stride_h, &kernarg.out_stride_s);
  if (present(params.lse)) {
    kernarg.lse = static_cast<float *>(params.lse.data);
    set_strides(params.lse, 0, &kernarg.lse_stride_b, &kernarg.lse_stride_h, &kernarg.lse_stride_s);
  }
  kernarg.seq_q = static_cast<int32_t>(problem.seq_q);
  kernarg.seq_k = static_cast<int32_t>(problem.seq_k);
  kernarg.heads_q = static_cast<int32_t>(problem.heads_q);
  kernarg.heads_per_kv = static_cast<int32_t>(problem.heads_q / problem.heads_kv);
  kernarg.batches = static_cast<int32_t>(problem.batches);
  kernarg.grid_x = tiles.grid_x;
  kernarg.row_tiles = tiles.row_tiles;
  set_scale(params.scale, &kernarg);
  kernarg.head_dim_qk = static_cast<int32_t>(problem.head_dim_qk);
  kernarg.head_dim_v = static_cast<int32_t>(problem.head_dim_v);
  kernarg.window_left = window_bound(params.mask.left);
  kernarg.window_right = window_bound(params.mask.right);
  kernarg.bottom_right =
      params.mask.anchor != FLYDSL_AOT_ANCHOR_TOP_LEFT;  // with none only for ALiBi
  kernarg.cu_seqlens_q = numbers(params.cu_seqlens_q);
  kernarg.cu_seqlens_k = numbers(params.cu_seqlens_k);
  kernarg.seqused_q = numbers(params.seqused_q);
  kernarg.seqused_k = numbers(params.seqused_k);
  kernarg.total_q = static_cast<int32_t>(problem.total_q);
  kernarg.total_k = static_cast<int32_t>(problem.total_k);
  set_formats(problem, &kernarg);
  set_paging(params, &kernarg);
  set_score_terms(params, &kernarg);
  set_dropout(params, &kernarg);
  return kernarg;
}

}  // namespace flydsl::attention_forward
