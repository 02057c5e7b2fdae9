// The parts of grouped_gemm: check -> describe -> kernel arguments. Selection and launch are grouped_gemm.cc, as for every
// operator.
#pragma once

#include "flydsl_aot/grouped_gemm.h"
#include "flydsl_aot_generated/grouped_gemm_kernarg.h"
#include "src/archive/reader.h"
#include "src/select/select.h"
#include "src/status/status.h"
#include "v2src/block_scales.h"
#include "v2src/launch.h"

namespace flydsl::grouped_gemm {

using Params = flydsl_aot_grouped_gemm_params;
using Kernarg = flydsl_aot_grouped_gemm_kernarg;

constexpr const char *kName = "grouped_gemm";

// Limit of sizes that the header states.
constexpr int64_t kMaxSize = int64_t{1} << 30;

// That the groups share. (Values: codegen/describe/grouped_gemm.py.)
enum class Axis : uint32_t { kNone, kRows, kColumns, kK };
Axis axis_of(const Params &params);  // of parameters whose ranks are 2 or 3

struct Sizes {
  int64_t groups;
  int64_t m, n, k;
};
// Of parameters that passed the check of shapes.
Sizes sizes_of(const Params &params);

// a and b are e4m3 or e5m2, with scales.
bool has_scales(const Params &params);

// Whether the parameters make a problem that this version computes. With `query` pointers count only for their alignment.
Status check(const Params &params, bool query);

// A checked problem, ready for selection.
struct Problem : Sizes {
  const Params *params;
  bool empty;  // there is no element of d that the call would write
  Axis axis;
  select::Problem key;
};
Problem describe(const Params &params, uint32_t compute_units);

Kernarg kernarg_of(const Problem &problem, uint32_t workers);

// Work-groups that share the tiles of one instance.
uint32_t workers_of(const Problem &problem, const archive::Entry &entry, uint32_t compute_units);

}  // namespace flydsl::grouped_gemm
