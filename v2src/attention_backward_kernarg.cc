// The kernel arguments of a described attention_backward problem
// (codegen/describe/attention_backward/arguments.py).
#include "v2src/attention_arguments.h"
#include "v2src/attention_backward.h"
#include "v2src/tensor_check.h"

namespace flydsl::attention_backward {
namespace {

void set_tensors(const Params &params, Kernarg *kernarg) {
  kernarg->q = params.q.data;
  kernarg->k = params.k.data;
  kernarg->v = params.v.data;
  kernarg->out = params.out.data;
  kernarg->dout = params.dout.data;
  kernarg->lse = static_cast<const float *>(params.lse.data);
  set_strides(params.q, 1, &kernarg->q_stride_b, &kernarg->q_stride_h, &kernarg->q_stride_s);
  set_strides(params.k, 1, &kernarg->k_stride_b, &kernarg->k_stride_h, &kernarg->k_stride_s);
  set_strides(params.v, 1, &kernarg->v_stride_b, &kernarg->v_stride_h, &kernarg->v_stride_s);
  set_strides(params.out, 1, &kernarg->out_stride_b, &kernarg->out_stride_h,
              &kernarg->out_stride_s);
  set_strides(params.dout, 1, &kernarg->dout_stride_b, &kernarg->dout_stride_h,
              &kernarg->dout_stride_s);
  const int last = params.dout.rank - 1;
  kernarg->dout_stride_d = params.dout.sizes[last] > 1 ? params.dout.strides[last] : 1;
  set_strides(params.lse, 0, &kernarg->lse_stride_b, &kernarg->lse_stride_h,
              &kernarg->lse_stride_s);
  kernarg->lse_is_padded = present(params.cu_seqlens_q) && params.lse.rank == 3;
}

void set_gradients(const Params &params, Kernarg *kernarg) {
  const auto set = [](const flydsl_aot_tensor &tensor, void **data, int64_t *batch, int64_t *head,
                      int64_t *seq) {
    if (!wanted(tensor)) return;
    *data = tensor.data;
    set_strides(tensor, 1, batch, head, seq);
  };
  set(params.dq, &kernarg->dq, &kernarg->dq_stride_b, &kernarg->dq_stride_h, &kernarg->dq_stride_s);
  set(params.dk, &kernarg->dk, &kernarg->dk_stride_b, &kernarg->dk_stride_h, &kernarg->dk_stride_s);
  set(params.dv, &kernarg->dv, &kernarg->dv_stride_b, &kernarg->dv_stride_h, &kernarg->dv_stride_s);
  if (const flydsl_aot_tensor &dsinks = params.dsinks; wanted(dsinks)) {
    kernarg->dsinks = static_cast<float *>(dsinks.data);
    kernarg->dsinks_stride_h = walked_stride(dsinks, 0);
  }
  const flydsl_aot_tensor &dbias = params.dbias;
  if (!wanted(dbias)) return;
  kernarg->dbias = dbias.data;
  kernarg->dbias_is_fp32 = dbias.dtype == FLYDSL_AOT_FP32;
  kernarg->dbias_stride_b = walked_stride(dbias, 0);
  kernarg->dbias_stride_h = walked_stride(dbias, 1);
  kernarg->dbias_stride_q = walked_stride(dbias, 2);
  kernarg->dbias_stride_k = walked_stride(dbias, 3);
  kernarg->dbias_batches = static_cast<int32_t>(dbias.sizes[0]);
  kernarg->dbias_heads = static_cast<int32_t>(dbias.sizes[1]);
  kernarg->dbias_rows = static_cast<int32_t>(dbias.sizes[2]);
  kernarg->dbias_keys = static_cast<int32_t>(dbias.sizes[3]);
}

void set_workspace(const Problem &problem, const Workspace &workspace, Kernarg *kernarg) {
  char *const base = static_cast<char *>(problem.params->workspace);
  kernarg->row_lse = reinterpret_cast<float *>(base + workspace.row_lse);
  kernarg->row_delta = reinterpret_cast<float *>(base + workspace.row_delta);
  kernarg->rows_stride = workspace.rows_stride;
  if (problem.copies_dout) {
    const int64_t row = workspace.dout_copy_row;
    kernarg->dout_copy = base + workspace.dout_copy;
    kernarg->dout_copy_stride_s = row;
    kernarg->dout_copy_stride_h = problem.total_q * row;
    kernarg->dout_copy_stride_b =
        present(problem.params->cu_seqlens_q) ? 0 : problem.heads_q * kernarg->dout_copy_stride_h;
  }
  if (workspace.dq_accumulator_row == 0) return;
  kernarg->dq_accumulator = reinterpret_cast<float *>(base + workspace.dq_accumulator);
  kernarg->dq_accumulator_stride = workspace.dq_accumulator_row;
  kernarg->dq_counters = base + workspace.dq_counters;
  kernarg->dq_counter_count = workspace.dq_counters_count;
}

}  // namespace

Kernarg kernarg_of(const Problem &problem, const Workspace &workspace) {
  const Params &params = *problem.params;
  Kernarg kernarg{};
  set_tensors(params, &kernarg);
  set_gradients(params, &kernarg);
  if (problem.has_rows) set_workspace(problem, workspace, &kernarg);
  kernarg.seq_q = static_cast<int32_t>(problem.seq_q);
  kernarg.seq_k = static_cast<int32_t>(problem.seq_k);
  kernarg.heads_q = static_cast<int32_t>(problem.heads_q);
  kernarg.heads_kv = static_cast<int32_t>(problem.heads_kv);
  kernarg.heads_per_kv =
      problem.heads_kv == 0 ? 0 : static_cast<int32_t>(problem.heads_q / problem.heads_kv);
  kernarg.batches = static_cast<int32_t>(problem.batches);
  set_scale(params.scale, &kernarg);
  kernarg.scale = params.scale;
  set_mask(params, &kernarg);
  kernarg.cu_seqlens_q = numbers(params.cu_seqlens_q);
  kernarg.cu_seqlens_k = numbers(params.cu_seqlens_k);
  kernarg.seqused_q = numbers(params.seqused_q);
  kernarg.seqused_k = numbers(params.seqused_k);
  kernarg.total_q = static_cast<int32_t>(problem.total_q);
  kernarg.total_k = static_cast<int32_t>(problem.total_k);
  kernarg.head_dim_qk = static_cast<int32_t>(problem.head_dim_qk);
  kernarg.head_dim_v = static_cast<int32_t>(problem.head_dim_v);
  kernarg.score_terms = problem.score_terms;
  set_score_terms(params, &kernarg);
  set_terms_of_pairs(params, &kernarg);
  set_dropout(params, &kernarg);
  return kernarg;
}

void set_pass(const Problem &problem, const archive::Entry &entry, const Step &step,
              Kernarg *kernarg) {
  kernarg->grid_x = step.grid.grid_x;
  kernarg->row_tiles = step.grid.row_tiles;
  if (step.pass == Pass::bias) {
    kernarg->dbias_row_tiles = tiles_of(kernarg->dbias_rows, entry.tile[0]);
    kernarg->dbias_key_tiles = tiles_of(kernarg->dbias_keys, entry.tile[1]);
  }
  if (step.pass == Pass::prepare || step.pass == Pass::prepare_rows || !problem.copies_dout) return;
  // What `prepare` has copied is read from the copy.
  kernarg->dout = kernarg->dout_copy;
  kernarg->dout_stride_b = kernarg->dout_copy_stride_b;
  kernarg->dout_stride_h = kernarg->dout_copy_stride_h;
  kernarg->dout_stride_s = kernarg->dout_copy_stride_s;
  kernarg->dout_stride_d = 1;
}

}  // namespace flydsl::attention_backward
