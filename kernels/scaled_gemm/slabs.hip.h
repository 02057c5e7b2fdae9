// Operands of any strides on their way to products: slabs of K with their scales, by registers to LDS, and what 128 x 128 of D makes of one.
// Four waves of 64 x 64. Before gfx950 elements become bf16 on the way, and a slab is a block of 32.
#pragma once

#include "common/lanes.hip.h"
#include "common/lds.hip.h"
#include "scaled_gemm/formats.hip.h"

namespace flydsl::kernels::scaled_gemm {

constexpr u32 kThreads = 256;
constexpr u32 kRows = 128;  // of either operand: columns of B are "rows" here
constexpr u32 kLineBytes = kGfx950 ? 128 : 64, kChunksOfLine = kLineBytes / 16;  // in LDS
constexpr u32 kSlabBytes = kRows * kLineBytes;
constexpr u32 kScaleBytes = kGfx950 ? kRows * 8 : kRows;  // room for 8 blocks a row
constexpr u32 kStageBytes = 2 * (kSlabBytes + kScaleBytes);
constexpr u32 kStages = kGfx950 ? 2 : 1;             // two would leave room for one work-group only
constexpr int kChunks = kSlabBytes / 16 / kThreads;  // of a lane

// Bytes of K of a slab's row in memory, and of a block of 32.
template <int format>
constexpr i32 kBlockBytes = is_packed(format) ? 16 : 32;
template <int format>
constexpr i32 kSlabK = kGfx950 ? static_cast<i32>(kLineBytes) : kBlockBytes<format>;

template <int count>
struct __attribute__((packed, aligned(1))) AnyAligned {
  u32 words[count];
};

// Chunks of 16 bytes in LDS are moved around inside a line by an exclusive or: so neither reads of 32 rows nor writes of either order of
// lanes find two at one bank.
FLYDSL_DEVICE u32 chunk_place(u32 row, u32 chunk) {
  return row * kLineBytes + 16 * (chunk ^ (row >> 1 & (kChunksOfLine - 1)));
}

// One operand's slabs on their way to LDS. A chunk is whole, or past the end of K: K has whole blocks of 32.
template <int format>
struct Slabs {
  static constexpr u32 kChunkBytes = static_cast<u32>(kSlabK<format>) / kChunksOfLine;  // in memory
  static constexpr int kWords = kChunkBytes / 4;
  using Chunk = vec<u32, kWords>;
  global_ptr<const char> row_of_chunk[kChunks];
  i64 stride_k;
  u32 thread;
  Chunk chunks[kChunks];

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
        const i32 begin = static_cast<i32>(kChunkBytes * chunk(i));
        chunks[i] = Chunk{};
        if (begin < left)
          __builtin_memcpy(&chunks[i],
                           (global_ptr<const AnyAligned<kWords>>)(row_of_chunk[i] + (k + begin)),
                           kChunkBytes);
      }
    } else {
      gather(k, left);
    }
  }
  FLYDSL_DEVICE void gather(i32 k, i32 left) {
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
      const i32 begin = static_cast<i32>(kChunkBytes * chunk(i));
      global_ptr<const char> from = row_of_chunk[i] + (k + begin) * stride_k;
      Chunk bytes = {};
      if (begin < left) {
#pragma unroll
        for (u32 byte = 0; byte < kChunkBytes; ++byte) {
          bytes[byte / 4] |= static_cast<u32>(*(global_ptr<const u8>)from) << byte % 4 * 8;
          from += stride_k;
        }
      }
      // One chunk after the other: all their addresses at once would not fit into the registers.
#pragma unroll
      for (int word = 0; word < kWords; ++word) chunks[i][word] = computed_here(bytes[word]);
    }
  }
  FLYDSL_DEVICE void write(lds_ptr<char> to) const {
#pragma unroll
    for (int i = 0; i < kChunks; ++i)
      write_b128(to + chunk_place(row(i), chunk(i)), in_lds<format>(chunks[i]));
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
  bool any_nan = false;  // of all that were loaded

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
      any_nan |= byte == 255;
      bytes[i / 4] |= byte << i % 4 * 8;
    }
  }
};

// Sums of a wave's 64 x 64 part: block (m, n) of 32 x 32, columns as the instruction's rows, so that lane l has row l % 32 and
// register i column 8 (i / 4) + 4 (l / 32) + i % 4.
struct Sums {
  f32x16 block[2][2];
};

}  // namespace flydsl::kernels::scaled_gemm
