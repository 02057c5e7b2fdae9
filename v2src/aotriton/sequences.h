// Where the sequences of a call are, as the C ABI says it: dense tensors, (B, H, S, D), or packed ones, (H, total, D), with the arrays
// of their starts and lengths.
#pragma once

#include "flydsl_aot/status.h"
#include "flydsl_aot/types.h"
#include "v2src/aotriton/call.h"

namespace flydsl::aotriton {

// One side of a checked call.
struct Rows {
  bool packed = false;
  bool uniform = false;  // (1, H, B * S, D), seen as (B, H, S, D)
  int64_t batches = 0;
  int64_t longest = 0;  // S of dense tensors, the longest sequence of packed ones
  int64_t total = 0;    // rows of a packed tensor
  flydsl_aot_tensor starts{}, used{};
  bool used_is_cumulative = false;  // B + 1 numbers, whose differences are what the C ABI has (lengths.h)

  // A tensor whose third axis is these rows.
  flydsl_aot_tensor tensor(const TensorView<4> &view) const;
};

struct Sequences {
  Rows q, k;
};

// Fails, with the message, where the C ABI has no such sequences, or arrays are missing or too short.
flydsl_aot_status place_sequences(const Call &call, Sequences *sequences);

// The LSE of the queries; absent where the call has none.
flydsl_aot_status place_lse(const Call &call, const Rows &rows, flydsl_aot_tensor *lse);

}  // namespace flydsl::aotriton
