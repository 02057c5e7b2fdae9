// A tile's sums out of the accumulation registers: through LDS, where lines of D become whole, to whoever makes D of them.
//
// A wave moves 64 of its rows at a time, chunks of 16 bytes moved around inside a row so that neither writes nor reads find two
// lanes at one bank. This is a loop, and the registers go to LDS without passing vector registers, because of the code's size:
// a work-group that starts with a cold instruction cache waits for every other line of it.
#pragma once

#include "common/matmul/main_loop.hip.h"

namespace flydsl::kernels::matmul {

// 64 rows of a wave's sums in LDS. A store is called as store(row, sums) for each row, whose lane has the sums of 8 columns
// from lane_column() on; `row` is that of the tile, and the same in all lanes: the lane's own is lane_row() more.
template <int rows_a = 256, int rows_b = 256>
struct SumRows {
  static constexpr u32 kColumns = rows_b / 2, kRowBytes = 4 * kColumns;
  static constexpr u32 kLanes = kColumns / 8,
                       kAtOnce = 64 / kLanes;  // lanes of a row, rows of an instruction
  static constexpr u32 kBytes = 64 * kRowBytes;
  lds_ptr<const char> memory;
  u32 lane, first_row;
  lds_ptr<const char> even[4], odd[4];  // chunks of the first rows

  static FLYDSL_DEVICE u32 lane_row(u32 lane) { return lane / kLanes; }
  static FLYDSL_DEVICE u32 lane_column(u32 wave, u32 lane) {
    return wave % 2 * kColumns + lane % kLanes * 8;
  }
  // Of chunk `chunk` of 4 columns: even ones in the first half of a row, odd ones in the second, moved by the row.
  static FLYDSL_DEVICE u32 place(u32 row, u32 chunk) {
    return row * kRowBytes + 16 * ((chunk / 2 + chunk % 2 * kLanes) ^ (row & 15));
  }

  FLYDSL_DEVICE SumRows(lds_ptr<const char> memory, u32 wave, u32 lane)
      : memory(memory), lane(lane), first_row(wave / 2 * (rows_a / 2)) {
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
      even[i] = place_of_lane(kAtOnce * i, 0);
      odd[i] = place_of_lane(kAtOnce * i, 1);
    }
  }
  FLYDSL_DEVICE lds_ptr<const char> place_of_lane(u32 row, u32 odd) const {
    return memory + place(row + lane_row(lane), lane % kLanes * 2 + odd);
  }
  static FLYDSL_DEVICE void load(lds_ptr<const char> even, lds_ptr<const char> odd,
                                 float (&sums)[8]) {
    const f32x4 low = bits_as<f32x4>(read_b128(even)), high = bits_as<f32x4>(read_b128(odd));
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
    for (u32 row = 0; row < 64; row += 4 * kAtOnce) {
      float sums[4][8];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        load(even[i] + row * kRowBytes, odd[i] + row * kRowBytes, sums[i]);
#pragma unroll
      for (u32 i = 0; i < 4; ++i) store(first_row + row + kAtOnce * i, sums[i]);
    }
  }
  // Less code, for stores that are much of it.
  template <class Store>
  FLYDSL_DEVICE void one_by_one(Store store) const {
#pragma unroll 1
    for (u32 row = 0; row < 64; row += kAtOnce) {
      float sums[8];
      load(place_of_lane(row, 0), place_of_lane(row, 1), sums);
      store(first_row + row, sums);
    }
  }
};

template <class Rows, int part, int blocks>
FLYDSL_DEVICE void write_part(u32 memory, u32 lane) {
  each<4 * blocks>([&](auto number) {
    constexpr int n = decltype(number)::value / 4, i = decltype(number)::value % 4;
    const u32 to = memory + Rows::place(lane % 32, 8 * n + 2 * i + lane / 32);
    write_sums<16 * (2 * part * blocks + n) + 4 * i>(to, Number<0>{});
    write_sums<16 * ((2 * part + 1) * blocks + n) + 4 * i>(to, Number<32 * Rows::kRowBytes>{});
  });
}

// Calls take(rows) for the wave's rows, 64 by 64. All waves must have done with LDS.
template <int rows_a = 256, int rows_b = 256, class Take>
FLYDSL_DEVICE void store_tile(lds_ptr<char> memory, u32 wave, u32 lane, Take take) {
  constexpr int blocks = rows_b / 64, parts = rows_a / 128;
  using Rows = SumRows<rows_a, rows_b>;
  const lds_ptr<char> mine = memory + wave * Rows::kBytes;
  const u32 address = uniform((u32)(__UINTPTR_TYPE__)mine);
  Rows rows(mine, wave, lane);
  wait_for_products();
#pragma unroll 1
  for (int part = 0; part < parts; ++part) {
    if (part == 0)
      write_part<Rows, 0, blocks>(address, lane);
    else
      write_part<Rows, parts - 1, blocks>(address, lane);
    keep_hidden<rows_a * rows_b / 256>();
    wait_for_reads<0>();
    take(rows);
    wait_for_reads<0>();
    rows.first_row += 64;
  }
}

}  // namespace flydsl::kernels::matmul
