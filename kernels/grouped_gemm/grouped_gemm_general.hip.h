// grouped_gemm for everything the header allows: any strides and alignments, any of the axes.
//
// Tiles of 128 x 128, four waves 2 x 2 of 64 x 64 sums each. A slab of 32 k of both operands waits in registers while the one before
// it is multiplied out of LDS, where lines are 32 k and 16 bytes apart.
#pragma once

#include "common/exact_mfma.hip.h"
#include "common/lds.hip.h"
#include "common/memory.hip.h"
#include "grouped_gemm/store_general.hip.h"

namespace flydsl::kernels::grouped {

constexpr u32 kGeneralTile = 128;
constexpr i32 kGeneralSlab = 32;                   // of k
constexpr u32 kLineBytes = 2 * kGeneralSlab + 16;  // conflict-free reads of 16 bytes
constexpr int kChunks = kGeneralSlab / 16;         // of 8 k, of a thread
constexpr u32 kOperandBytes = kGeneralTile * kLineBytes;

// What a thread carries of one operand's slabs: half a line. Rows are those of A, columns of B.
struct Carrier {
  global_ptr<const char> line;  // at k = 0 of the tile
  i64 k_stride;                 // bytes
  i32 length;                   // of k
  i32 first;                    // of a slab
  u32x4 held[kChunks];

  FLYDSL_DEVICE Carrier(const void *from, i64 row_stride, i64 k_stride_elements, i64 offset,
                        i32 rows, i32 length, u32 thread)
      : k_stride(2 * k_stride_elements),
        length(length),
        first(thread / kGeneralTile * (kGeneralSlab / 2)) {
    const i32 row = static_cast<i32>(thread % kGeneralTile);
    // Rows beyond the last are computed and not stored.
    line = (global_ptr<const char>)from + 2 * (offset + (row < rows ? row : rows - 1) * row_stride);
  }

  FLYDSL_DEVICE void load(i32 slab) {
    const i32 k = slab + first;
    const global_ptr<const char> at = line + k * k_stride;
    if (k_stride == 2 && k + kGeneralSlab / 2 <= length) {
#pragma unroll
      for (int n = 0; n < kChunks; ++n) held[n] = load_16_bytes(at + 16 * n);
      return;
    }
#pragma unroll
    for (int n = 0; n < kChunks; ++n) {
#pragma unroll
      for (int word = 0; word < 4; ++word) {
        const i32 pair = 8 * n + 2 * word;
        const u32 low = k + pair < length ? *(global_ptr<const u16>)(at + pair * k_stride) : 0;
        const u32 high =
            k + pair + 1 < length ? *(global_ptr<const u16>)(at + (pair + 1) * k_stride) : 0;
        held[n][word] = low | high << 16;
      }
    }
  }
  FLYDSL_DEVICE void store(lds_ptr<char> operand, u32 thread) const {
    const lds_ptr<char> to = operand + thread % kGeneralTile * kLineBytes + 2 * first;
#pragma unroll
    for (int n = 0; n < kChunks; ++n) write_b128(to + 16 * n, held[n]);
  }
};

// Columns are the instruction's rows.
template <class Element>
struct GeneralSums {
  f32x16 sums[2][2];

  FLYDSL_DEVICE void clear() {
#pragma unroll
    for (auto &row : sums)
#pragma unroll
      for (f32x16 &block : row) block = f32x16{};
  }
  FLYDSL_DEVICE void add(lds_ptr<const char> a, lds_ptr<const char> b, u32 wave, u32 lane) {
    const u32 in_line = lane / 32 * 16;
    const auto at = [&](u32 half, u32 block) {
      return (64 * half + 32 * block + lane % 32) * kLineBytes + in_line;
    };
#pragma unroll
    for (u32 step = 0; step < kGeneralSlab / 16; ++step) {
      u32x4 of_a[2], of_b[2];
#pragma unroll
      for (u32 block = 0; block < 2; ++block) {
        of_a[block] = read_b128(a + at(wave / 2, block) + 32 * step);
        of_b[block] = read_b128(b + at(wave % 2, block) + 32 * step);
      }
      const bool by_fp32 = any_subnormals<Element>(of_a) || any_subnormals<Element>(of_b);
#pragma unroll
      for (u32 m = 0; m < 2; ++m)
#pragma unroll
        for (u32 n = 0; n < 2; ++n)
          sums[m][n] = exact_mfma_32x32x16<Element>(by_fp32, of_b[n], of_a[m], sums[m][n]);
    }
  }
};

template <class Element>
FLYDSL_DEVICE void grouped_gemm_general(flydsl_aot_grouped_gemm_kernarg) {
  FLYDSL_SHARED static char memory[2 * kOperandBytes] __attribute__((aligned(16)));
  const lds_ptr<char> lds_a = (lds_ptr<char>)memory, lds_b = lds_a + kOperandBytes;
  u32 thread = __builtin_amdgcn_workitem_id_x();
  const u32 wave = uniform(thread / kWaveLanes);
  for (Tiles<kGeneralTile, kGeneralTile> tiles(thread % kWaveLanes); tiles.more();) {
    const Tile tile = tiles.next();
    thread = computed_here(thread);  // what follows from it is not kept from tile to tile
    const u32 lane = thread % kWaveLanes;
    const Arguments args = fresh_arguments();
    Carrier a(args->a, args->a_stride_m, args->a_stride_k,
              tile.group * args->a_stride_g + tile.m * args->a_stride_m + tile.k * args->a_stride_k,
              tile.rows, tile.length, thread);
    Carrier b(args->b, args->b_stride_n, args->b_stride_k,
              tile.group * args->b_stride_g + tile.n * args->b_stride_n + tile.k * args->b_stride_k,
              tile.columns, tile.length, thread);
    GeneralSums<Element> total;
    total.clear();
    if (tile.length > 0) {
      a.load(0);
      b.load(0);
    }
#pragma unroll 1
    for (i32 k = 0; k < tile.length; k += kGeneralSlab) {
      barrier();  // all have read the slab before
      a.store(lds_a, thread);
      b.store(lds_b, thread);
      barrier();
      if (k + kGeneralSlab < tile.length) {
        a.load(k + kGeneralSlab);
        b.load(k + kGeneralSlab);
      }
      total.add(lds_a, lds_b, wave, lane);
    }
    store_general(tile, total.sums, wave, lane);
  }
}

}  // namespace flydsl::kernels::grouped
