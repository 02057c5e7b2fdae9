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

// Of a row of queries, for score step `step`: 8 elements in the order in which the keys are read.
template <class S>
FLYDSL_DEVICE u32x4 load_query(global_ptr<const char> row, u32 lane, int step) {
  const u32 element = S::format == Format::wide ? 32 * step + lane / 16 * 8
                                                : step / 2 * 64 + lane / 16 * 16 + step % 2 * 8;
  // The head dim's padding is 0, and meets keys' last elements once more (staging.hip.h).
  const u32 head_dim = fresh_arguments()->head_dim_qk;
  const u32x4 loaded = load_16_bytes(row + (element < head_dim ? 2 * element : 0));
  // Asked again, so that no answer waits in a register for what is loaded.
  return computed_here(element) < head_dim ? loaded : u32x4{};
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
  constexpr int kStepsOfChunk = 2 / S::element_bytes;
#pragma unroll
  for (int chunk = 0; chunk < S::score_steps / kStepsOfChunk; ++chunk) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const u32x4 k = read_b128(keys + S::Keys::key_byte(lane, half, chunk));
      if constexpr (S::format == Format::wide) {
        multiply(k, half, chunk);
      } else {
        multiply(widened_8<S>(u32x2{k[0], k[1]}), half, 2 * chunk);
        multiply(widened_8<S>(u32x2{k[2], k[3]}), half, 2 * chunk + 1);
      }
    }
  }
}

// The A operand of O^T = V^T P^T for elements 16 block .. + 15 of the values.
template <class S>
FLYDSL_DEVICE u32x4 read_values(lds_ptr<const char> values, u32 lane, int block) {
  using Values = typename S::Values;
  if constexpr (S::format == Format::wide) {
    const u32x2 low = read_transposed_b64(values + Values::value_byte(lane, 0, block));
    const u32x2 high = read_transposed_b64(values + Values::value_byte(lane, 1, block));
    return {low[0], low[1], high[0], high[1]};
  } else {
    return widened_8<S>(
        read_transposed_bytes_b64(values + Values::value_byte_of_8_bits(lane, block)));
  }
}

}  // namespace flydsl::kernels
