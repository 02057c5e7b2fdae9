// The parts of gemm: check -> describe -> plan -> kernel arguments. Selection and launch are gemm.cc, as for every operator.
#pragma once

#include <array>

#include "flydsl_aot/gemm.h"
#include "flydsl_aot_generated/gemm_kernarg.h"
#include "src/archive/reader.h"
#include "src/select/select.h"
#include "src/status/status.h"
#include "v2src/launch.h"

namespace flydsl::gemm {

using Params = flydsl_aot_gemm_params;
using Kernarg = flydsl_aot_gemm_kernarg;

constexpr const char *kName = "gemm";

// Whether the parameters make a problem that this version computes. With `query` pointers count only for their alignment,
// and the workspace not at all.
Status check(const Params &params, bool query);

// A matrix as the kernels see it: what it is called, A's M or B's N, is its rows in `stride_m` or `stride_n` of either.
struct Matrix {
  const flydsl_aot_tensor *tensor;  // null: absent
  int64_t stride_batch, stride_row, stride_column;
};
struct Vector {
  const flydsl_aot_tensor *tensor;
  int64_t stride_batch, stride;
};

// Sums of `matrix` over its columns, of `count` matrices of a batch together or of each; its rows are what there is a sum for.
constexpr size_t kMostSums = 4;
struct Sum {
  Matrix matrix;
  Vector to;
  int64_t rows, columns, batches, count;
};

// A checked problem as the kernels see it. One whose D has contiguous columns is transposed, A and B exchanged: so D's
// rows are contiguous wherever its rows or columns are.
struct Problem {
  const Params *params;
  bool empty;     // nothing to launch
  bool products;  // some element of D
  int64_t m, n, k, batches;
  Matrix a, b, c, d, residual, aux;
  Vector bias_m, bias_n, a_descale, b_descale;
  uint32_t compute_units;
  select::Problem key, second_pass_key;  // of the products
  select::Problem sums_key;
  std::array<Sum, kMostSums> sums;
  size_t sums_wanted;
};
Problem describe(const Params &params, uint32_t compute_units);

// How one instance's tiles share the work.
struct Plan {
  int64_t row_tiles, column_tiles;
  int64_t splits, split_k;   // parts of K
  // Tiles that are not in parts, and those after them; both 0 where all or none are.
  int64_t whole_tiles, part_tiles;
  int64_t tile_rows, tile_columns;
  int64_t items;             // tiles, each as often as it has parts
  uint64_t workspace_bytes;  // of their sums
  int64_t second_pass_blocks;
  LinearTiles grid;
};
Status plan_of(const Problem &problem, const archive::Entry &entry, Plan *plan);

// A model of the time that tiles of this size take, in clocks, with the best number of parts of K: of all tiles, or of those that
// are left when every compute unit has had equally many. For comparison only. `groups`: of a compute unit, that have one tile after the
// other; 0: one tile each.
struct Cost {
  double clocks;
  double work;  // the same without memory
  int64_t splits;
  int64_t whole_tiles;
};
Cost cost_of(const Problem &problem, int64_t tile_rows, int64_t tile_columns, int64_t groups);

Kernarg kernarg_of(const Problem &problem, const Plan &plan);
Status set_sum(const Sum &sum, const archive::Entry &entry, Kernarg *kernarg, LinearTiles *grid);
// Changes them for the second pass, and says how it is launched.
Status set_second_pass(const Plan &plan, const archive::Entry &entry, Kernarg *kernarg,
                       LinearTiles *grid);

}  // namespace flydsl::gemm
