// A wave's sums by way of its part of LDS, to rows of 8 neighbours: 64 columns, and any rows.
#pragma once

#include "common/lds.hip.h"
#include "gemm/epilogue.hip.h"

namespace flydsl::kernels::gemm {

constexpr u32 kSumRowBytes = 64 * 4;  // all banks: chunks of four are moved by the row
FLYDSL_DEVICE u32 sum_place(u32 row, u32 chunk) {
  return row * kSumRowBytes + 16 * (chunk ^ (row & 15));
}

// `rows` of them are in `mine`, which other lanes wrote before a barrier.
template <u32 rows>
FLYDSL_DEVICE void store_rows(lds_ptr<const char> mine, u32 split, u32 batch, i32 first_row,
                              i32 first_column, u32 lane, i32 m, i32 n) {
  constexpr u32 kRowsAtOnce = kWaveLanes / 8;
#pragma unroll 1
  for (u32 i = 0; i < rows / kRowsAtOnce; ++i) {
    const u32 row = kRowsAtOnce * i + lane / 8, chunk = lane % 8 * 2;
    const i32 at_row = first_row + static_cast<i32>(row);
    const i32 at_column = first_column + static_cast<i32>(4 * chunk);
    if (at_row >= m || at_column >= n) continue;
    float eight[8];
#pragma unroll
    for (u32 half = 0; half < 2; ++half) {
      const f32x4 four = bits_as<f32x4>(read_b128(mine + sum_place(row, chunk + half)));
#pragma unroll
      for (int j = 0; j < 4; ++j) eight[4 * half + j] = four[j];
    }
    store_sums(split, batch, at_row, at_column, eight);
  }
}

}  // namespace flydsl::kernels::gemm
