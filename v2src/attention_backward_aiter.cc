#include "v2src/attention_backward_aiter.h"

#include <cmath>
#include <cstddef>
#include <initializer_list>

#include "v2src/attention_arguments.h"
#include "v2src/tensor_check.h"

namespace flydsl::attention_backward::aiter {
namespace {

// Every argument has 16 bytes.
struct alignas(16) Pointer {
  const void *value;
};
struct alignas(16) Number {
  uint32_t value;
};
struct alignas(16) Factor {
  float value;
};

// Strides in bytes. lse, delta and dq_sums have seq_q rows a head, one head after the other.
struct Arguments {
  Pointer dq_sums, dk, dv, q, k, v, dout, lse, delta;
  Factor scale, log2e;
  Number seq_q, k_tile_bytes, q_stride_h, q_stride_b, q_stride_s, heads_per_kv;
  Number k_stride_h, k_stride_b, k_stride_s, dk_stride_s, seq_k, head_dim_qk, head_dim_v, heads_q;
  Number v_stride_h, v_stride_b, v_stride_s, dout_stride_h, dout_stride_b, dout_stride_s;
  Number dk_stride_h, dk_stride_b, dv_stride_h, dv_stride_b, dv_stride_s, lse_stride_h;
  Pointer q_starts, k_starts, q_padded_starts,
      k_padded_starts;                         // of packed sequences: not used here
  Number padded_seq_q, mask_right, mask_left;  // of windows, and sums of 16 bits
};
static_assert(sizeof(Arguments) == kContract.bytes && offsetof(Arguments, scale) == 144 &&
              offsetof(Arguments, seq_k) == 336 && offsetof(Arguments, mask_left) == 688);

constexpr int64_t kElementBytes = 2;

// From the first to the last element, in bytes.
uint64_t extent_bytes(const flydsl_aot_tensor &tensor) {
  int64_t last = 0;
  for (int axis = 0; axis < tensor.rank; ++axis)
    last += (tensor.sizes[axis] - 1) * walked_stride(tensor, axis);
  return static_cast<uint64_t>((last + 1) * kElementBytes);
}

}  // namespace

std::optional<uint64_t> mask_of(const Problem &problem) {
  constexpr uint64_t kFarthest = uint64_t{1} << 31;  // their offsets have 32 bits
  const Params &params = *problem.params;
  if (!problem.wants_together || problem.heads_q != problem.heads_kv) return std::nullopt;
  if (problem.head_dim_v != 128 || (problem.head_dim_qk != 128 && problem.head_dim_qk != 192))
    return std::nullopt;
  if (!(params.scale > 0)) return std::nullopt;
  const bool copies = problem.copies_dout;
  for (const flydsl_aot_tensor *tensor :
       {&params.q, &params.k, &params.v, copies ? &params.q : &params.dout, &params.dk,
        &params.dv}) {
    if (extent_bytes(*tensor) >= kFarthest) return std::nullopt;
    // A stride limits what they read and write.
    if (walked_stride(*tensor, attention_forward::kSeq) < tensor->sizes[attention_forward::kDim])
      return std::nullopt;
  }
  const uint64_t head_bytes =
      static_cast<uint64_t>(problem.seq_q * problem.head_dim_qk) * sizeof(float);
  if (head_bytes * static_cast<uint64_t>(problem.heads_q) >= kFarthest) return std::nullopt;
  if (problem.bounds == 0) return kMaskNone;
  const flydsl_aot_mask &mask = params.mask;
  const bool causal = mask.left == FLYDSL_AOT_UNLIMITED && mask.right == 0;
  const bool top_left = mask.anchor == FLYDSL_AOT_ANCHOR_TOP_LEFT || problem.seq_q == problem.seq_k;
  return causal && top_left ? std::optional(kMaskCausal) : std::nullopt;
}

Status run(const Launch &launch, const Problem &problem, const Kernarg &ours) {
  const archive::Entry &entry = launch.entry();
  Arguments theirs{};
  theirs.dq_sums.value = ours.dq_accumulator;
  theirs.dk.value = ours.dk;
  theirs.dv.value = ours.dv;
  theirs.q.value = ours.q;
  theirs.k.value = ours.k;
  theirs.v.value = ours.v;
  theirs.dout.value = ours.dout;
  theirs.lse.value = ours.row_lse;
  theirs.delta.value = ours.row_delta;
  theirs.scale.value = problem.params->scale;
  theirs.log2e.value = static_cast<float>(1 / std::log(2.0));
  theirs.seq_q.value = static_cast<uint32_t>(problem.seq_q);
  theirs.seq_k.value = static_cast<uint32_t>(problem.seq_k);
  theirs.heads_q.value = static_cast<uint32_t>(problem.heads_q);
  theirs.heads_per_kv.value = 1;
  theirs.head_dim_qk.value = static_cast<uint32_t>(problem.head_dim_qk);
  theirs.head_dim_v.value = static_cast<uint32_t>(problem.head_dim_v);
  theirs.padded_seq_q.value = theirs.seq_q.value;
  theirs.lse_stride_h.value = static_cast<uint32_t>(problem.seq_q * int64_t{sizeof(float)});
  const auto set = [](Number *to, int64_t elements) {
    to->value = static_cast<uint32_t>(elements * kElementBytes);
  };
  set(&theirs.q_stride_b, ours.q_stride_b);
  set(&theirs.q_stride_h, ours.q_stride_h);
  set(&theirs.q_stride_s, ours.q_stride_s);
  set(&theirs.k_stride_b, ours.k_stride_b);
  set(&theirs.k_stride_h, ours.k_stride_h);
  set(&theirs.k_stride_s, ours.k_stride_s);
  set(&theirs.v_stride_b, ours.v_stride_b);
  set(&theirs.v_stride_h, ours.v_stride_h);
  set(&theirs.v_stride_s, ours.v_stride_s);
  set(&theirs.dout_stride_b, ours.dout_stride_b);
  set(&theirs.dout_stride_h, ours.dout_stride_h);
  set(&theirs.dout_stride_s, ours.dout_stride_s);
  set(&theirs.dk_stride_b, ours.dk_stride_b);
  set(&theirs.dk_stride_h, ours.dk_stride_h);
  set(&theirs.dk_stride_s, ours.dk_stride_s);
  set(&theirs.dv_stride_b, ours.dv_stride_b);
  set(&theirs.dv_stride_h, ours.dv_stride_h);
  set(&theirs.dv_stride_s, ours.dv_stride_s);
  theirs.k_tile_bytes.value = entry.tile[1] * theirs.k_stride_s.value;
  // Causal ones have two tiles a work-group, one from each end.
  const uint32_t tiles = tiles_of(problem.seq_k, entry.tile[1]);
  const uint32_t groups = entry.tile[0] == 2 ? (tiles + 1) / 2 : tiles;
  return launch.run_grid({groups, theirs.heads_q.value, static_cast<uint32_t>(problem.batches)},
                         &theirs, sizeof theirs);
}

}  // namespace flydsl::attention_backward::aiter
