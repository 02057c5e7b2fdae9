// One sequence of the batch: where its rows and keys are, and which keys its queries see.
#pragma once

#include "attention_forward/arguments.hip.h"

namespace flydsl::kernels {

FLYDSL_DEVICE i32 smaller(i32 a, i32 b) {
  return a < b ? a : b;
}
FLYDSL_DEVICE i64 clamped(i64 value, i64 low, i64 high) {
  return value < low ? low : value > high ? high : value;
}

struct Sequence {
  i32 first_q, first_k;  // of the sequence in a packed tensor, else 0
  i32 seq_q, seq_k;
  i32 diagonal;  // query i sits at key i + diagonal
  // Query i sees the keys from i + low to i + high that exist; both in [-seq_q, seq_k].
  i32 low, high;

  // Rows past the end are never stored; clamped, the sums stay below 2^31.
  FLYDSL_DEVICE i32 real_row(i32 row) const { return smaller(row, seq_q - 1); }
  FLYDSL_DEVICE i32 real_key(i32 key) const { return smaller(key, seq_k - 1); }
  FLYDSL_DEVICE i32 first_key(i32 row) const {
    const i32 key = real_row(row) + low;
    return key < 0 ? 0 : key;
  }
  FLYDSL_DEVICE i32 last_key(i32 row) const { return smaller(real_row(row) + high, seq_k - 1); }
};

// Rows of one tensor that belong to sequence `batch`. Numbers that do not fit the tensor are clamped:
// whatever they are, no memory outside it is touched.
struct Span {
  i32 begin, length;
};
template <bool of_lane>
FLYDSL_DEVICE Span span_of(u32 batch, const i32 *starts, const i32 *used, i32 longest, i32 total) {
  const auto number = [](const i32 *from, u32 index) {
    const i32 value = ((global_ptr<const i32>)from)[index];
    return of_lane ? value : static_cast<i32>(uniform(static_cast<u32>(value)));
  };
  Span span = {0, longest};
  if (starts) {
    span.begin = static_cast<i32>(clamped(number(starts, batch), 0, total));
    const i64 end = clamped(number(starts, batch + 1), span.begin, total);
    span.length = smaller(static_cast<i32>(end - span.begin), longest);
  }
  if (used) span.length = static_cast<i32>(clamped(number(used, batch), 0, span.length));
  return span;
}

FLYDSL_DEVICE Sequence sequence_from(Span q, Span k) {
  const Arguments args = fresh_arguments();
  Sequence sequence = {q.begin, k.begin, q.length, k.length, 0, -q.length, k.length};
  if (args->bottom_right) sequence.diagonal = k.length - q.length;
  const auto shift = [&](i64 bound) {
    return static_cast<i32>(clamped(sequence.diagonal + bound, -q.length, k.length));
  };
  if (args->window_left >= 0) sequence.low = shift(-i64{args->window_left});
  if (args->window_right >= 0) sequence.high = shift(args->window_right);
  return sequence;
}

// `of_lane`: each lane has a sequence of its own.
template <bool of_lane = false>
FLYDSL_DEVICE Sequence sequence_of(u32 batch) {
  const Arguments args = fresh_arguments();
  const Span q =
      span_of<of_lane>(batch, args->cu_seqlens_q, args->seqused_q, args->seq_q, args->total_q);
  const Span k =
      span_of<of_lane>(batch, args->cu_seqlens_k, args->seqused_k, args->seq_k, args->total_k);
  return sequence_from(q, k);
}
// Where lengths do not differ.
FLYDSL_DEVICE Sequence equal_sequence() {
  const Arguments args = fresh_arguments();
  return sequence_from({0, args->seq_q}, {0, args->seq_k});
}

// Whether lengths may differ from sequence to sequence. (Looked at together: one wait for the arguments.)
FLYDSL_DEVICE bool unequal_lengths() {
  const Arguments args = fresh_arguments();
  const auto bits = [](const i32 *numbers) { return reinterpret_cast<u64>(numbers); };
  return (bits(args->cu_seqlens_q) | bits(args->seqused_q) | bits(args->cu_seqlens_k) |
          bits(args->seqused_k)) != 0;
}

}  // namespace flydsl::kernels
