// A checked gemm problem as the kernels see it and as what selection looks up (codegen/describe/gemm).
#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <tuple>

#include "v2src/attention_arguments.h"
#include "v2src/gemm.h"
#include "v2src/insertion_sort.h"
#include "v2src/matrix_check.h"
#include "v2src/tensor_check.h"

namespace flydsl::gemm {
namespace {

// Of an MI350X; for queries without a device.
constexpr uint32_t kComputeUnitsWithoutDevice = 256;

constexpr uint64_t kSecondPass = 1, kSums = 2;  // PASSES of codegen/describe/gemm/keys.py
constexpr uint32_t kAnyTile = ~uint32_t{0};     // in the key of tuning rows: all ones

struct FastTile {
  flydsl_aot_dtype a_dtype, b_dtype;
  uint32_t layout, number;
  int64_t rows, columns;
  int64_t groups;  // of a compute unit, that have one tile after the other; 0: one tile each
};
#define FLYDSL_AOT_TILE(a_dtype, b_dtype, layout, number, rows, columns, groups) \
  FastTile{a_dtype, b_dtype, layout, number, rows, columns, groups},
// The last one stands for the end, so that there is at least one.
constexpr FastTile kFastTiles[] = {FLYDSL_AOT_GEMM_FAST_TILES(FLYDSL_AOT_TILE) FastTile{}};
#undef FLYDSL_AOT_TILE

Matrix matrix_of(const flydsl_aot_tensor &tensor) {
  if (!present(tensor)) return {};
  const int rows = tensor.rank - 2;
  return {&tensor, rows == 1 ? walked_stride(tensor, 0) : 0, walked_stride(tensor, rows),
          walked_stride(tensor, rows + 1)};
}

Vector vector_of(const flydsl_aot_tensor &tensor) {
  if (!present(tensor)) return {};
  return {&tensor, tensor.rank == 2 ? walked_stride(tensor, 0) : 0,
          walked_stride(tensor, tensor.rank - 1)};
}

Matrix transposed(const Matrix &matrix) {
  return {matrix.tensor, matrix.stride_batch, matrix.stride_column, matrix.stride_row};
}

void transpose(Problem *problem) {
  std::swap(problem->m, problem->n);
  std::swap(problem->a, problem->b);
  std::swap(problem->bias_m, problem->bias_n);
  std::swap(problem->a_descale, problem->b_descale);
  for (Matrix *matrix :
       {&problem->a, &problem->b, &problem->c, &problem->d, &problem->residual, &problem->aux})
    *matrix = transposed(*matrix);
}

// An operand as a fast instance reads it: bit 0 of LAYOUTS in codegen/describe/gemm/keys.py, or -1.
int layout_of(int64_t stride_row, int64_t stride_k, int64_t rows, int64_t k,
              uint32_t element_bytes) {
  constexpr int64_t kFarthest = (int64_t{1} << 31) / 512;  // in bytes, from row to row or k to k
  if ((stride_k == 1 || k <= 1) && stride_row * element_bytes < kFarthest) return 0;
  if ((stride_row == 1 || rows <= 1) && rows % 8 == 0 && stride_k * element_bytes < kFarthest)
    return 1;
  return -1;
}

void set_keys(Problem *problem) {
  const flydsl_aot_dtype a = problem->a.tensor->dtype, b = problem->b.tensor->dtype;
  select::Problem &key = problem->key;
  key.op = problem->second_pass_key.op = kName;
  key.align_bytes = align_bytes({problem->a.tensor, problem->b.tensor});
  for (select::Problem *any : {&key, &problem->second_pass_key}) {
    any->seq_q = static_cast<uint64_t>(problem->m);
    any->seq_k = static_cast<uint64_t>(problem->k);
    any->parallel = static_cast<uint64_t>(problem->n * problem->batches);
  }
  problem->second_pass_key.functional_key = flydsl_aot_gemm_key(0, 0, 0, 0, kSecondPass);
  problem->second_pass_key.main = false;

  const auto key_of = [](flydsl_aot_dtype of_a, flydsl_aot_dtype of_b, uint32_t tile,
                         uint32_t layout) {
    return flydsl_aot_gemm_key(static_cast<uint64_t>(of_a), static_cast<uint64_t>(of_b), tile,
                               layout, 0);
  };
  const uint32_t element_bytes = dtype_bytes(a);
  const int layout_a = layout_of(problem->a.stride_row, problem->a.stride_column, problem->m,
                                 problem->k, element_bytes);
  const int layout_b = layout_of(problem->b.stride_column, problem->b.stride_row, problem->n,
                                 problem->k, element_bytes);
  struct Choice {
    double clocks, work;
    int64_t row_tiles, area;
    uint64_t key;
    // Of those that wait for memory alike the one that reads B the least often, then the one that has the least to do.
    bool operator<(const Choice &other) const {
      return std::tie(clocks, row_tiles, work, area) <
             std::tie(other.clocks, other.row_tiles, other.work, other.area);
    }
  };
  std::array<Choice, std::size(kFastTiles)> choices;
  size_t count = 0;
  if (layout_a >= 0 && layout_b >= 0 && problem->k > 0) {
    const auto layout = static_cast<uint32_t>(layout_a + 2 * layout_b);
    key.tuning_key = key_of(a, b, kAnyTile, layout);
    for (const FastTile &tile : kFastTiles) {
      if (tile.rows == 0 || tile.a_dtype != a || tile.b_dtype != b || tile.layout != layout)
        continue;
      const Cost cost = cost_of(*problem, tile.rows, tile.columns, tile.groups);
      choices[count++] = {cost.clocks, cost.work, (problem->m + tile.rows - 1) / tile.rows,
                          tile.rows * tile.columns, key_of(a, b, tile.number, layout)};
    }
  }
  insertion_sort(choices.begin(), choices.begin() + static_cast<std::ptrdiff_t>(count),
                 std::less<>());
  count = std::min(count, select::kMaxKeys - 1);
  const bool bytes = is_8bit(a);
  const uint64_t general = key_of(bytes ? FLYDSL_AOT_E4M3 : a, bytes ? FLYDSL_AOT_E4M3 : b, 0, 0);
  key.functional_key = count > 0 ? choices[0].key : general;
  key.fallbacks = count;
  for (size_t i = 0; i < count; ++i)
    key.fallback_keys[i] = i + 1 < count ? choices[i + 1].key : general;
}

// Of the rows of `tensor`, or with `of_columns` of its columns, if the caller asks for them and there are some.
void add_sum(const flydsl_aot_tensor &tensor, bool of_columns, const flydsl_aot_tensor &to,
             Problem *problem) {
  if (!present(to) || empty(to)) return;
  const int rows = tensor.rank - 2;
  Sum &sum = problem->sums[problem->sums_wanted++];
  sum.matrix = of_columns ? transposed(matrix_of(tensor)) : matrix_of(tensor);
  sum.to = vector_of(to);
  sum.rows = tensor.sizes[rows + of_columns];
  sum.columns = tensor.sizes[rows + !of_columns];
  sum.batches = to.rank == 2 ? to.sizes[0] : 1;
  sum.count = to.rank == 2 || rows == 0 ? 1 : tensor.sizes[0];
}

void describe_sums(const Params &params, Problem *problem) {
  add_sum(params.d, false, params.d_sum_m, problem);
  add_sum(params.d, true, params.d_sum_n, problem);
  add_sum(params.a, false, params.a_sum_m, problem);
  add_sum(params.b, true, params.b_sum_n, problem);
  select::Problem &key = problem->sums_key;
  key.op = kName;
  key.functional_key = flydsl_aot_gemm_key(0, 0, 0, 0, kSums);
  key.main = false;
}

}  // namespace

Problem describe(const Params &params, uint32_t compute_units) {
  Problem problem{};
  problem.params = &params;
  describe_sums(params, &problem);
  problem.products = !empty(params.d);
  problem.empty = !problem.products && problem.sums_wanted == 0;
  if (!problem.products) {
    problem.key = problem.sums_key;
    problem.key.main = true;
    return problem;
  }
  problem.compute_units = compute_units ? compute_units : kComputeUnitsWithoutDevice;
  problem.m = params.d.sizes[params.d.rank - 2];
  problem.n = params.d.sizes[params.d.rank - 1];
  problem.k = params.alpha == 0 ? 0 : params.a.sizes[params.a.rank - 1];
  problem.batches = params.d.rank == 3 ? params.d.sizes[0] : 1;
  problem.a = matrix_of(params.a);
  problem.b = matrix_of(params.b);
  if (params.beta != 0) problem.c = matrix_of(params.c);
  problem.d = matrix_of(params.d);
  problem.residual = matrix_of(params.epilogue.residual);
  problem.aux = matrix_of(params.epilogue.aux);
  problem.bias_m = vector_of(params.epilogue.bias_m);
  problem.bias_n = vector_of(params.epilogue.bias_n);
  problem.a_descale = vector_of(params.a_descale);
  problem.b_descale = vector_of(params.b_descale);
  if (problem.d.stride_row == 1 && problem.d.stride_column != 1) transpose(&problem);
  set_keys(&problem);
  return problem;
}

}  // namespace flydsl::gemm
