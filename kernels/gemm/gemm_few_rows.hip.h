// The instances for few rows of A, whose time is that of reading B: K contiguous in both operands, 16 to 64 rows and 16 or 32 columns of D
// a work-group. Four waves share K: each loads fragments straight into registers, the next ones while it multiplies, and meets the
// others only to add the sums, in their order.
#pragma once

#include "common/lds.hip.h"
#include "common/mfma.hip.h"
#include "gemm/destination.hip.h"

namespace flydsl::kernels {
namespace gemm {

// Blocks of 16 rows of A and of 16 columns of B.
template <class Element, int row_blocks, int column_blocks>
struct FewRows {
  static constexpr u32 kWaves = 4, kBlocks = row_blocks * column_blocks;
  static constexpr int kSteps = row_blocks + column_blocks <= 3 ? 8 : 4;  // of 32 k
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
#pragma unroll
    for (int t = 0; t < kSteps; ++t)
#pragma unroll
      for (int r = 0; r < row_blocks; ++r)
#pragma unroll
        for (int c = 0; c < column_blocks; ++c)
          sums[r][c] = mfma_16x16x32<Element>(of.b[c][t], of.a[r][t], sums[r][c]);
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
#pragma unroll
      for (int r = 0; r < row_blocks; ++r)
#pragma unroll
        for (int c = 0; c < column_blocks; ++c)
          sums[r][c] = mfma_16x16x32<Element>(of_b[c], of_a[r], sums[r][c]);
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

}  // namespace gemm

template <class Element, int row_blocks, int column_blocks>
FLYDSL_DEVICE void gemm_few_rows(const flydsl_aot_gemm_kernarg &) {
  using Wave = gemm::FewRows<Element, row_blocks, column_blocks>;
  const gemm::Arguments args = gemm::fresh_arguments();
  const u32 number =
      __builtin_amdgcn_workgroup_id_y() * args->grid_x + __builtin_amdgcn_workgroup_id_x();
  if (number >= args->tiles) return;
  FLYDSL_SHARED static char memory[Wave::kLdsBytes] __attribute__((aligned(16)));
  const lds_ptr<char> lds = (lds_ptr<char>)memory;
  const u32 thread = __builtin_amdgcn_workitem_id_x(), wave = uniform(thread / kWaveLanes),
            lane = thread % kWaveLanes;
  const gemm::Tile tile(number, args);
  constexpr i32 kRows = 16 * row_blocks, kColumns = 16 * column_blocks;
  const i32 row = static_cast<i32>(tile.row_tile) * kRows,
            column = static_cast<i32>(tile.column_tile) * kColumns;
  const i64 k = i64{tile.split} * args->split_k;
  const i32 rows = args->m - row, columns = args->n - column, left = static_cast<i32>(args->k - k);
  Wave of_wave((global_ptr<const char>)args->a +
                   2 * (tile.batch * args->a_stride_b + row * args->a_stride_m + k),
               2 * args->a_stride_m, rows,
               (global_ptr<const char>)args->b +
                   2 * (tile.batch * args->b_stride_b + column * args->b_stride_n + k),
               2 * args->b_stride_n, columns, wave, lane);
  of_wave.run(left < args->split_k ? left : args->split_k, wave, lane);

  // A lane has row lane % 16 and 4 columns 4 (lane / 16) .. of each block.
#pragma unroll
  for (u32 r = 0; r < row_blocks; ++r)
#pragma unroll
    for (u32 c = 0; c < column_blocks; ++c)
      write_b128(lds + ((wave * row_blocks + r) * column_blocks + c) * 1024 + lane * 16,
                 bits_as<u32x4>(of_wave.sums[r][c]));
  barrier();
  // Of 8 columns of a row: thread -> row, half of the block, block.
  const u32 block = thread / 32, r = block / column_blocks, c = block % column_blocks;
  if (block >= Wave::kBlocks) return;
  const lds_ptr<const char> from = lds + block * 1024 + thread % 16 * 16 + thread / 16 % 2 * 512;
  float sums[8] = {};
#pragma unroll
  for (u32 w = 0; w < Wave::kWaves; ++w) {
    const f32x4 low = bits_as<f32x4>(read_b128(from + w * Wave::kBlocks * 1024)),
                high = bits_as<f32x4>(read_b128(from + w * Wave::kBlocks * 1024 + 256));
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      sums[i] += low[i];
      sums[4 + i] += high[i];
    }
  }
  const i32 at = row + static_cast<i32>(16 * r + thread % 16),
            columns_at = column + static_cast<i32>(16 * c + thread / 16 % 2 * 8);
  if (at >= args->m || columns_at >= args->n) return;
  const gemm::Destination to(tile, at, columns_at, columns >= kColumns);
  if (FLYDSL_LIKELY(to.is_plain))
    to.plain([&](auto store) FLYDSL_INLINED { store(0, sums); });
  else
    gemm::store_sums(tile.split, tile.batch, at, columns_at, sums);
}

}  // namespace flydsl::kernels
