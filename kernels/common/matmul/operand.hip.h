// A slab of one operand: rows of A, or columns of B (both are "rows" here), and 128 bytes of K, as they lie in LDS. How memory is read,
// what is copied where, and the addresses of fragments.
#pragma once

#include "common/lanes.hip.h"
#include "common/lds.hip.h"
#include "common/memory.hip.h"

namespace flydsl::kernels::matmul {

constexpr int kWaves = 4;  // 2 x 2: each has half of the rows of either operand
constexpr int kSlabKBytes = 128;

// Which of an operand's two dimensions is contiguous.
enum class Order { k, rows };

// Where an operand's tile lies in memory.
struct Operand {
  global_ptr<const char> first;  // row 0 of the tile, k = 0
  i64 stride_bytes;              // from row to row, or from k to k + 1 with Order::rows
  i32 rows;                      // that exist, from 1 up; with Order::rows a multiple of 8
};

// Chunks of 16 bytes are moved around inside a line by an exclusive or, so that no read of a fragment finds two lanes at one bank.
template <Order order, int rows>
struct Slab;

template <int rows>
struct SlabSize {
  static_assert(rows == 256 || rows == 128 || rows == 64);
  static constexpr int kBytes = rows * kSlabKBytes;
  static constexpr int kCopies = kBytes / kWaves / 1024;  // of a wave
  static constexpr int kBlocks = rows / 2 / 32;           // of 32 rows, of a wave
};

// Lines of 128 bytes of K, of elements of any size; all banks hold two. A read takes lines 0 .. 31 of a block at chunk
// 2 step + lane / 32.
template <int rows>
struct Slab<Order::k, rows> : SlabSize<rows> {
  static constexpr int kReads = 1;  // instructions a fragment
  static FLYDSL_DEVICE u32 moved(u32 row, u32 chunk) { return chunk ^ (row >> 1 & 7); }

  struct Place {
    u32 row, k_bytes;  // of 16 bytes
  };
  // What lane `lane` of 1024-byte copy `copy` carries.
  static FLYDSL_DEVICE Place place(u32 copy, u32 lane) {
    const u32 row = 8 * copy + lane / 8;
    return {row, 16 * moved(row, lane % 8)};
  }
  static FLYDSL_DEVICE u32 offset(const Operand &from, u32 copy, u32 lane) {
    const Place at = place(copy, lane);
    const u32 row = at.row < static_cast<u32>(from.rows) ? at.row : static_cast<u32>(from.rows) - 1;
    return row * static_cast<u32>(from.stride_bytes) + at.k_bytes;
  }
  // From slab to slab.
  static FLYDSL_DEVICE i64 advance(const Operand &) { return kSlabKBytes; }
  // What lane `lane` of copy `copy` carries of an incomplete slab at from.first, of which `left` bytes of K exist; the others are 0.
  static FLYDSL_DEVICE u32x4 load_some(const Operand &from, u32 copy, u32 lane, i32 left) {
    const global_ptr<const char> at = from.first + offset(from, copy, lane);
    const i32 here = left - static_cast<i32>(place(copy, lane).k_bytes);
    u32x4 result = {0, 0, 0, 0};
    if (here >= 16) return load_16_bytes(at);
#pragma unroll
    for (int i = 0; i < 15; ++i)
      if (i < here) result[i / 4] |= static_cast<u32>(((global_ptr<const u8>)at)[i]) << i % 4 * 8;
    return result;
  }

  // Address `n` of four from which the fragments of rows `first` .. are read.
  static FLYDSL_DEVICE u32 address(int n, u32 first, u32 lane) {
    const u32 row = lane % 32;
    return (first + row) * 128 + 16 * moved(row, lane / 32 + 2 * static_cast<u32>(n));
  }
  template <int block, int step>
  static FLYDSL_DEVICE u32x4 read(const u32 (&address)[4], auto base) {
    u32x4 result;
    asm volatile("ds_read_b128 %0, %1 offset:%2"
                 : "=v"(result)
                 : "v"(address[step]), "n"(decltype(base)::value + 4096 * block));
    return result;
  }
};

// Lines of all rows, of 16 bits. A transposing read takes 32 rows of four lines at once, which must not share banks.
template <int rows>
struct Slab<Order::rows, rows> : SlabSize<rows> {
  static constexpr int kReads = 2;
  static constexpr int kLineBytes = 2 * rows;
  static constexpr u32 kLanes = rows / 8;  // of a line
  static FLYDSL_DEVICE u32 moved(u32 k, u32 chunk) { return chunk ^ (k & 3) << 2; }

  struct Place {
    u32 row, k;  // of 8 rows
  };
  static FLYDSL_DEVICE Place place(u32 copy, u32 lane) {
    const u32 k = 64 / kLanes * copy + lane / kLanes;
    return {8 * moved(k, lane % kLanes), k};
  }
  static FLYDSL_DEVICE u32 offset(const Operand &from, u32 copy, u32 lane) {
    const Place at = place(copy, lane);
    const u32 last = static_cast<u32>(from.rows) - 8;
    return at.k * static_cast<u32>(from.stride_bytes) + 2 * (at.row < last ? at.row : last);
  }
  static FLYDSL_DEVICE i64 advance(const Operand &from) {
    return kSlabKBytes / 2 * from.stride_bytes;
  }
  static FLYDSL_DEVICE u32x4 load_some(const Operand &from, u32 copy, u32 lane, i32 left) {
    if (static_cast<i32>(2 * place(copy, lane).k) >= left) return u32x4{0, 0, 0, 0};
    return load_16_bytes(from.first + offset(from, copy, lane));
  }

  static FLYDSL_DEVICE u32 address(int n, u32 first, u32 lane) {
    const u32 k = lane % 16 / 4 + 8 * (lane / 32);
    const u32 row = first + 32 * static_cast<u32>(n) + 16 * (lane / 16 % 2) + 4 * (lane % 4);
    return k * kLineBytes + 16 * moved(k, row / 8) + 2 * (row % 8);
  }
  template <int block, int step>
  static FLYDSL_DEVICE u32x4 read(const u32 (&address)[4], auto base) {
    u32x2 low, high;
    asm volatile("ds_read_b64_tr_b16 %0, %1 offset:%2"
                 : "=v"(low)
                 : "v"(address[block]), "n"(decltype(base)::value + 16 * kLineBytes * step));
    asm volatile("ds_read_b64_tr_b16 %0, %1 offset:%2"
                 : "=v"(high)
                 : "v"(address[block]), "n"(decltype(base)::value + (16 * step + 4) * kLineBytes));
    return u32x4{low[0], low[1], high[0], high[1]};
  }
};

}  // namespace flydsl::kernels::matmul
