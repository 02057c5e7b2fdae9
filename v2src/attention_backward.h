// The parts of attention_backward: check -> describe -> plan -> kernel arguments. Selection and launch are
// attention_backward.cc, as for every operator.
#pragma once

#include "flydsl_aot/attention_backward.h"
#include "flydsl_aot_generated/attention_backward_kernarg.h"
#include "src/archive/reader.h"
#include "src/select/select.h"
#include "src/status/status.h"
#include "v2src/attention_forward.h"
#include "v2src/launch.h"

namespace flydsl::attention_backward {

using Params = flydsl_aot_attention_backward_params;
using Kernarg = flydsl_aot_attention_backward_kernarg;
using Sizes = attention_forward::Sizes;

constexpr const char *kName = "attention_backward";

// What a call launches, as far as it is wanted: codegen/describe/attention_backward/keys.py.
enum class Pass {
#define FLYDSL_AOT_PASS(name, number) name = number,
  FLYDSL_AOT_ATTENTION_BACKWARD_PASSES(FLYDSL_AOT_PASS)
#undef FLYDSL_AOT_PASS
};
#define FLYDSL_AOT_PASS(name, number) +1
constexpr size_t kPasses = 0 FLYDSL_AOT_ATTENTION_BACKWARD_PASSES(FLYDSL_AOT_PASS);
#undef FLYDSL_AOT_PASS

// The forward problem whose gradients are wanted; of what the forward call writes it has out only.
attention_forward::Params forward_of(const Params &params);

// The classes of codegen/describe/attention_backward/general.py.
extern const HeadDimClasses kHeadDimClasses;

// Whether the parameters make a problem that this version computes. With `query` pointers count only
// for their alignment, and the workspace not at all. `compiled`: whether kernels may be compiled.
Status check(const Params &params, bool query, bool compiled);

// A checked problem.
struct Problem : Sizes {
  const Params *params;
  const HeadDims *dims;           // the class that serves it
  bool differing;                 // lengths
  bool score_terms;               // as attention_forward::has_score_terms
  uint64_t bounds;                // as attention_forward::bounds_of
  bool has_rows;                  // some sequence may have query rows
  bool copies_dout;               // its last axis has another stride than 1
  bool wants_together;            // dq, dk and dv, and there are rows and keys: `fused` would do
  bool faster_together;           // `fused` is thought to be faster; tuning rows know better
  bool wants[kPasses];            // of the passes without `fused` and `convert`
  select::Problem keys[kPasses];  // of all passes
  bool empty;                     // nothing to write
};
Problem describe(const Params &params, uint32_t compute_units);  // 0: not known

// A tensor without elements, or that is absent, is not wanted.
bool wanted(const flydsl_aot_tensor &output);

// Where the call's numbers between its passes are: offsets in bytes.
struct Workspace {
  uint64_t row_lse, row_delta, dout_copy, dq_accumulator, dq_counters;
  uint64_t bytes;
  int64_t rows_stride, planes;  // kernels/attention_backward/planes.hip.h
  int64_t dout_copy_row;        // elements of a row of the copy
  int64_t dq_accumulator_row;   // floats
  int64_t dq_counters_count;
};
// How dq, dk and dv are computed: each by a kernel of its own, by one, or by one of others that adds up dq in rows.
enum class Way { kApart, kTogether, kInRows };
Status workspace_of(const Problem &problem, Way way, Workspace *workspace);

uint32_t tiles_of(int64_t size, uint32_t tile);

// One kernel of the call, and its grid.
struct Step {
  Pass pass;
  uint32_t entry;
  const archive::TuningRow *row;  // that decided, or null
  LinearTiles grid;
};
struct Plan {
  Step steps[kPasses];
  size_t count;
  Pass main;  // which a query names
  Way way;
  Workspace workspace;
};
// For kernels of `target`; NO_KERNEL if a pass has none. `room`: bytes of workspace there will be.
constexpr uint64_t kAnyRoom = ~uint64_t{0};
Status plan_of(const flydsl_aot_handle *handle, const Problem &problem,
               const archive::TargetId &target, uint64_t room, Plan *plan);

// Arguments of every pass; then those in which one differs.
Kernarg kernarg_of(const Problem &problem, const Workspace &workspace);
void set_pass(const Problem &problem, const archive::Entry &entry, const Step &step,
              Kernarg *kernarg);

}  // namespace flydsl::attention_backward
