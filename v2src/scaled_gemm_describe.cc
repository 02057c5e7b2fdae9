// A checked scaled_gemm problem as what selection looks up, and its kernel arguments (codegen/describe/scaled_gemm.py).
#include <algorithm>
#include <utility>

#include "v2src/scaled_gemm.h"
#include "v2src/tensor_check.h"

namespace flydsl::scaled_gemm {
namespace {

// 0 for a tensor that has no batches: the same for all.
int64_t batch_stride(const flydsl_aot_tensor &tensor, int32_t full_rank) {
  return tensor.rank == full_rank ? walked_stride(tensor, 0) : 0;
}
int64_t stride_of(const flydsl_aot_tensor &tensor, FromLast axis) {
  return walked_stride(tensor, tensor.rank - axis);
}

// One operand as the kernel sees it: its rows are those of A or columns of B.
struct Side {
  const flydsl_aot_tensor &data, &scale;
  FromLast rows, k;
};
Side side_a(const Params &params) {
  return {params.a, params.a_scale, kSecond, kLast};
}
Side side_b(const Params &params) {
  return {params.b, params.b_scale, kLast, kSecond};
}

// From row to row of scales; shuffled: all of a row.
int64_t scale_row_bytes(const Side &side, bool shuffled) {
  return shuffled ? size_of(side.scale, kLast) : stride_of(side.scale, kSecond);
}

void set_side(const Side &side, bool shuffled, const void **data, int64_t *stride_b,
              int64_t *stride_row, int64_t *stride_k, const void **scale, int64_t *scale_stride_b,
              int64_t *scale_stride_row, int64_t *scale_stride_k) {
  *data = side.data.data;
  *stride_b = batch_stride(side.data, 3);
  *stride_row = stride_of(side.data, side.rows);
  *stride_k = stride_of(side.data, side.k);
  *scale = side.scale.data;
  *scale_stride_b = batch_stride(side.scale, 3);
  *scale_stride_row = scale_row_bytes(side, shuffled);
  *scale_stride_k = shuffled ? 1 : stride_of(side.scale, kLast);
}

bool is_shuffled(const Params &params) {
  return params.scale_layout == FLYDSL_AOT_SCALES_SHUFFLED_32_8;
}

// Whether the instances for large matrices take the problem, whatever its alignment: K contiguous and in whole slabs, offsets
// inside a tile within 31 bits. Plain scales of 8 blocks are read at once.
bool is_fast(const Params &params, const Problem &problem) {
  const bool bytes = params.a.dtype != FLYDSL_AOT_E2M1X2;
  const int64_t whole = bytes && is_shuffled(params) ? 128 : 256;
  if (problem.k == 0 || problem.k % whole != 0) return false;
  for (const Side &side : {side_a(params), side_b(params)}) {
    constexpr int64_t kMostRowBytes = int64_t{1} << 22;
    if (stride_of(side.data, side.k) != 1 || stride_of(side.data, side.rows) >= kMostRowBytes ||
        scale_row_bytes(side, is_shuffled(params)) >= kMostRowBytes)
      return false;
    if (!is_shuffled(params) && stride_of(side.scale, kLast) != 1) return false;
  }
  return problem.m > 64 && problem.n > 64;
}

// Of what is copied in pieces of 16 bytes, or of 4 where scales are.
uint64_t alignment_of(const Params &params) {
  uint64_t mask = 4096;  // more alignment than that is not told apart
  for (const Side &side : {side_a(params), side_b(params)})
    mask |= alignment_mask(stored_view(side.data, side.k)) | alignment_mask(side.scale) * 4;
  return mask & (~mask + 1);
}

}  // namespace

Problem describe(const Params &params) {
  Problem problem{};
  problem.params = &params;
  problem.empty = empty(params.d);
  if (problem.empty) return problem;
  problem.batches = params.d.rank == 3 ? params.d.sizes[0] : 1;
  problem.m = size_of(params.d, kSecond);
  problem.n = size_of(params.d, kLast);
  problem.k = size_of(params.a, kLast);
  problem.transposed = problem.n > 1 && problem.m > 1 && stride_of(params.d, kLast) != 1 &&
                       stride_of(params.d, kSecond) == 1;
  Side a = side_a(params), b = side_b(params);
  uint64_t a_dtype = static_cast<uint64_t>(a.data.dtype),
           b_dtype = static_cast<uint64_t>(b.data.dtype);
  if (problem.transposed) {
    std::swap(problem.m, problem.n);
    std::swap(a_dtype, b_dtype);
  }
  problem.key.op = kName;
  problem.key.functional_key = flydsl_aot_scaled_gemm_key(a_dtype, b_dtype, 0, 0);
  problem.key.align_bytes = alignment_of(params);
  if (is_fast(params, problem)) {
    problem.key.fallback_keys[problem.key.fallbacks++] = problem.key.functional_key;
    problem.key.functional_key =
        flydsl_aot_scaled_gemm_key(a_dtype, b_dtype, 1, is_shuffled(params));
  }
  problem.key.seq_q = static_cast<uint64_t>(problem.m);
  problem.key.seq_k = static_cast<uint64_t>(problem.k);
  return problem;
}

Status kernarg_of(const Problem &problem, const archive::Entry &entry, uint32_t compute_units,
                  Kernarg *result, LinearTiles *grid) {
  const Params &params = *problem.params;
  const int64_t column_tiles = rounded_up(problem.n, entry.tile[1]) / entry.tile[1];
  FLYDSL_RETURN_IF_ERROR(
      linear_tiles(problem.m, problem.batches, column_tiles, entry.tile[0], grid));
  Kernarg kernarg{};
  const bool shuffled = is_shuffled(params);
  const Side a = problem.transposed ? side_b(params) : side_a(params);
  const Side b = problem.transposed ? side_a(params) : side_b(params);
  set_side(a, shuffled, &kernarg.a, &kernarg.a_stride_b, &kernarg.a_stride_m, &kernarg.a_stride_k,
           &kernarg.a_scale, &kernarg.a_scale_stride_b, &kernarg.a_scale_stride_m,
           &kernarg.a_scale_stride_k);
  set_side(b, shuffled, &kernarg.b, &kernarg.b_stride_b, &kernarg.b_stride_n, &kernarg.b_stride_k,
           &kernarg.b_scale, &kernarg.b_scale_stride_b, &kernarg.b_scale_stride_n,
           &kernarg.b_scale_stride_k);
  if (present(params.bias)) {
    kernarg.bias = params.bias.data;
    kernarg.bias_dtype = static_cast<uint32_t>(params.bias.dtype);
    kernarg.bias_stride_b = batch_stride(params.bias, 2);
    (problem.transposed ? kernarg.bias_stride_m : kernarg.bias_stride_n) =
        stride_of(params.bias, kLast);
  }
  kernarg.d = params.d.data;
  kernarg.d_dtype = static_cast<uint32_t>(params.d.dtype);
  kernarg.d_stride_b = batch_stride(params.d, 3);
  kernarg.d_stride_m = stride_of(params.d, problem.transposed ? kLast : kSecond);
  kernarg.d_stride_n = stride_of(params.d, problem.transposed ? kSecond : kLast);
  kernarg.scales_shuffled = shuffled;
  kernarg.m = static_cast<int32_t>(problem.m);
  kernarg.n = static_cast<int32_t>(problem.n);
  kernarg.k = static_cast<int32_t>(problem.k);
  kernarg.batches = static_cast<uint32_t>(problem.batches);
  kernarg.row_tiles = grid->row_tiles;
  kernarg.column_tiles = static_cast<uint32_t>(column_tiles);
  kernarg.tiles = static_cast<uint32_t>(grid->row_tiles * column_tiles * problem.batches);
  if (entry.tile[2] != 0) {
    constexpr uint32_t kComputeUnitsOfMi350 = 256;
    const uint32_t resident =
        (compute_units ? compute_units : kComputeUnitsOfMi350) * entry.tile[2];
    *grid = {std::min(kernarg.tiles, resident), 1, grid->row_tiles};
  }
  kernarg.grid_x = grid->grid_x;
  *result = kernarg;
  return {};
}

}  // namespace flydsl::scaled_gemm
