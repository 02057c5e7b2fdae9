// The kernel arguments of a gemm problem (codegen/describe/gemm/arguments.py).
#include "v2src/gemm.h"

namespace flydsl::gemm {
namespace {

uint32_t dtype_of(const flydsl_aot_tensor &tensor) {
  return static_cast<uint32_t>(tensor.dtype);
}

// Members of one matrix; nothing where it is absent. The stride of an axis of one is 1, so that contiguous elements are what
// kernels find where it does not matter.
template <class Data>
void set_matrix(const Matrix &matrix, int64_t rows, int64_t columns, Data *data, int64_t *batch,
                int64_t *row, int64_t *column, uint32_t *dtype) {
  if (!matrix.tensor) return;
  *data = matrix.tensor->data;
  *batch = matrix.stride_batch;
  *row = rows > 1 ? matrix.stride_row : 1;
  *column = columns > 1 ? matrix.stride_column : 1;
  *dtype = dtype_of(*matrix.tensor);
}

template <class Data>
void set_vector(const Vector &vector, Data *data, int64_t *batch, int64_t *stride) {
  if (!vector.tensor) return;
  *data = static_cast<Data>(vector.tensor->data);
  *batch = vector.stride_batch;
  *stride = vector.stride;
}

}  // namespace

Kernarg kernarg_of(const Problem &problem, const Plan &plan) {
  Kernarg to{};
  const int64_t m = problem.m, n = problem.n, k = problem.k;
  set_matrix(problem.a, m, k, &to.a, &to.a_stride_b, &to.a_stride_m, &to.a_stride_k, &to.a_dtype);
  set_matrix(problem.b, k, n, &to.b, &to.b_stride_b, &to.b_stride_k, &to.b_stride_n, &to.b_dtype);
  set_matrix(problem.c, m, n, &to.c, &to.c_stride_b, &to.c_stride_m, &to.c_stride_n, &to.c_dtype);
  set_matrix(problem.d, m, n, &to.d, &to.d_stride_b, &to.d_stride_m, &to.d_stride_n, &to.d_dtype);
  set_matrix(problem.residual, m, n, &to.residual, &to.residual_stride_b, &to.residual_stride_m,
             &to.residual_stride_n, &to.residual_dtype);
  set_matrix(problem.aux, m, n, &to.aux, &to.aux_stride_b, &to.aux_stride_m, &to.aux_stride_n,
             &to.aux_dtype);
  set_vector(problem.bias_m, &to.bias_m, &to.bias_m_stride_b, &to.bias_m_stride_m);
  set_vector(problem.bias_n, &to.bias_n, &to.bias_n_stride_b, &to.bias_n_stride_n);
  if (problem.bias_m.tensor) to.bias_m_dtype = dtype_of(*problem.bias_m.tensor);
  if (problem.bias_n.tensor) to.bias_n_dtype = dtype_of(*problem.bias_n.tensor);
  set_vector(problem.a_descale, &to.a_descale, &to.a_descale_stride_b, &to.a_descale_stride_m);
  set_vector(problem.b_descale, &to.b_descale, &to.b_descale_stride_b, &to.b_descale_stride_n);
  const Params &params = *problem.params;
  if (params.d_scale.rank != 0) to.d_scale = static_cast<const float *>(params.d_scale.data);
  to.partials = static_cast<float *>(params.workspace);
  to.alpha = params.alpha;
  to.beta = params.beta;
  to.activation = static_cast<uint32_t>(params.epilogue.activation);
  to.gradient = static_cast<uint32_t>(params.epilogue.gradient);
  to.m = static_cast<int32_t>(m);
  to.n = static_cast<int32_t>(n);
  to.k = static_cast<int32_t>(k);
  to.batches = static_cast<uint32_t>(problem.batches);
  to.row_tiles = static_cast<uint32_t>(plan.row_tiles);
  to.column_tiles = static_cast<uint32_t>(plan.column_tiles);
  to.splits = static_cast<uint32_t>(plan.splits);
  to.split_k = static_cast<int32_t>(plan.split_k);
  to.whole_tiles = static_cast<uint32_t>(plan.whole_tiles);
  to.part_tiles = static_cast<uint32_t>(plan.part_tiles);
  to.tile_rows = static_cast<uint32_t>(plan.tile_rows);
  to.tile_columns = static_cast<uint32_t>(plan.tile_columns);
  to.tiles = static_cast<uint32_t>(plan.items);
  to.grid_x = plan.grid.grid_x;
  return to;
}

Status set_sum(const Sum &sum, const archive::Entry &entry, Kernarg *kernarg, LinearTiles *grid) {
  FLYDSL_RETURN_IF_ERROR(linear_tiles(sum.rows, sum.batches, 1, entry.tile[0], grid));
  Kernarg to{};
  set_matrix(sum.matrix, sum.rows, sum.columns, &to.a, &to.a_stride_b, &to.a_stride_m,
             &to.a_stride_k, &to.a_dtype);
  set_vector(sum.to, &to.d, &to.d_stride_b, &to.d_stride_m);
  to.d_dtype = dtype_of(*sum.to.tensor);
  to.m = static_cast<int32_t>(sum.rows);
  to.k = static_cast<int32_t>(sum.columns);
  to.batches = static_cast<uint32_t>(sum.batches);
  to.splits = static_cast<uint32_t>(sum.count);
  to.row_tiles = grid->row_tiles;
  to.tiles = grid->row_tiles * to.batches;
  to.grid_x = grid->grid_x;
  *kernarg = to;
  return {};
}

}  // namespace flydsl::gemm
