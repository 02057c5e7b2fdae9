// The parts of attention_forward: check -> describe -> kernel arguments. Selection and launch are
// attention_forward.cc, as for every operator.
#pragma once

#include "flydsl_aot/attention_forward.h"
#include "flydsl_aot_generated/attention_forward_kernarg.h"
#include "src/select/select.h"
#include "src/status/status.h"
#include "v2src/head_dim_classes.h"
#include "v2src/launch.h"
#include "v2src/tensor_check.h"

namespace flydsl::attention_forward {

using Params = flydsl_aot_attention_forward_params;
using Kernarg = flydsl_aot_attention_forward_kernarg;

constexpr const char *kName = "attention_forward";

// Limits that the header states.
constexpr uint32_t kTileRows = 128;

// Axes of a dense tensor. A packed one, (H, total, D), lacks the first.
enum Axis { kBatch, kHead, kSeq, kDim };

// The classes of codegen/describe/attention_forward/general.py.
extern const HeadDimClasses kHeadDimClasses;

// Whether the parameters make a problem that this version computes. With `query` pointers count only
// for their alignment. `compiled`: whether kernels may be compiled.
Status check(const Params &params, bool query, bool compiled);

struct Sizes {
  int64_t batches, heads_q, heads_kv;
  int64_t seq_q, seq_k;      // of the longest sequence
  int64_t total_q, total_k;  // rows of a packed tensor, else as seq_q, seq_k
  int64_t head_dim_qk, head_dim_v;
};
// Of parameters whose ranks are right.
Sizes sizes_of(const Params &params);
// The same of this operator's or of attention_backward's, keys not paged.
template <class AttentionParams>
Sizes sizes_of_sequences(const AttentionParams &params) {
  const auto size = [](const flydsl_aot_tensor &tensor, Axis axis) {
    return tensor.sizes[axis - (4 - tensor.rank)];
  };
  Sizes sizes{};
  const bool packed_q = present(params.cu_seqlens_q), packed_k = present(params.cu_seqlens_k);
  sizes.batches = packed_q ? params.cu_seqlens_q.sizes[0] - 1 : params.q.sizes[kBatch];
  sizes.heads_q = size(params.q, kHead);
  sizes.heads_kv = size(params.k, kHead);
  sizes.total_q = size(params.q, kSeq);
  sizes.total_k = size(params.k, kSeq);
  sizes.seq_q = packed_q ? params.max_seqlen_q : sizes.total_q;
  sizes.seq_k = packed_k ? params.max_seqlen_k : sizes.total_k;
  sizes.head_dim_qk = size(params.q, kDim);
  sizes.head_dim_v = size(params.v, kDim);
  return sizes;
}

// The element type of the instance: out's, which 8-bit inputs are widened to.
inline flydsl_aot_dtype element_type(const Params &params) {
  return params.out.dtype;
}

// Whether sequences may differ in length, which only the device knows.
template <class AttentionParams>
bool differing_lengths(const AttentionParams &params) {
  return present(params.cu_seqlens_q) || present(params.cu_seqlens_k) ||
         present(params.seqused_q) || present(params.seqused_k);
}

// Which bounds hide a key of some query, or may: 0 none, 1 the right one, 2 the left one too.
uint64_t bounds_of(const flydsl_aot_mask &mask, bool differing, const Sizes &sizes);

// Whether scores are more than scale * q . k, or a sink takes part.
bool has_score_terms(const Params &params);

// A checked problem: sizes within limits, ready for selection and launch.
struct Problem : Sizes {
  const Params *params;
  bool empty;  // no output element
  select::Problem key;
};
// `with_aiter`: whether there may be kernels of AITER.
Problem describe(const Params &params, bool with_aiter);

// Rows of sequences of one length, or of different ones, which only the device knows, to be cut into tiles.
struct SequenceTiles {
  int64_t longest, total;  // total: of a packed tensor
  int64_t batches, heads;
  uint32_t rows_of_tile;
  bool packed, differing;
};
Status tiles_of_sequences(const SequenceTiles &what, LinearTiles *tiles);

// The grid, for row tiles of so many rows.
Status tiles_of(const Problem &problem, uint32_t tile_rows, LinearTiles *tiles);

Kernarg kernarg_of(const Problem &problem, const LinearTiles &tiles);

}  // namespace flydsl::attention_forward
