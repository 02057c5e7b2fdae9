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
  select::Problem key;
};
Problem describe(const Params &params);

// Grid and arguments for the instance's tile. `compute_units`: 0 if they are not known.
Status kernarg_of(const Problem &problem, const archive::Entry &entry, uint32_t compute_units,
                  Kernarg *kernarg, LinearTiles *grid);

}  // namespace flydsl::scaled_gemm
