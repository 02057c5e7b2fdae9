// A checked scaled_gemm problem as what selection looks up, and its kernel arguments (codegen/describe/scaled_gemm.py).
#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "v2src/scaled_gemm.h"
#include "v2src/insertion_sort.h"
#include "v2src/tensor_check.h"

namespace flydsl::scaled_gemm {
namespace {

constexpr uint32_t kComputeUnitsOfMi350 = 256;

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

// Whether fast instances take the problem, whatever its alignment: K contiguous, offsets inside a tile within 31 bits, plain scales of
// a row next to each other.
bool is_regular(const Params &params) {
  for (const Side &side : {side_a(params), side_b(params)}) {
    constexpr int64_t kMostRowBytes = int64_t{1} << 22;
    if (stride_of(side.data, side.k) != 1 || stride_of(side.data, side.rows) >= kMostRowBytes ||
        scale_row_bytes(side, is_shuffled(params)) >= kMostRowBytes)
      return false;
    if (!is_shuffled(params) && stride_of(side.scale, kLast) != 1) return false;
  }
  return true;
}

struct FastTile {
  flydsl_aot_dtype a_dtype, b_dtype;
  uint32_t number;
  int64_t rows, columns;
};
#define FLYDSL_AOT_TILE(a_dtype, b_dtype, number, rows, columns) \
  FastTile{a_dtype, b_dtype, number, rows, columns},
constexpr FastTile kFastTiles[] = {FLYDSL_AOT_SCALED_GEMM_TILES(FLYDSL_AOT_TILE)};
#undef FLYDSL_AOT_TILE

// Whether an instance with such tiles takes a regular problem.
bool takes(const FastTile &tile, const Problem &problem) {
  const bool shuffled = is_shuffled(*problem.params);
  if (has_parts(tile.columns)) {
    // (With more rows their tiles read the columns of B too often.)
    constexpr double kMostTiles = 1 << 30;
    return problem.k % 128 == 0 && problem.m <= 256 &&
           static_cast<double>(problem.m) * static_cast<double>(problem.n) *
                   static_cast<double>(problem.batches) <
               kMostTiles * static_cast<double>(tile.rows);
  }
  // Slabs are whole, and plain scales of 8 blocks read at once.
  const bool packed = problem.params->a.dtype == FLYDSL_AOT_E2M1X2;
  return problem.k % (packed || !shuffled ? 256 : 128) == 0 && problem.m > 64 && problem.n > 64;
}

// Of what is copied in pieces of 16 bytes, or of 4 where scales are.
uint64_t alignment_of(const Params &params) {
  uint64_t mask = 4096;  // more alignment than that is not told apart
  for (const Side &side : {side_a(params), side_b(params)})
    mask |= alignment_mask(stored_view(side.data, side.k)) | alignment_mask(side.scale) * 4;
  return mask & (~mask + 1);
}

// Fast instances from the cheapest on, then the general one.
void set_keys(flydsl_aot_dtype a, flydsl_aot_dtype b, Problem *problem) {
  select::Problem &key = problem->key;
  key.op = problem->second_pass_key.op = kName;
  key.align_bytes = alignment_of(*problem->params);
  for (select::Problem *any : {&key, &problem->second_pass_key}) {
    any->seq_q = static_cast<uint64_t>(problem->m);
    any->seq_k = static_cast<uint64_t>(problem->k);
    any->parallel = static_cast<uint64_t>(problem->n * problem->batches);
  }
  problem->second_pass_key.functional_key = flydsl_aot_scaled_gemm_key(0, 0, 0, 0, 1);
  problem->second_pass_key.main = false;
  const auto key_of = [&](uint32_t tile, bool shuffled) {
    return flydsl_aot_scaled_gemm_key(static_cast<uint64_t>(a), static_cast<uint64_t>(b), tile,
                                      shuffled, 0);
  };
  struct Choice {
    double clocks;
    uint64_t key;
  };
  std::array<Choice, std::size(kFastTiles)> choices;
  size_t count = 0;
  if (problem->k > 0 && is_regular(*problem->params)) {
    constexpr uint32_t kAnyTile = ~uint32_t{0};  // all ones
    key.tuning_key = key_of(kAnyTile, is_shuffled(*problem->params));
    for (const FastTile &tile : kFastTiles) {
      if (tile.a_dtype != a || tile.b_dtype != b || !takes(tile, *problem)) continue;
      choices[count++] = {cost_of(*problem, tile.rows, tile.columns).clocks,
                          key_of(tile.number, is_shuffled(*problem->params))};
    }
  }
  insertion_sort(choices.begin(), choices.begin() + static_cast<std::ptrdiff_t>(count),
                   [](const Choice &x, const Choice &y) { return x.clocks < y.clocks; });
  count = std::min(count, select::kMaxKeys - 1);
  const uint64_t general = key_of(0, false);
  key.functional_key = count > 0 ? choices[0].key : general;
  key.fallbacks = count;
  for (size_t i = 0; i < count; ++i)
    key.fallback_keys[i] = i + 1 < count ? choices[i + 1].key : general;
}

}  // namespace

Problem describe(const Params &params, uint32_t compute_units) {
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
  flydsl_aot_dtype a_dtype = params.a.dtype, b_dtype = params.b.dtype;
  if (problem.transposed) {
    std::swap(problem.m, problem.n);
    std::swap(a_dtype, b_dtype);
  }
  problem.compute_units = compute_units ? compute_units : kComputeUnitsOfMi350;
  set_keys(a_dtype, b_dtype, &problem);
  return problem;
}

Kernarg kernarg_of(const Problem &problem, const Plan &plan) {
  const Params &params = *problem.params;
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
  kernarg.row_tiles = static_cast<uint32_t>(plan.row_tiles);
  kernarg.column_tiles = static_cast<uint32_t>(plan.column_tiles);
  kernarg.partials = static_cast<float *>(params.workspace);
  kernarg.splits = static_cast<uint32_t>(plan.splits);
  kernarg.split_k = static_cast<int32_t>(plan.split_k);
  kernarg.tiles =
      static_cast<uint32_t>(plan.row_tiles * plan.column_tiles * plan.splits * problem.batches);
  kernarg.grid_x = plan.grid.grid_x;
  return kernarg;
}

}  // namespace flydsl::scaled_gemm
