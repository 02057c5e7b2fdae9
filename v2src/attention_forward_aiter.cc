#include "v2src/attention_forward_aiter.h"

#include <cmath>
#include <cstddef>

#include "v2src/attention_arguments.h"
#include "v2src/tensor_check.h"

namespace flydsl::attention_forward::aiter {
namespace {

// Every argument has 16 bytes.
struct alignas(16) Pointer {
  void *value;
};
struct alignas(16) Number {
  uint32_t value;
};
struct alignas(16) Factor {
  float value;
};

// Strides in bytes.
struct Kernarg {
  Pointer out, q, k, v, lse;
  Factor scale;
  Number seq_q, q_stride_s, q_tile_bytes, q_stride_h, q_stride_b, heads_per_kv;
  Number k_stride_s, k_stride_h, k_stride_b;
  Number order;  // how row tiles are dealt out
  Number writes_lse, seq_k, head_dim_qk, head_dim_v, heads_q;
  Number v_stride_s, v_stride_h, v_stride_b, out_stride_s, out_stride_h, out_stride_b;
  Pointer q_starts, k_starts;  // of packed sequences: not used here
  Number lse_stride_h;
  Pointer q_padded_starts, k_padded_starts;
};
static_assert(sizeof(Kernarg) == kContract.bytes && offsetof(Kernarg, scale) == 80 &&
              offsetof(Kernarg, order) == 240 && offsetof(Kernarg, lse_stride_h) == 464);

constexpr uint64_t kElementBytes = 2;

// From the first to the last element, in bytes.
uint64_t extent_bytes(const flydsl_aot_tensor &tensor) {
  uint64_t last = 0;
  for (int axis = 0; axis < tensor.rank; ++axis)
    last += static_cast<uint64_t>(tensor.sizes[axis] - 1) *
            static_cast<uint64_t>(walked_stride(tensor, axis));
  return (last + 1) * kElementBytes;
}

// Sequence, head and batch stride in bytes. The first limits what they read and write, so that of one row, too, it must not be 0.
void set_strides_of(const flydsl_aot_tensor &tensor, Number *row, Number *head, Number *batch) {
  const auto bytes = [&](Axis axis) {
    return static_cast<uint32_t>(walked_stride(tensor, axis) * int64_t{kElementBytes});
  };
  row->value = tensor.sizes[kSeq] == 1
                   ? static_cast<uint32_t>(tensor.sizes[kDim] * int64_t{kElementBytes})
                   : bytes(kSeq);
  head->value = bytes(kHead);
  batch->value = bytes(kBatch);
}

bool is_contiguous(const flydsl_aot_tensor &lse) {
  int64_t expected = 1;
  for (int axis = lse.rank - 1; axis >= 0; --axis) {
    if (lse.sizes[axis] > 1 && lse.strides[axis] != expected) return false;
    expected *= lse.sizes[axis];
  }
  return true;
}

}  // namespace

std::optional<uint64_t> mask_of(const Problem &problem) {
  constexpr uint64_t kFarthest = uint64_t{1} << 31;  // their offsets have 32 bits
  const Params &params = *problem.params;
  if (problem.seq_k == 0 || differing_lengths(params)) return std::nullopt;
  for (const flydsl_aot_tensor *tensor : {&params.q, &params.k, &params.v, &params.out})
    if (tensor->sizes[kSeq] > 1 && walked_stride(*tensor, kSeq) == 0) return std::nullopt;
  for (const flydsl_aot_tensor *tensor : {&params.q, &params.k, &params.v, &params.out})
    if (tensor->dtype != FLYDSL_AOT_BF16 || extent_bytes(*tensor) >= kFarthest) return std::nullopt;
  if (problem.head_dim_v != 128 || (problem.head_dim_qk != 128 && problem.head_dim_qk != 192))
    return std::nullopt;
  // They find the largest q . k and scale it then.
  if (!(params.scale > 0) || !std::isfinite(params.scale)) return std::nullopt;
  if (present(params.lse) && !is_contiguous(params.lse)) return std::nullopt;
  if (bounds_of(params.mask, false, problem) == 0) return kMaskNone;
  // Causal, aligned with the last query and key, with a key for each query.
  const flydsl_aot_mask &mask = params.mask;
  const bool causal = mask.left == FLYDSL_AOT_UNLIMITED && mask.right == 0;
  const bool bottom_right =
      mask.anchor == FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT || problem.seq_q == problem.seq_k;
  if (causal && bottom_right && problem.seq_q <= problem.seq_k) return kMaskCausal;
  return std::nullopt;
}

Status run(const Launch &launch, const Problem &problem) {
  const Params &params = *problem.params;
  const archive::Entry &entry = launch.entry();
  const auto rows_of_tile = static_cast<int64_t>(entry.tile[0]);
  const bool causal = entry.tile[1] == 2;
  Kernarg kernarg{};
  kernarg.out.value = params.out.data;
  kernarg.q.value = params.q.data;
  kernarg.k.value = params.k.data;
  kernarg.v.value = params.v.data;
  kernarg.lse.value = present(params.lse) ? params.lse.data : nullptr;
  kernarg.writes_lse.value = present(params.lse);
  kernarg.scale.value = params.scale;
  kernarg.seq_q.value = static_cast<uint32_t>(problem.seq_q);
  kernarg.seq_k.value = static_cast<uint32_t>(problem.seq_k);
  kernarg.heads_q.value = static_cast<uint32_t>(problem.heads_q);
  kernarg.heads_per_kv.value = static_cast<uint32_t>(problem.heads_q / problem.heads_kv);
  kernarg.head_dim_qk.value = static_cast<uint32_t>(problem.head_dim_qk);
  kernarg.head_dim_v.value = static_cast<uint32_t>(problem.head_dim_v);
  // As AITER's own launcher (aiter_meta/csrc/cpp_itfs/mha_fwd.cpp): tiles of a head in turn, or heads by eights.
  constexpr int64_t kLongest = 16384;
  kernarg.order.value = causal && (problem.heads_q % 8 != 0 || problem.seq_q > kLongest) ? 3 : 5;
  set_strides_of(params.q, &kernarg.q_stride_s, &kernarg.q_stride_h, &kernarg.q_stride_b);
  set_strides_of(params.k, &kernarg.k_stride_s, &kernarg.k_stride_h, &kernarg.k_stride_b);
  set_strides_of(params.v, &kernarg.v_stride_s, &kernarg.v_stride_h, &kernarg.v_stride_b);
  set_strides_of(params.out, &kernarg.out_stride_s, &kernarg.out_stride_h, &kernarg.out_stride_b);
  kernarg.q_tile_bytes.value = entry.tile[0] * kernarg.q_stride_s.value;
  kernarg.lse_stride_h.value = static_cast<uint32_t>(problem.seq_q * int64_t{sizeof(float)});
  const int64_t tiles = (problem.seq_q + rows_of_tile - 1) / rows_of_tile;
  const auto groups = static_cast<uint32_t>((tiles + entry.tile[1] - 1) / entry.tile[1]);
  return launch.run_grid(
      {groups, static_cast<uint32_t>(problem.heads_q), static_cast<uint32_t>(problem.batches)},
      &kernarg, sizeof kernarg);
}

}  // namespace flydsl::attention_forward::aiter
