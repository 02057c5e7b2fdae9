// A slab of one operand of the general instance: 128 rows of A, or columns of B (both are "rows" here), and a line of K of
// each, from memory of any strides through registers to LDS, and the products of it. Before gfx950, whose matrix instructions take OCP
// bytes, these become bf16 on the way.
#pragma once

#include "common/exact_mfma.hip.h"
#include "common/lanes.hip.h"
#include "common/lds.hip.h"
#include "common/memory.hip.h"
#include "gemm/row8.hip.h"

namespace flydsl::kernels::gemm {

constexpr u32 kThreads = 256;
constexpr u32 kRows = 128;
constexpr u32 kLineBytes = kGfx950 ? 128 : 64,
              kChunksOfLine = kLineBytes / 16;  // two stages, two work-groups
constexpr u32 kSlabBytes = kRows * kLineBytes;
constexpr int kChunks = kSlabBytes / 16 / kThreads;  // of a lane

template <class Operand>
struct Storage;  // of an element in memory
template <>
struct Storage<bf16> {
  using type = u16;
};
template <>
struct Storage<fp16> {
  using type = u16;
};
template <>
struct Storage<float> {
  using type = u32;
};
template <>
struct Storage<u8> {
  using type = u8;
};

// Chunks of 16 bytes are moved around inside a line by an exclusive or: so neither reads of 32 rows nor writes of either order of
// lanes find two at one bank.
FLYDSL_DEVICE u32 chunk_place(u32 row, u32 chunk) {
  return row * kLineBytes + 16 * (chunk ^ (row >> 1 & (kChunksOfLine - 1)));
}

// At 1-byte alignment.
template <int count>
struct __attribute__((packed, aligned(1))) UnalignedChunk {
  u32 words[count];
};
template <int count>
FLYDSL_DEVICE vec<u32, count> load_chunk(global_ptr<const char> from) {
  vec<u32, count> result;
#pragma unroll
  for (int i = 0; i < count; ++i)
    result[i] = ((global_ptr<const UnalignedChunk<count>>)from)->words[i];
  return result;
}

// One operand's slabs on their way to LDS.
template <class Stored>
struct Slabs {
  static constexpr bool kWidens = sizeof(Stored) == 1 && !kGfx950;
  static constexpr i32 kElements = kWidens ? 8 : 16 / sizeof(Stored);  // of a chunk
  static constexpr i32 kSlabK = kElements * kChunksOfLine;
  // Registers of a chunk: elements of 16 bits have one each until they are written, so that nothing waits for them
  // before; bytes are put together at once.
  static constexpr int kRegisters = sizeof(Stored) == 2 ? 8 : kWidens ? 2 : 4;
  static constexpr int kWords = kElements * sizeof(Stored) / 4;

  global_ptr<const Stored> row_of_chunk[kChunks];
  i64 stride_k;
  u32 thread;
  i32 left;         // of K, from the slab that is loaded on
  bool one_by_one;  // its elements were loaded so
  u32 loaded[kChunks][kRegisters];

  // Lanes lie along K where it is contiguous, else along the rows.
  FLYDSL_DEVICE bool along_k() const { return stride_k == 1; }
  FLYDSL_DEVICE u32 row(u32 i) const {
    const u32 number = i * kThreads + thread;
    return along_k() ? number / kChunksOfLine : number % kRows;
  }
  FLYDSL_DEVICE u32 chunk(u32 i) const {
    const u32 number = i * kThreads + thread;
    return along_k() ? number % kChunksOfLine : number / kRows;
  }

  // `rows` exist from `first` on; for those that do not the last one is read.
  FLYDSL_DEVICE Slabs(global_ptr<const Stored> first, i64 stride_row, i64 stride_k, u32 rows,
                      u32 thread)
      : stride_k(stride_k), thread(thread) {
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
      const u32 at = row(i) < rows ? row(i) : rows - 1;
      row_of_chunk[i] = first + at * stride_row;
    }
  }

  // The slab that begins at `k`, of which `left` exist, from 1 up.
  FLYDSL_DEVICE void load(i32 k, i32 left_of_k) {
    thread = computed_here(thread);  // what follows from it is not kept from slab to slab
    left = left_of_k;
    one_by_one = !along_k() || left < kSlabK;
    if (one_by_one) {
      load_elements(k);
      return;
    }
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
      const auto words = load_chunk<kWords>(
          (global_ptr<const char>)(row_of_chunk[i] + k + static_cast<i32>(chunk(i)) * kElements));
#pragma unroll
      for (int word = 0; word < kWords; ++word) loaded[i][word] = words[word];
    }
  }

  // For elements that do not exist the last one is read.
  FLYDSL_DEVICE void load_elements(i32 k) {
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
      const i32 begin = static_cast<i32>(chunk(i)) * kElements;
      const global_ptr<const Stored> from = row_of_chunk[i] + k * stride_k;
      const auto element = [&](i32 e) FLYDSL_INLINED {
        const i32 at = begin + e < left ? begin + e : left - 1;
        return u32{from[at * stride_k]};
      };
#pragma unroll
      for (int r = 0; r < kRegisters; ++r) {
        if constexpr (sizeof(Stored) == 1)
          loaded[i][r] = element(4 * r) | element(4 * r + 1) << 8 | element(4 * r + 2) << 16 |
                         element(4 * r + 3) << 24;
        else
          loaded[i][r] = element(r);
        // Or the addresses of all are computed first, and kept.
        if (r % 4 == 3 || (sizeof(Stored) == 1 && r % 2 == 1)) __builtin_amdgcn_sched_barrier(0);
      }
    }
  }

  // What does not exist becomes 0. `format`: of bytes that are widened.
  FLYDSL_DEVICE void write(lds_ptr<char> to, Format format = Format::wide) {
    thread = computed_here(thread);
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
      u32x4 words;
      if (sizeof(Stored) == 2 && one_by_one) {
#pragma unroll
        for (int word = 0; word < 4; ++word)
          words[word] = loaded[i][2 * word] | loaded[i][kRegisters / 4 * word + 1] << 16;
      } else {
#pragma unroll
        for (int word = 0; word < 4; ++word) words[word] = word < kWords ? loaded[i][word] : 0;
      }
      const i32 bytes = (left - static_cast<i32>(chunk(i)) * kElements) * i32{sizeof(Stored)};
      if (left < kSlabK) {
#pragma unroll
        for (int word = 0; word < kWords; ++word) {
          const i32 there = bytes - 4 * word;  // bytes of this word that exist
          const u32 mask = there >= 4 ? ~0u : there <= 0 ? 0u : (1u << 8 * there) - 1;
          words[word] &= mask;
        }
      }
      if constexpr (kWidens)
        words = format == Format::e4m3 ? widened8<bf16, Format::e4m3>(words)
                                       : widened8<bf16, Format::e5m2>(words);
      write_b128(to + chunk_place(row(i), chunk(i)), words);
    }
  }
};

// Sums of a wave's 64 x 64 part: block (m, n) of 32 x 32, columns as the instruction's rows, so that lane l has row l % 32 and
// register i column 8 (i / 4) + 4 (l / 32) + i % 4.
struct Sums {
  f32x16 block[2][2];
};

// Chunk 2 step + lane / 32 of 32 rows: some permutation of K, the same for both operands.
FLYDSL_DEVICE u32x4 fragment(lds_ptr<const char> slab, u32 first_row, u32 step, u32 lane) {
  return read_b128(slab + chunk_place(first_row + lane % 32, 2 * step + lane / 32));
}

template <class Operand>
FLYDSL_DEVICE f32x16 product(bool by_fp32, u32x4 a, u32x4 b, f32x16 sum) {
  if constexpr (__is_same(Operand, float)) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      sum = __builtin_amdgcn_mfma_f32_32x32x2f32(bits_as<float>(b[i]), bits_as<float>(a[i]), sum, 0,
                                                 0, 0);
    return sum;
  } else {
    return exact_mfma_32x32x16<Operand>(by_fp32, b, a, sum);
  }
}

// A whole line of K, of rows row_a .. of A and row_b .. of B. `from_bytes`: no element is subnormal.
template <class Operand, bool from_bytes = false>
FLYDSL_DEVICE void multiply_slab(lds_ptr<const char> a, lds_ptr<const char> b, u32 row_a, u32 row_b,
                                 u32 lane, Sums &sums) {
#pragma unroll
  for (u32 step = 0; step < kChunksOfLine / 2; ++step) {
    u32x4 of_a[2], of_b[2];
#pragma unroll
    for (u32 i = 0; i < 2; ++i) {
      of_a[i] = fragment(a, row_a + 32 * i, step, lane);
      of_b[i] = fragment(b, row_b + 32 * i, step, lane);
    }
    bool by_fp32 = false;
    if constexpr (!__is_same(Operand, float) && !from_bytes)
      by_fp32 = any_subnormals<Operand>(of_a) || any_subnormals<Operand>(of_b);
#pragma unroll
    for (int m = 0; m < 2; ++m)
#pragma unroll
      for (int n = 0; n < 2; ++n)
        sums.block[m][n] = product<Operand>(by_fp32, of_a[m], of_b[n], sums.block[m][n]);
  }
}

#if FLYDSL_GFX950
// The same of bytes, 64 of K an instruction; formats 0 e4m3, 1 e5m2. Scales that are 0 make it the form without scales.
template <int format_a, int format_b>
FLYDSL_DEVICE void multiply_bytes(lds_ptr<const char> a, lds_ptr<const char> b, u32 row_a,
                                  u32 row_b, u32 lane, Sums &sums) {
  using operand = vec<int, 8>;
  struct Pair {
    u32x4 low, high;
  };
#pragma unroll
  for (u32 step = 0; step < kChunksOfLine / 2; step += 2) {
    Pair of_a[2], of_b[2];
#pragma unroll
    for (u32 i = 0; i < 2; ++i) {
      of_a[i] = {fragment(a, row_a + 32 * i, step, lane),
                 fragment(a, row_a + 32 * i, step + 1, lane)};
      of_b[i] = {fragment(b, row_b + 32 * i, step, lane),
                 fragment(b, row_b + 32 * i, step + 1, lane)};
    }
#pragma unroll
    for (int m = 0; m < 2; ++m)
#pragma unroll
      for (int n = 0; n < 2; ++n)
        sums.block[m][n] = __builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(
            bits_as<operand>(of_b[n]), bits_as<operand>(of_a[m]), sums.block[m][n], format_b,
            format_a, 0, 0, 0, 0);
  }
}
#endif

}  // namespace flydsl::kernels::gemm
