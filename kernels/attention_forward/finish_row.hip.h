// The end of rows whose weights and outputs are summed: those that the fast path can be trusted with are stored, the others
// are told.
#pragma once

#include "attention_forward/outputs.hip.h"
#include "attention_forward/softmax.hip.h"

namespace flydsl::kernels {

// Whether the fast path can be trusted with the lane's part of a row: not if its sum or an output is not finite, or scores are too
// large for its rounding.
template <class Block, int blocks>
FLYDSL_DEVICE bool trusted_row(bool empty, float reference, float sum, const Block (&o)[blocks]) {
  // Not finite anywhere <=> this is NaN: 0 * x is 0 for finite x only.
  float probe = sum * 0.0f;
#pragma unroll
  for (const Block &block : o) {
#pragma unroll
    for (u32 i = 0; i < sizeof(Block) / 4; ++i) probe = fma(block[i], 0.0f, probe);
  }
  return probe == 0.0f && (empty || __builtin_fabsf(reference) < kLargestReference);
}

// Which of the wave's 32 rows the slow path (exact.hip.h) has to compute again, a bit each.
template <int blocks>
FLYDSL_DEVICE u32 untrusted_rows(bool in_range, bool empty, float reference, float sum,
                                 const f32x16 (&o)[blocks]) {
  const u64 distrust = ballot(in_range && !trusted_row(empty, reference, sum, o));
  return static_cast<u32>(distrust) | static_cast<u32>(distrust >> 32);
}

// Stores this lane's row, `store`(write, factor) its outputs times `factor`; returns the rows for the slow path.
// `empty`: the row sees no key. `half_sum` is of this half-wave's keys.
template <class Work, int blocks, class Store>
FLYDSL_DEVICE u32 finish_row(const Work &work, i32 row, u32 lane, bool empty, float reference,
                             float half_sum, float out_factor, const f32x16 (&o)[blocks],
                             Store store) {
  const float sum = sum_of_halves(half_sum);
  const bool in_range = row < work.seq_q;
  const u32 exact_rows = untrusted_rows(in_range, empty, reference, sum, o);
  const bool write = in_range && !(exact_rows >> lane % 32 & 1);
  store(write, empty ? 0.0f : reciprocal(sum) * out_factor);
  if (write && lane < 32)
    work.store_lse(row, empty ? -kInfinity : (reference + log2(sum)) * kLn2);
  return exact_rows;
}

}  // namespace flydsl::kernels
