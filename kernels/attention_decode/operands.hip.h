// Operands of the matrix products: queries from global memory, keys and values from tiles in LDS, widened
// there if they are stored in 8 bits.
#pragma once

#include "attention_decode/shape.hip.h"
#include "common/lds.hip.h"
#include "common/memory.hip.h"
#include "common/mfma.hip.h"

namespace flydsl::kernels {

template <class S>
FLYDSL_DEVICE u32x4 widened_8(u32x2 bytes) {
  u32x4 result;
#pragma unroll
  for (int i = 0; i < 4; ++i)
    result[i] = widened_pair<typename S::Element, S::format>(bytes[i / 2], i % 2 != 0);
  return result;
}

// Elements of a query that a lane has for score step `step`: 8 from here on, in the order in which the keys
// are read.
template <class S>
FLYDSL_DEVICE u32 query_element(u32 lane, int step) {
  return S::format == Format::wide ? 32 * step + lane / 16 * 8
                                   : step / 2 * 64 + lane / 16 * 16 + step % 2 * 8;
}

// Of one row of queries, all steps; still to be padded.
template <class S>
FLYDSL_DEVICE void load_query(global_ptr<const char> row, u32 lane, u32x4 (&q)[S::score_steps]) {
  const u32 head_dim = fresh_arguments()->head_dim_qk;
#pragma unroll
  for (int step = 0; step < S::score_steps; ++step) {
    const u32 element = query_element<S>(lane, step);
    q[step] = load_16_bytes(row + (element < head_dim ? 2 * element : 0));
  }
}
// The head dim's padding is 0, and meets keys' last elements once more (staging.hip.h).
template <class S>
FLYDSL_DEVICE void pad_query(u32 lane, u32x4 (&q)[S::score_steps]) {
  const u32 head_dim = fresh_arguments()->head_dim_qk;
#pragma unroll
  for (int step = 0; step < S::score_steps; ++step)
    q[step] = query_element<S>(lane, step) < head_dim ? q[step] : u32x4{};
}

// `use(read(i), i)` for i < count, what is read some steps ahead. (clang 22 puts a read next to its use where
// registers are many, and so waits for every one.)
template <int count, class Read, class Use>
FLYDSL_DEVICE void read_ahead(const Read &read, const Use &use) {
  constexpr int kAhead = count < 4 ? count : 4;
  u32x4 held[kAhead];
#pragma unroll
  for (int i = 0; i < kAhead; ++i) held[i] = read(i);
#pragma unroll
  for (int i = 0; i < count; ++i) {
    __builtin_amdgcn_sched_barrier(0);
    use(held[i % kAhead], i);
    if (i + kAhead < count) held[i % kAhead] = read(i + kAhead);
  }
}

// S^T += K Q^T of one tile: s[row block][half of the keys].
template <class S>
FLYDSL_DEVICE void multiply_keys(lds_ptr<const char> keys, u32 lane,
                                 const u32x4 (&q)[S::row_blocks][S::score_steps],
                                 f32x4 (&s)[S::row_blocks][2]) {
  using Element = typename S::Element;
  const auto multiply = [&](u32x4 k, int half, int step) {
#pragma unroll
    for (int block = 0; block < S::row_blocks; ++block)
      s[block][half] =
          mfma_16x16x32<Element>(k, q[block][step], step == 0 ? f32x4{} : s[block][half]);
  };
  constexpr int kReads = S::score_steps * S::element_bytes;  // halves of a chunk
  const auto read = [&](int i) { return read_b128(keys + S::Keys::key_byte(lane, i % 2, i / 2)); };
  read_ahead<kReads>(read, [&](u32x4 k, int i) {
    if constexpr (S::format == Format::wide) {
      multiply(k, i % 2, i / 2);
    } else {
      multiply(widened_8<S>(u32x2{k[0], k[1]}), i % 2, i / 2 * 2);
      multiply(widened_8<S>(u32x2{k[2], k[3]}), i % 2, i / 2 * 2 + 1);
    }
  });
}

// What is stored of the A operand of O^T = V^T P^T for elements 16 block .. + 15 of the values; then the operand.
template <class S>
FLYDSL_DEVICE u32x4 read_values(lds_ptr<const char> values, u32 lane, int block) {
  using Values = typename S::Values;
  if constexpr (S::format == Format::wide) {
    const u32x2 low = read_column<Values::pitch>(values + Values::value_byte(lane, 0, block));
    const u32x2 high = read_column<Values::pitch>(values + Values::value_byte(lane, 1, block));
    return {low[0], low[1], high[0], high[1]};
  } else {
    const auto at = values + Values::value_byte_of_8_bits(lane, block);
#if FLYDSL_GFX950
    const u32x2 bytes = read_transposed_bytes_b64(at);
#else
    const auto four = [&](int first_row) FLYDSL_INLINED {
      u32 result = 0;
#pragma unroll
      for (int n = 0; n < 4; ++n)
        result |= u32{*(lds_ptr<const u8>)(at + (first_row + n) * Values::pitch)} << 8 * n;
      return result;
    };
    const u32x2 bytes = {four(0), four(16)};
#endif
    return {bytes[0], bytes[1], 0, 0};
  }
}
template <class S>
FLYDSL_DEVICE u32x4 operand_of_values(u32x4 stored) {
  if constexpr (S::format == Format::wide)
    return stored;
  else
    return widened_8<S>(u32x2{stored[0], stored[1]});
}

}  // namespace flydsl::kernels
