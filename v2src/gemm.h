// The parts of gemm: check -> describe -> plan -> kernel arguments. Selection and launch are gemm.cc, as for every operator.
#pragma once

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

// A checked problem as the kernels see it. One whose D has contiguous columns is transposed, A and B exchanged: so D's
// rows are contiguous wherever its rows or columns are.
struct Problem {
  const Params *params;
  bool empty;  // no element of D
  int64_t m, n, k, batches;
  Matrix a, b, c, d, residual, aux;
  Vector bias_m, bias_n, a_descale, b_descale;
  uint32_t compute_units;
  select::Problem key, second_pass_key;
};
Problem describe(const Params &params, uint32_t compute_units);

// How one instance's tiles share the work.
struct Plan {
  int64_t row_tiles, column_tiles;
  int64_t splits, split_k;   // parts of K
  uint64_t workspace_bytes;  // of their sums
  int64_t second_pass_blocks;
  LinearTiles grid;
};
Status plan_of(const Problem &problem, const archive::Entry &entry, Plan *plan);

// A model of the time that tiles of this size take, in clocks, with the best number of parts of K. For comparison only.
struct Cost {
  double clocks;
  int64_t splits;
};
Cost cost_of(const Problem &problem, int64_t tile_rows, int64_t tile_columns);

Kernarg kernarg_of(const Problem &problem, const Plan &plan);
// Changes them for the second pass, and says how it is launched.
Status set_second_pass(const Plan &plan, const archive::Entry &entry, Kernarg *kernarg,
                       LinearTiles *grid);

}  // namespace flydsl::gemm
