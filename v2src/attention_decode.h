// The parts of attention_decode: check -> describe -> kernel arguments. Selection and launch are
// attention_decode.cc, as for every operator.
#pragma once

#include "flydsl_aot/attention_decode.h"
#include "flydsl_aot_generated/attention_decode_kernarg.h"
#include "src/archive/reader.h"
#include "src/select/select.h"
#include "src/status/status.h"
#include "v2src/launch.h"

namespace flydsl::attention_decode {

using Params = flydsl_aot_attention_decode_params;
using Kernarg = flydsl_aot_attention_decode_kernarg;

constexpr const char *kName = "attention_decode";

// Limits that the header states.
constexpr int64_t kMaxSize = int64_t{1} << 30;
constexpr int64_t kMaxQueries = 16;

enum Axis { kBatch, kHead, kSeq, kDim };

// Head dims that have instances, and the most blocks of 16 rows that one of them takes at once.
struct HeadDims {
  int64_t qk, v, row_blocks;
};
const HeadDims *find_head_dims(int64_t head_dim_qk, int64_t head_dim_v);  // null: there are none
std::string head_dims_list();                                             // for messages

// Whether the parameters make a problem that this version computes. With `query` pointers count only
// for their alignment, and the workspace not at all.
Status check(const Params &params, bool query);

struct Sizes {
  int64_t batches, heads_q, heads_kv;
  int64_t seq_q, seq_k;  // seq_k: of the longest sequence
  int64_t head_dim_qk, head_dim_v;
};
// Of parameters whose ranks are right.
Sizes sizes_of(const Params &params);

// Refuses what the plan of the kernels cannot number.
Status check_plan(const Sizes &sizes);

// A checked problem, ready for selection.
struct Problem : Sizes {
  const Params *params;
  bool empty;          // no output element
  int64_t group_rows;  // query rows that share a key head
  select::Problem key, reduce_key;
};
Problem describe(const Params &params);

// How the work is cut for one instance (kernels/attention_decode/plan.hip.h).
struct Plan {
  uint32_t workers;
  uint32_t row_tiles, rows_of_tile, rows_of_slot;
  uint64_t head_bytes, out_bytes;  // of the partial results
  LinearTiles grid, reduce_grid;
};
Status plan_of(const Problem &problem, const archive::Entry &entry, uint32_t compute_units,
               Plan *plan);

Kernarg kernarg_of(const Problem &problem, const Plan &plan);

}  // namespace flydsl::attention_decode
