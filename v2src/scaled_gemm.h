// The parts of scaled_gemm: check -> describe -> kernel arguments. Selection and launch are scaled_gemm.cc, as for every
// operator.
#pragma once

#include "flydsl_aot/scaled_gemm.h"
#include "flydsl_aot_generated/scaled_gemm_kernarg.h"
#include "src/archive/reader.h"
#include "src/select/select.h"
#include "src/status/status.h"
#include "v2src/block_scales.h"
#include "v2src/launch.h"

namespace flydsl::scaled_gemm {

using Params = flydsl_aot_scaled_gemm_params;
using Kernarg = flydsl_aot_scaled_gemm_kernarg;

constexpr const char *kName = "scaled_gemm";

// Axes of a tensor counted from its last one: batches come before both.
enum FromLast { kLast = 1, kSecond = 2 };
inline int64_t size_of(const flydsl_aot_tensor &tensor, FromLast axis) {
  return tensor.sizes[tensor.rank - axis];
}

// A tensor as bytes lie in memory: the packed axis, counted from the last, has half its size.
flydsl_aot_tensor stored_view(const flydsl_aot_tensor &tensor, FromLast k_axis);

// Whether the parameters make a problem that this version computes. With `query` pointers count only
// for their alignment, and the workspace not at all.
Status check(const Params &params, bool query);

// A checked problem, ready for selection. Kernels see rows and columns exchanged, with A and B, if D has contiguous
// columns.
struct Problem {
  const Params *params;
  bool empty;                // no output element
  bool transposed;           // the kernel's D is that of the caller transposed
  int64_t batches, m, n, k;  // the kernel's
  uint32_t compute_units;
  select::Problem key, second_pass_key;
};
// `compute_units`: 0 if they are not known.
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

// Whether instances with tiles of so many columns take parts of K: those for few rows.
constexpr bool has_parts(int64_t tile_columns) {
  return tile_columns < 64;
}
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

}  // namespace flydsl::scaled_gemm
