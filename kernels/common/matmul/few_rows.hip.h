// Sums of few rows of A and few columns of B, K contiguous in both: four waves share K. Each loads fragments straight into registers, the next
// ones while it multiplies.
#pragma once

#include "common/exact_mfma.hip.h"
#include "common/lanes.hip.h"
#include "common/memory.hip.h"

namespace flydsl::kernels::matmul {

// Blocks of 16 rows of A and of 16 columns of B. `steps`: of 32 k, that are loaded and multiplied together.
template <class Element, int row_blocks, int column_blocks,
          int steps = row_blocks + column_blocks <= 3 ? 8 : 4>
struct FewRows {
  static constexpr u32 kWaves = 4, kBlocks = row_blocks * column_blocks;
  static constexpr int kSteps = steps;
  static constexpr i32 kChunk = 32 * kSteps;
  static constexpr u32 kLdsBytes = kWaves * kBlocks * 1024;

  struct Fragments {
    u32x4 a[row_blocks][kSteps], b[column_blocks][kSteps];
  };
  global_ptr<const char> a[row_blocks], b[column_blocks];  // the lane's of the next chunk
  f32x4 sums[row_blocks][column_blocks] = {};

  // First rows and columns of the tile, of which some exist.
  FLYDSL_DEVICE FewRows(global_ptr<const char> first_a, i64 a_row_bytes, i32 rows,
                        global_ptr<const char> first_b, i64 b_row_bytes, i32 columns, u32 wave,
                        u32 lane) {
    const i64 k = wave * kChunk + lane / 16 * 8;
    const auto row = [&](int block, i32 count) FLYDSL_INLINED {
      const i32 at = 16 * block + static_cast<i32>(lane % 16);
      return i64{at < count ? at : count - 1};
    };
#pragma unroll
    for (int r = 0; r < row_blocks; ++r) a[r] = first_a + row(r, rows) * a_row_bytes + 2 * k;
#pragma unroll
    for (int c = 0; c < column_blocks; ++c) b[c] = first_b + row(c, columns) * b_row_bytes + 2 * k;
  }

  FLYDSL_DEVICE void load(Fragments &to) {
#pragma unroll
    for (int t = 0; t < kSteps; ++t) {
#pragma unroll
      for (int c = 0; c < column_blocks; ++c) to.b[c][t] = load_16_bytes(b[c] + 64 * t);
#pragma unroll
      for (int r = 0; r < row_blocks; ++r) to.a[r][t] = load_16_bytes(a[r] + 64 * t);
    }
    __builtin_amdgcn_sched_barrier(0);
#pragma unroll
    for (int r = 0; r < row_blocks; ++r) a[r] += 2 * kChunk * static_cast<i32>(kWaves);
#pragma unroll
    for (int c = 0; c < column_blocks; ++c) b[c] += 2 * kChunk * static_cast<i32>(kWaves);
  }
  FLYDSL_DEVICE void multiply(const Fragments &of) {
    bool by_fp32 = false;
#pragma unroll
    for (int r = 0; r < row_blocks; ++r) by_fp32 = by_fp32 || any_subnormals<Element>(of.a[r]);
#pragma unroll
    for (int c = 0; c < column_blocks; ++c) by_fp32 = by_fp32 || any_subnormals<Element>(of.b[c]);
#pragma unroll
    for (int t = 0; t < kSteps; ++t)
#pragma unroll
      for (int r = 0; r < row_blocks; ++r)
#pragma unroll
        for (int c = 0; c < column_blocks; ++c)
          sums[r][c] = exact_mfma_16x16x32<Element>(by_fp32, of.b[c][t], of.a[r][t], sums[r][c]);
    __builtin_amdgcn_sched_barrier(0);
  }
  // 8 elements of which `left` exist; the others are 0.
  static FLYDSL_DEVICE u32x4 load_some(global_ptr<const char> from, i32 left) {
    if (left >= 8) return load_16_bytes(from);
    u32x4 result = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < 7; ++i)
      if (i < left)
        result[i / 2] |= static_cast<u32>(((global_ptr<const u16>)from)[i]) << i % 2 * 16;
    return result;
  }
  // A chunk of which `left` k exist.
  FLYDSL_DEVICE void multiply_some(i32 left, u32 lane) {
    left -= static_cast<i32>(lane / 16 * 8);
#pragma unroll 1
    for (i32 t = 0; t < kSteps; ++t) {
      u32x4 of_a[row_blocks], of_b[column_blocks];
#pragma unroll
      for (int r = 0; r < row_blocks; ++r) of_a[r] = load_some(a[r] + 64 * t, left - 32 * t);
#pragma unroll
      for (int c = 0; c < column_blocks; ++c) of_b[c] = load_some(b[c] + 64 * t, left - 32 * t);
      const bool by_fp32 = any_subnormals<Element>(of_a) || any_subnormals<Element>(of_b);
#pragma unroll
      for (int r = 0; r < row_blocks; ++r)
#pragma unroll
        for (int c = 0; c < column_blocks; ++c)
          sums[r][c] = exact_mfma_16x16x32<Element>(by_fp32, of_b[c], of_a[r], sums[r][c]);
    }
  }

  // This wave's part of `length` k: chunks wave, wave + 4, ...
  FLYDSL_DEVICE void run(i32 length, u32 wave, u32 lane) {
    const i32 all = length / kChunk, some = length % kChunk;
    const i32 before = static_cast<i32>(wave);
    i32 chunks =
        all > before ? (all - before + static_cast<i32>(kWaves) - 1) / static_cast<i32>(kWaves) : 0;
    if (chunks > 0) {
      Fragments x, y;
      load(x);
#pragma unroll 1
      for (;;) {
        if (--chunks == 0) {
          multiply(x);
          break;
        }
        load(y);
        multiply(x);
        if (--chunks == 0) {
          multiply(y);
          break;
        }
        load(x);
        multiply(y);
      }
    }
    if (some > 0 && all % static_cast<i32>(kWaves) == before) multiply_some(some, lane);
  }
};

}  // namespace flydsl::kernels::matmul
