// The instance that computes all that the header allows: 128 x 128 of D a work-group, four waves of 64 x 64, operands and scales of any
// strides. Slabs of 128 bytes of K pass registers, in which the next one is loaded while one is multiplied, and two stages of LDS.
#pragma once

#include "common/lds.hip.h"
#include "scaled_gemm/formats.hip.h"
#include "scaled_gemm/output.hip.h"

namespace flydsl::kernels {
namespace scaled_gemm {

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

// A wave's sums by way of its part of LDS, to rows of 8 neighbours.
FLYDSL_DEVICE void store_general(lds_ptr<char> mine, Arguments args, u32 batch, i32 first_row,
                                 i32 first_column, u32 lane, const Sums &sums) {
  constexpr u32 kRowBytes = 64 * 4;  // all banks: chunks are moved by the row
#pragma unroll
  for (u32 i = 0; i < 2; ++i)
#pragma unroll
    for (u32 j = 0; j < 2; ++j)
#pragma unroll
      for (u32 part = 0; part < 4; ++part) {
        const u32 row = 32 * i + lane % 32, chunk = 8 * j + 2 * part + lane / 32;
        const f32x16 block = sums.block[i][j];
        const f32x4 four = {block[4 * part], block[4 * part + 1], block[4 * part + 2],
                            block[4 * part + 3]};
        write_b128(mine + row * kRowBytes + 16 * (chunk ^ (row & 15)), bits_as<u32x4>(four));
      }
  barrier();
  const i32 m = args->m, n = args->n;
#pragma unroll 1
  for (u32 i = 0; i < 8; ++i) {
    const u32 row = 8 * i + lane / 8, chunk = lane % 8 * 2;
    const i32 at_row = first_row + static_cast<i32>(row);
    const i32 at_column = first_column + static_cast<i32>(4 * chunk);
    if (at_row >= m || at_column >= n) continue;
    float eight[8];
#pragma unroll
    for (u32 half = 0; half < 2; ++half) {
      const f32x4 four =
          bits_as<f32x4>(read_b128(mine + row * kRowBytes + 16 * ((chunk + half) ^ (row & 15))));
#pragma unroll
      for (int j = 0; j < 4; ++j) eight[4 * half + j] = four[j];
    }
    finish_row8(args, batch, at_row, at_column, n - at_column, eight);
  }
}

}  // namespace scaled_gemm

template <int format_a, int format_b>
FLYDSL_DEVICE void scaled_gemm_general(const flydsl_aot_scaled_gemm_kernarg &kernarg) {
  using namespace scaled_gemm;
  FLYDSL_SHARED static char memory[2 * kStageBytes];
  static_assert(sizeof memory >= kThreads * 64 * 4, "64 sums a lane");
  const lds_ptr<char> lds = (lds_ptr<char>)memory;

  const Arguments args = arguments_here(kernarg);
  const u32 number =
      uniform(__builtin_amdgcn_workgroup_id_y() * args->grid_x + __builtin_amdgcn_workgroup_id_x());
  if (number >= args->tiles) return;
  const Tile tile(number, args);
  const u32 thread = __builtin_amdgcn_workitem_id_x();
  const u32 wave = uniform(thread / kWaveLanes), lane = thread % kWaveLanes;
  const u32 first_row = tile.row * kRows, first_column = tile.column * kRows;
  const u32 m = static_cast<u32>(args->m), n = static_cast<u32>(args->n);
  const u32 row_a = wave / 2 * 64, row_b = wave % 2 * 64;

  Sums sums = {};
  if (args->k > 0) {
    constexpr i32 kBlockBytes = is_packed(format_a) ? 16 : 32;
    constexpr i32 kBlocks = static_cast<i32>(kLineBytes) / kBlockBytes;  // of a slab's row
    i32 left = args->k / 32 * kBlockBytes;
    Slabs a((global_ptr<const char>)args->a + tile.batch * args->a_stride_b +
                first_row * args->a_stride_m,
            args->a_stride_m, args->a_stride_k, m - first_row, thread);
    Slabs b((global_ptr<const char>)args->b + tile.batch * args->b_stride_b +
                first_column * args->b_stride_n,
            args->b_stride_n, args->b_stride_k, n - first_column, thread);
    // The first half of the work-group has A's rows, the other one B's.
    const bool of_a = thread < kRows;
    const u32 wanted = thread % kRows + (of_a ? first_row : first_column);
    const u32 rows = of_a ? m : n;
    RowScales<kBlocks> scales(
        of_a ? (global_ptr<const u8>)args->a_scale + tile.batch * args->a_scale_stride_b
             : (global_ptr<const u8>)args->b_scale + tile.batch * args->b_scale_stride_b,
        of_a ? args->a_scale_stride_m : args->b_scale_stride_n,
        of_a ? args->a_scale_stride_k : args->b_scale_stride_k, wanted < rows ? wanted : rows - 1,
        args->scales_shuffled != 0);
    i32 k = 0;
    const auto load = [&]() FLYDSL_INLINED {
      // Addresses are computed here, not carried round the loop: there are too many.
      k = static_cast<i32>(uniform_computed_here(static_cast<u32>(k)));
      a.load(k, left);
      b.load(k, left);
      scales.load(static_cast<u32>(k / kBlockBytes), left / kBlockBytes);
    };
    load();
    u32 stage = 0;
    while (true) {
      const lds_ptr<char> at = lds + stage;
      a.write(at);
      b.write(at + kSlabBytes);
      *(lds_ptr<u32x2>)(at + 2 * kSlabBytes + 8 * thread) = scales.bytes;
      // Two stages: who writes one next has passed this barrier once more, and so have all done with reading it.
      barrier();
      k += static_cast<i32>(kLineBytes);
      left -= static_cast<i32>(kLineBytes);
      if (left > 0) load();
      multiply_slab<format_a, format_b>(at, row_a, row_b, lane, sums);
      if (left <= 0) break;
      stage ^= kStageBytes;
    }
    barrier();
  }
  store_general(lds + wave * (64 * 64 * 4), args, tile.batch, static_cast<i32>(first_row + row_a),
                static_cast<i32>(first_column + row_b), lane, sums);
}

}  // namespace flydsl::kernels
