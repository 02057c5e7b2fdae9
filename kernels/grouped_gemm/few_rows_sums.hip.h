// Sums of 16 x 16 blocks that four waves have each of their part of K: added in the waves' order, to D.
#pragma once

#include "common/lds.hip.h"
#include "grouped_gemm/store.hip.h"

namespace flydsl::kernels::grouped {

template <u32 row_blocks, u32 column_blocks, bool may_begin_before>
struct FewRowsSums {
  static constexpr u32 kWaves = 4, kBlocks = row_blocks * column_blocks;
  static constexpr u32 kLdsBytes = kWaves * kBlocks * 1024;

  // `sums(r, c)`: of a block, of which the lane has row lane % 16 and columns 4 (lane / 16) .. . All have done with `lds` before.
  static FLYDSL_DEVICE void store(const Tile &tile, lds_ptr<char> lds, u32 thread, auto sums) {
    const u32 wave = uniform(thread / kWaveLanes), lane = thread % kWaveLanes;
#pragma unroll
    for (u32 r = 0; r < row_blocks; ++r)
#pragma unroll
      for (u32 c = 0; c < column_blocks; ++c)
        write_b128(lds + ((wave * row_blocks + r) * column_blocks + c) * 1024 + lane * 16,
                   bits_as<u32x4>(sums(r, c)));
    barrier();
    // Of 8 columns of a row: thread -> row, half of the block, block.
    const u32 block = thread / 32, half = thread / 16 % 2;
    if (block >= kBlocks) return;
    const lds_ptr<const char> from = lds + block * 1024 + thread % 16 * 16 + half * 512;
    float total[8] = {};
#pragma unroll
    for (u32 w = 0; w < kWaves; ++w) {
      const f32x4 low = bits_as<f32x4>(read_b128(from + w * kBlocks * 1024)),
                  high = bits_as<f32x4>(read_b128(from + w * kBlocks * 1024 + 256));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        total[i] += low[i];
        total[4 + i] += high[i];
      }
    }
    const DestinationOf<may_begin_before> to(
        tile, static_cast<i32>(16 * (block / column_blocks) + thread % 16),
        static_cast<i32>(16 * (block % column_blocks) + 8 * half));
    if (FLYDSL_UNLIKELY(!to.is_plain))
      to.store_any(0, total);
    else if (to.dtype == Real::bf16)
      to.template store16<bf16>(0, total);
    else if (to.dtype == Real::fp16)
      to.template store16<fp16>(0, total);
    else
      to.store32(0, total);
  }
};

}  // namespace flydsl::kernels::grouped
