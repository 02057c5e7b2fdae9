// A tile's sums out of the accumulation registers: through LDS, where lines of D become whole, to whoever makes D of them.
//
// A wave moves 32 of its rows at a time, through its lines of the stages that the last slab has left, chunks of 16 bytes moved
// around inside a row so that neither writes nor reads find two lanes at one bank. This is a loop, and the registers go to LDS
// without passing vector registers, because of the code's size: a work-group that starts with a cold instruction cache waits for
// every other line of it.
#pragma once

#include "common/matmul/main_loop.hip.h"

namespace flydsl::kernels::matmul {

// 32 rows of a wave's sums in LDS, 16 at either of two addresses. A store is called as store(row, sums) for each row, whose lane has the
// sums of 8 columns from lane_column() on; `row` is that of the tile, and the same in all lanes: the lane's own is lane_row() more.
template <int rows_a, int rows_b>
struct SumRows {
  static constexpr u32 kColumns = rows_b / 2, kRowBytes = 4 * kColumns;
  static constexpr u32 kLanes = kColumns / 8,
                       kAtOnce = 64 / kLanes;  // of a row; rows of an instruction
  u32 first_half, second_half;                 // addresses
  u32 lane, first_row;
  u32 even[4], odd[4];  // addresses of chunks of the first rows

  static FLYDSL_DEVICE u32 first_row_of(u32 wave) { return wave / 2 * (rows_a / 2); }
  static FLYDSL_DEVICE u32 lane_row(u32 lane) { return lane / kLanes; }
  static FLYDSL_DEVICE u32 lane_column(u32 wave, u32 lane) {
    return wave % 2 * kColumns + lane % kLanes * 8;
  }
  // Of chunk `chunk` of 4 columns: even ones in the first half of a row, odd ones in the second, moved by the row.
  FLYDSL_DEVICE u32 place(u32 row, u32 chunk) const {
    return first_half + row / 16 * (second_half - first_half) + row % 16 * kRowBytes +
           16 * ((chunk / 2 + chunk % 2 * kLanes) ^ row % 16);
  }

  FLYDSL_DEVICE SumRows(u32 first_half, u32 second_half, u32 wave, u32 lane)
      : first_half(first_half),
        second_half(second_half),
        lane(lane),
        first_row(first_row_of(wave)) {
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
      even[i] = place(kAtOnce * i + lane_row(lane), lane % kLanes * 2);
      odd[i] = place(kAtOnce * i + lane_row(lane), lane % kLanes * 2 + 1);
    }
  }
  static FLYDSL_DEVICE void load(u32 even, u32 odd, float (&sums)[8]) {
    const auto read = [](u32 address) {
      return bits_as<f32x4>(read_b128((lds_ptr<const char>)(__UINTPTR_TYPE__)address));
    };
    const f32x4 low = read(even), high = read(odd);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      sums[j] = low[j];
      sums[4 + j] = high[j];
    }
  }
  // Those of four instructions are read before the first is stored.
  template <class Store>
  FLYDSL_DEVICE void each_at_once(Store store) const {
#pragma unroll 1
    for (u32 row = 0; row < 32; row += 4 * kAtOnce) {
      const u32 further = row == 0 ? 0 : second_half - first_half;
      float sums[4][8];
#pragma unroll
      for (int i = 0; i < 4; ++i) load(even[i] + further, odd[i] + further, sums[i]);
#pragma unroll
      for (u32 i = 0; i < 4; ++i) store(first_row + row + kAtOnce * i, sums[i]);
    }
  }
  // Calls take(row, sums) for the rows of `count` instructions together, kAtOnce apart. Registers are take's.
  template <u32 count, class Take>
  FLYDSL_DEVICE void together(Take take) const {
    static_assert(32 % (count * kAtOnce) == 0);
#pragma unroll 1
    for (u32 row = 0; row < 32; row += count * kAtOnce) {
      u32 here = lane;
      asm volatile("" : "+v"(here));  // addresses are not kept from row to row
      float sums[count][8];
#pragma unroll
      for (u32 i = 0; i < count; ++i) {
        const u32 at = row + kAtOnce * i + lane_row(here);
        load(place(at, here % kLanes * 2), place(at, here % kLanes * 2 + 1), sums[i]);
      }
      take(first_row + row, sums);
    }
  }
  // Less code, for stores that are much of it.
  template <class Store>
  FLYDSL_DEVICE void one_by_one(Store store) const {
#pragma unroll 1
    for (u32 row = 0; row < 32; row += kAtOnce) {
      const u32 at = row + lane_row(lane);
      float sums[8];
      load(place(at, lane % kLanes * 2), place(at, lane % kLanes * 2 + 1), sums);
      store(first_row + row, sums);
    }
  }
};

// Block `part` of 32 rows, of `blocks` blocks of 32 columns.
template <int part, int blocks, class Rows>
FLYDSL_DEVICE void write_part(const Rows &rows) {
  each<4 * blocks>([&](auto number) {
    constexpr u32 n = decltype(number)::value / 4, i = decltype(number)::value % 4;
    write_sums<16 * (part * blocks + n) + 4 * i>(
        rows.place(rows.lane % 32, 8 * n + 2 * i + rows.lane / 32), Number<0>{});
  });
}

// Calls take(rows) for the wave's rows, 32 by 32. `free_a`, `free_b`: as the main loop says. `keeps_addresses`: of the writes to LDS, from part
// to part; else registers are take's.
template <int rows_a, int rows_b, bool keeps_addresses = true, class Take>
FLYDSL_DEVICE void store_tile(u32 free_a, u32 free_b, u32 wave, u32 lane, Take take) {
  constexpr int blocks = rows_b / 64, parts = rows_a / 64;
  SumRows<rows_a, rows_b> rows(free_a, free_b, wave, lane);
  wait_for_products();
#pragma unroll 1
  for (int part = 0; part < parts; ++part) {
    if constexpr (!keeps_addresses) asm volatile("" : "+v"(rows.lane));
    each<parts>([&](auto number) {
      constexpr int p = decltype(number)::value;
      if (part == p) write_part<p, blocks>(rows);
    });
    keep_hidden<rows_a * rows_b / 256>();
    wait_for_reads<0>();
    take(rows);
    wait_for_reads<0>();
    rows.first_row += 32;
  }
}

}  // namespace flydsl::kernels::matmul
