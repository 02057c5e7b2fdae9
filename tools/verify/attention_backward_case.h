// One problem of attention_backward, with its numbers.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tools/verify/attention_forward_case.h"

namespace flydsl::verify {

// The outputs, in the order of the parameters.
enum Gradient : size_t { kDq, kDk, kDv, kDbias, kDsinks, kGradients };
inline constexpr const char *kGradientNames[] = {"dq", "dk", "dv", "dbias", "dsinks"};

struct BackwardCase {
  AttentionCase forward;       // without 8-bit types and pages
  std::vector<uint16_t> dout;  // dense, (B, Hq, Sq, Dv)
  Placement place_dout, place_lse;
  std::array<bool, kGradients> wanted{true, true, true, false, false};
  std::array<Placement, kGradients> place;
  flydsl_aot_dtype dbias_dtype = FLYDSL_AOT_FP32;
  std::array<bool, 4> dbias_sum{};  // axes of (B, Hq, Sq, Sk) along which dbias has size 1
  bool lse_padded = false;          // of packed queries: (B, Hq, max_seqlen_q), else (Hq, total)
  bool chained = false;  // out and lse are what attention_forward gives, not the oracle's

  std::vector<int64_t> dbias_sizes() const {
    std::vector<int64_t> sizes{forward.batches, forward.heads_q, forward.seq_q, forward.seq_k};
    for (size_t axis = 0; axis < 4; ++axis)
      if (dbias_sum[axis]) sizes[axis] = 1;
    return sizes;
  }
  flydsl_aot_dtype dtype_of(size_t gradient) const {
    return gradient == kDbias ? dbias_dtype : gradient == kDsinks ? FLYDSL_AOT_FP32 : forward.dtype;
  }
};

}  // namespace flydsl::verify
