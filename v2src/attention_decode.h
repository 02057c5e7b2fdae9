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
constexpr int64_t kMaxQueries = 16;

enum Axis { kBatch, kHead, kSeq, kDim };

// Head dims up to qk and v, of one storage format of keys and values, that have instances.
struct Class {
  int64_t kv_format;  // kernels/common/float8.hip.h
  int64_t qk, v;
  bool shared;          // values are the first elements of the keys
  uint64_t row_blocks;  // a bit 1 << n for each instance: its tiles have 16 n rows
};

// Whether the parameters make a problem that this version computes. With `query` pointers count only
// for their alignment, and the workspace not at all. `compiled`: whether kernels may be compiled.
Status check(const Params &params, bool query, bool compiled);

struct Sizes {
  int64_t batches, heads_q, heads_kv;
  int64_t seq_q, seq_k;  // seq_k: of the longest sequence
  int64_t head_dim_qk, head_dim_v;
  int64_t kv_format;
};
// Of parameters whose ranks are right.
Sizes sizes_of(const Params &params);

// The class that computes these sizes, or null. `shared`: one that reads memory once for keys and values
// will do. `compiled`: or one whose kernels are compiled at run time, if no other does.
const Class *find_class(const Sizes &sizes, bool shared, bool compiled);
std::string head_dims_list(int64_t kv_format, bool compiled);  // of classes, for messages

// Refuses what the plan of the kernels cannot number.
Status check_plan(const Sizes &sizes);

// A checked problem, ready for selection.
struct Problem : Sizes {
  const Params *params;
  bool empty;          // no output element
  int64_t group_rows;  // query rows that share a key head
  select::Problem key, reduce_key;
};
Problem describe(const Params &params, bool shared);

// Whether the values are the first elements of the keys. Of a query without pointers: whether they may be.
bool shares_values(const Params &params, bool query);

// How the work is cut for one instance (kernels/attention_decode/plan.hip.h).
struct Plan {
  uint32_t workers;
  uint32_t row_tiles, rows_of_tile, rows_of_slot;
  uint32_t waves_of_row;           // of the second pass
  uint64_t head_bytes, out_bytes;  // of the partial results
  LinearTiles grid, reduce_grid;
};
Status plan_of(const Problem &problem, const archive::Entry &entry, uint32_t compute_units,
               Plan *plan);

Kernarg kernarg_of(const Problem &problem, const Plan &plan);

}  // namespace flydsl::attention_decode
