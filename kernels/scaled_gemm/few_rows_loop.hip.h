// D tile = A B of 16 to 64 rows and 16 columns, MX operands: fragments and scales straight into registers, the next ones while these
// are multiplied. Four waves share K, chunk by chunk in turn; their sums are added in their order by the caller.
//
// An instruction multiplies 16 rows, 16 columns and 128 k, 4 blocks. Lane l, with g = l / 16, holds k = 32 g .. of e2m1, of bytes 16 g .. and
// 64 + 16 g .., and the scale of block g. So the scales of a step are, of each row,
//
//   plain      4 neighbours, a word; the lane's byte is g
//   shuffled   with those of the next step and of the row 16 on or before in one word of lane l: byte 2 (step % 2) + row / 16 % 2
#pragma once

#include "common/matmul/accumulators.hip.h"
#include "common/memory.hip.h"
#include "scaled_gemm/arguments.hip.h"
#include "scaled_gemm/formats.hip.h"

namespace flydsl::kernels::scaled_gemm {

// One operand: rows `first` .. of a matrix, of which `rows` exist; for those that do not the last one is read.
struct FewRowsOperand {
  global_ptr<const char> data, scales;  // of the matrix
  i64 row_bytes, scale_row_bytes;
  i32 first;
  u32 rows;

  FLYDSL_DEVICE u32 existing(u32 row) const { return row < rows ? row : rows - 1; }
};

// Blocks of 16 rows.
template <int format, bool shuffled, int blocks, int steps>
struct FewRowsSource {
  static constexpr bool kPacked = is_packed(format);
  static constexpr int kStepBytes = kPacked ? 64 : 128;
  static constexpr int kWords = shuffled ? steps / 2 : steps;  // of scales
  static constexpr int kScaleBytes = shuffled ? 256 : 4;       // from word to word
  static_assert(steps % 2 == 0);

  struct Chunk {
    u32x4 low[blocks][steps], high[blocks][kPacked ? 1 : steps];
    u32 scales[blocks][kWords];
  };
  global_ptr<const char> data, scales;            // of the tile's first row, the same in all lanes
  u32 data_offset[blocks], scale_offset[blocks];  // the lane's of the next chunk
  u32 shift[blocks];                              // to the lane's byte of a word

  // From `step` on.
  FLYDSL_DEVICE FewRowsSource(const FewRowsOperand &from, i32 step, u32 lane) {
    const u32 g = lane / 16;
    const i32 lines = shuffled ? from.first / 32 * 32 : from.first;
    data = from.data + (from.first * from.row_bytes + i64{step} * kStepBytes);
    scales =
        from.scales + (lines * from.scale_row_bytes + i64{step} / (shuffled ? 2 : 1) * kScaleBytes);
#pragma unroll
    for (int n = 0; n < blocks; ++n) {
      const u32 row = from.existing(16 * n + lane % 16);
      data_offset[n] = row * static_cast<u32>(from.row_bytes) + 16 * g;
      if constexpr (shuffled) {
        const u32 line = (static_cast<u32>(from.first) % 32 + from.existing(16 * n)) / 32 * 32;
        scale_offset[n] = line * static_cast<u32>(from.scale_row_bytes) + 4 * lane;
        shift[n] = 8 * ((static_cast<u32>(from.first) / 16 + static_cast<u32>(n)) % 2);
      } else {
        scale_offset[n] = row * static_cast<u32>(from.scale_row_bytes);
        shift[n] = 8 * g;
      }
    }
    settle();
  }
  FLYDSL_DEVICE void load(Chunk &to) const {
#pragma unroll
    for (int t = 0; t < steps; ++t)
#pragma unroll
      for (int n = 0; n < blocks; ++n) {
        to.low[n][t] = load_16_bytes(data + data_offset[n] + t * kStepBytes);
        if constexpr (!kPacked)
          to.high[n][t] = load_16_bytes(data + data_offset[n] + (t * kStepBytes + 64));
      }
#pragma unroll
    for (int n = 0; n < blocks; ++n) {
      const global_ptr<const char> from = scales + scale_offset[n];
      if constexpr (shuffled) {
#pragma unroll
        for (int w = 0; w < kWords; ++w) to.scales[n][w] = load_4_bytes(from + w * kScaleBytes);
      } else {
#pragma unroll
        for (int w = 0; w < kWords; w += 2) {
          const u32x2 two = load_8_bytes(from + w * kScaleBytes);
          to.scales[n][w] = two[0];
          to.scales[n][w + 1] = two[1];
        }
      }
    }
  }
  FLYDSL_DEVICE void advance(i32 more_steps) {
    data += more_steps * kStepBytes;
    scales += more_steps / (shuffled ? 2 : 1) * kScaleBytes;
    settle();
  }
  // In scalar registers, so that lanes keep offsets of 32 bits only.
  FLYDSL_DEVICE void settle() {
    asm volatile("" : "+s"(data), "+s"(scales));
  }
  FLYDSL_DEVICE static Fragment fragment(const Chunk &of, int n, int t) {
    if constexpr (kPacked)
      return {of.low[n][t], of.low[n][t]};
    else
      return {of.low[n][t], of.high[n][t]};
  }
  // In byte byte_of(t).
  FLYDSL_DEVICE u32 scale(const Chunk &of, int n, int t) const {
    return of.scales[n][shuffled ? t / 2 : t] >> shift[n];
  }
  static constexpr int byte_of(int t) {
    return shuffled ? t % 2 * 2 : 0;
  }
  // One step, `t` after the next chunk's first.
  FLYDSL_DEVICE Fragment load_step(int n, i32 t) const {
    const global_ptr<const char> at = data + t * kStepBytes + data_offset[n];
    const u32x4 low = load_16_bytes(at);
    if constexpr (kPacked)
      return {low, low};
    else
      return {low, load_16_bytes(at + 64)};
  }
  // In byte 0.
  FLYDSL_DEVICE u32 load_step_scale(int n, i32 t) const {
    const u32 word = load_4_bytes(scales + (shuffled ? t / 2 : t) * kScaleBytes + scale_offset[n]);
    return word >> (shift[n] + (shuffled ? static_cast<u32>(t) % 2 * 16 : 0));
  }
};

template <int format_a, int format_b, bool shuffled, int row_blocks>
struct FewRowsLoop {
  static constexpr i32 kWaves = 4;
  static constexpr bool kPacked = is_packed(format_a);
  static_assert(kPacked == is_packed(format_b));
  // So many that two chunks fit into registers.
  static constexpr int kSteps = (row_blocks == 1 ? 8 : 4) / (kPacked ? 1 : 2);
  using SourceA = FewRowsSource<format_a, shuffled, row_blocks, kSteps>;
  using SourceB = FewRowsSource<format_b, shuffled, 1, kSteps>;
  struct Chunk {
    typename SourceA::Chunk a;
    typename SourceB::Chunk b;
  };
  SourceA a;
  SourceB b;
  f32x4 sums[row_blocks] = {};  // row lane % 16 of a block, columns 4 (lane / 16) ..

  // From `step` on, of 128 k.
  FLYDSL_DEVICE FewRowsLoop(const FewRowsOperand &a, const FewRowsOperand &b, i32 step, i32 wave,
                            u32 lane)
      : a(a, step + wave * kSteps, lane), b(b, step + wave * kSteps, lane) {}

  FLYDSL_DEVICE void load(Chunk &to) {
    b.load(to.b);
    a.load(to.a);
    __builtin_amdgcn_sched_barrier(0);
    b.advance(kSteps * kWaves);
    a.advance(kSteps * kWaves);
  }
  FLYDSL_DEVICE void multiply(const Chunk &of) {
    matmul::each<kSteps>([&](auto step) FLYDSL_INLINED {
      constexpr int t = decltype(step)::value, byte = SourceA::byte_of(t);
#pragma unroll
      for (int n = 0; n < row_blocks; ++n)
        sums[n] = scaled_product16<format_b, format_a, byte, byte>(
            SourceB::fragment(of.b, 0, t), SourceA::fragment(of.a, n, t), b.scale(of.b, 0, t),
            a.scale(of.a, n, t), sums[n]);
    });
    __builtin_amdgcn_sched_barrier(0);
  }
  // What is left of the last chunk.
  FLYDSL_DEVICE void multiply_some(i32 steps) {
#pragma unroll 1
    for (i32 t = 0; t < steps; ++t) {
      const Fragment of_b = b.load_step(0, t);
      const u32 scale_b = b.load_step_scale(0, t);
#pragma unroll
      for (int n = 0; n < row_blocks; ++n)
        sums[n] = scaled_product16<format_b, format_a>(of_b, a.load_step(n, t), scale_b,
                                                       a.load_step_scale(n, t), sums[n]);
    }
  }
  // This wave's part of `steps`: chunks wave, wave + 4, ...
  FLYDSL_DEVICE void run(i32 steps, i32 wave) {
    const i32 all = steps / kSteps, some = steps % kSteps;
    i32 chunks = all > wave ? (all - wave + kWaves - 1) / kWaves : 0;
    if (chunks > 0) {
      Chunk x, y;
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
    if (some > 0 && all % kWaves == wave) multiply_some(some);
  }
};

}  // namespace flydsl::kernels::scaled_gemm
