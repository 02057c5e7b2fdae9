// Operands of any strides on their way to products: slabs of 128 bytes of K with their scales, by registers to LDS, and what 128 x 128 of D
// makes of one. Four waves of 64 x 64.
#pragma once

#include "common/lanes.hip.h"
#include "common/lds.hip.h"
#include "scaled_gemm/formats.hip.h"

namespace flydsl::kernels::scaled_gemm {

constexpr u32 kThreads = 256;
constexpr u32 kRows = 128;  // of either operand: columns of B are "rows" here
constexpr u32 kLineBytes = 128, kChunksOfLine = kLineBytes / 16;
constexpr u32 kSlabBytes = kRows * kLineBytes;
constexpr u32 kScaleBytes = kRows * 8;  // room for 8 blocks a row
constexpr u32 kStageBytes = 2 * (kSlabBytes + kScaleBytes);
constexpr int kChunks = kSlabBytes / 16 / kThreads;  // of a lane

struct __attribute__((packed, aligned(1))) AnyAligned16 {
  u32 words[4];
};

// Chunks of 16 bytes are moved around inside a line by an exclusive or: so neither reads of 32 rows nor writes of either order of
// lanes find two at one bank.
FLYDSL_DEVICE u32 chunk_place(u32 row, u32 chunk) {
  return row * kLineBytes + 16 * (chunk ^ (row >> 1 & 7));
}

// One operand's slabs on their way to LDS. A chunk is whole, or past the end of K: K has whole blocks of 32.
struct Slabs {
  global_ptr<const char> row_of_chunk[kChunks];
  i64 stride_k;
  u32 thread;
  u32x4 chunks[kChunks];

  // Lanes lie along K where it is contiguous, else along the rows.
  FLYDSL_DEVICE u32 row(u32 i) const {
    const u32 number = i * kThreads + thread;
    return stride_k == 1 ? number / kChunksOfLine : number % kRows;
  }
  FLYDSL_DEVICE u32 chunk(u32 i) const {
    const u32 number = i * kThreads + thread;
    return stride_k == 1 ? number % kChunksOfLine : number / kRows;
  }

  // `rows` exist from `first` on; for those that do not the last one is read.
  FLYDSL_DEVICE Slabs(global_ptr<const char> first, i64 stride_row, i64 stride_k, u32 rows,
                      u32 thread)
      : stride_k(stride_k), thread(thread) {
#pragma unroll
    for (int i = 0; i < kChunks; ++i)
      row_of_chunk[i] = first + (row(i) < rows ? row(i) : rows - 1) * stride_row;
  }

  // The slab that begins at byte `k` of a row, of which `left` exist; the others become 0.
  FLYDSL_DEVICE void load(i32 k, i32 left) {
    if (stride_k == 1) {
#pragma unroll
      for (int i = 0; i < kChunks; ++i) {
        const i32 begin = static_cast<i32>(16 * chunk(i));
        chunks[i] = u32x4{0, 0, 0, 0};
        if (begin < left)
          __builtin_memcpy(&chunks[i],
                           (global_ptr<const AnyAligned16>)(row_of_chunk[i] + (k + begin)), 16);
      }
    } else {
      gather(k, left);
    }
  }
  FLYDSL_DEVICE void gather(i32 k, i32 left) {
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
      const i32 begin = static_cast<i32>(16 * chunk(i));
      global_ptr<const char> from = row_of_chunk[i] + (k + begin) * stride_k;
      u32x4 bytes = {0, 0, 0, 0};
      if (begin < left) {
#pragma unroll
        for (int byte = 0; byte < 16; ++byte) {
          bytes[byte / 4] |= static_cast<u32>(*(global_ptr<const u8>)from) << byte % 4 * 8;
          from += stride_k;
        }
      }
      // One chunk after the other: all their addresses at once would not fit into the registers.
#pragma unroll
      for (int word = 0; word < 4; ++word) chunks[i][word] = computed_here(bytes[word]);
    }
  }
  FLYDSL_DEVICE void write(lds_ptr<char> to) const {
#pragma unroll
    for (int i = 0; i < kChunks; ++i) write_b128(to + chunk_place(row(i), chunk(i)), chunks[i]);
  }
};

// The scales of a slab of one row, on their way to LDS.
template <int blocks>
struct RowScales {
  global_ptr<const u8> first;  // of the matrix, or of the row
  i64 stride_k;
  u32 row;
  bool shuffled;
  u32x2 bytes;

  FLYDSL_DEVICE RowScales(global_ptr<const u8> matrix, i64 stride_row, i64 stride_k, u32 row,
                          bool shuffled)
      : first(matrix + (shuffled ? row / 32 * 32 : row) * stride_row),
        stride_k(stride_k),
        row(row),
        shuffled(shuffled) {}

  FLYDSL_DEVICE i64 offset(u32 block) const {
    if (!shuffled) return block * stride_k;
    return block / 8 * 256 + block % 4 * 64 + row % 16 * 4 + block % 8 / 4 * 2 + row % 32 / 16;
  }
  // Of blocks `block` .., of which `left` exist; the others become 1, so that they leave the zeros there alone.
  FLYDSL_DEVICE void load(u32 block, i32 left) {
    bytes = u32x2{0, 0};
#pragma unroll
    for (int i = 0; i < blocks; ++i) {
      u32 byte = 127;
      if (i < left) byte = first[offset(block + static_cast<u32>(i))];
      bytes[i / 4] |= byte << i % 4 * 8;
    }
  }
};

// Sums of a wave's 64 x 64 part: block (m, n) of 32 x 32, columns as the instruction's rows, so that lane l has row l % 32 and
// register i column 8 (i / 4) + 4 (l / 32) + i % 4.
struct Sums {
  f32x16 block[2][2];
};

template <int format>
FLYDSL_DEVICE Fragment fragment_of(lds_ptr<const char> slab, u32 row, u32 step, u32 half) {
  if constexpr (is_packed(format)) {
    const u32x4 low = read_b128(slab + chunk_place(row, 2 * step + half));
    return {low, low};
  } else {
    return {read_b128(slab + chunk_place(row, 4 * step + half)),
            read_b128(slab + chunk_place(row, 4 * step + 2 + half))};
  }
}

// All 128 bytes of K, of rows row_a .. of A and row_b .. of B, with their scales.
template <int format_a, int format_b>
FLYDSL_DEVICE void multiply_slab(lds_ptr<const char> stage, u32 row_a, u32 row_b, u32 lane,
                                 Sums &sums) {
  constexpr u32 kSteps = is_packed(format_a) ? 4 : 2;  // of 64 elements
  const lds_ptr<const char> a = stage, b = stage + kSlabBytes;
  const lds_ptr<const u32x2> scales = (lds_ptr<const u32x2>)(stage + 2 * kSlabBytes);
  const u32 half = lane / 32;
  u32x2 scales_a[2], scales_b[2];
#pragma unroll
  for (u32 i = 0; i < 2; ++i) {
    scales_a[i] = scales[row_a + 32 * i + lane % 32];
    scales_b[i] = scales[kRows + row_b + 32 * i + lane % 32];
  }
#pragma unroll
  for (u32 step = 0; step < kSteps; ++step) {
    // Block 2 step + half.
    const u32 word = step / 2, shift = step % 2 * 16 + half * 8;
    Fragment of_a[2], of_b[2];
#pragma unroll
    for (u32 i = 0; i < 2; ++i) {
      of_a[i] = fragment_of<format_a>(a, row_a + 32 * i + lane % 32, step, half);
      of_b[i] = fragment_of<format_b>(b, row_b + 32 * i + lane % 32, step, half);
    }
#pragma unroll
    for (int m = 0; m < 2; ++m)
#pragma unroll
      for (int n = 0; n < 2; ++n)
        sums.block[m][n] =
            scaled_product<format_b, format_a>(of_b[n], of_a[m], scales_b[n][word] >> shift,
                                               scales_a[m][word] >> shift, sums.block[m][n]);
  }
}

}  // namespace flydsl::kernels::scaled_gemm
