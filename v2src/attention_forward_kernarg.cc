// The kernel arguments of a described attention_forward problem
// (codegen/describe/attention_forward/arguments.py).
#include "v2src/attention_arguments.h"
#include "v2src/attention_forward.h"
#include "v2src/tensor_check.h"

namespace flydsl::attention_forward {
namespace {

void set_formats(const Problem &problem, Kernarg *kernarg) {
  const Params &params = *problem.params;
  kernarg->q_format = format_of(params.q.dtype);
  kernarg->kv_format = format_of(params.k.dtype);
  set_per_head(params.q_descale, &kernarg->q_descale, &kernarg->q_descale_stride_b,
               &kernarg->q_descale_stride_h);
  set_per_head(params.k_descale, &kernarg->k_descale, &kernarg->k_descale_stride_b,
               &kernarg->k_descale_stride_h);
  set_per_head(params.v_descale, &kernarg->v_descale, &kernarg->v_descale_stride_b,
               &kernarg->v_descale_stride_h);
  const flydsl_aot_tensor &q_descale = params.q_descale;
  kernarg->q_descale_by_kv =
      present(q_descale) && q_descale.sizes[q_descale.rank - 1] == problem.heads_kv;
}

void set_dropout_outputs(const Params &params, Kernarg *kernarg) {
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
  set_mask(params, &kernarg);
  kernarg.cu_seqlens_q = numbers(params.cu_seqlens_q);
  kernarg.cu_seqlens_k = numbers(params.cu_seqlens_k);
  kernarg.seqused_q = numbers(params.seqused_q);
  kernarg.seqused_k = numbers(params.seqused_k);
  kernarg.total_q = static_cast<int32_t>(problem.total_q);
  kernarg.total_k = static_cast<int32_t>(problem.total_k);
  set_formats(problem, &kernarg);
  set_paging(params, &kernarg);
  kernarg.score_terms = has_score_terms(params);
  set_score_terms(params, &kernarg);
  set_terms_of_pairs(params, &kernarg);
  set_dropout(params, &kernarg);
  set_dropout_outputs(params, &kernarg);
  return kernarg;
}

}  // namespace flydsl::attention_forward
