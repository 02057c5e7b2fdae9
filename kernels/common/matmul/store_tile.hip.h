// A tile's sums out of the accumulation registers: through LDS, where lines of D become whole, to whoever makes D of them.
//
// A wave moves 64 of its 128 rows at a time, 512 bytes a row, chunks of 16 bytes moved around inside a row so that neither
// writes nor reads find two lanes at one bank. This is a loop, and the registers go to LDS without passing vector registers,
// because of the code's size: a work-group that starts with a cold instruction cache waits for every other line of it.
#pragma once

#include "common/matmul/main_loop.hip.h"

namespace flydsl::kernels::matmul {

// 64 rows of 128 sums in LDS. A store is called as store(row, sums) for each row, whose lane has the sums of 8 columns from
// lane_column() on; `row` is that of the tile, and the same in all lanes: the lane's own is lane_row() more.
struct SumRows {
  lds_ptr<const char> memory;
  u32 lane, first_row;
  lds_ptr<const char> read[4];  // of the first 16 rows

  static FLYDSL_DEVICE u32 lane_row(u32 lane) { return lane / 16; }
  static FLYDSL_DEVICE u32 lane_column(u32 wave, u32 lane) {
    return wave % 2 * 128 + lane % 16 * 8;
  }

  FLYDSL_DEVICE SumRows(lds_ptr<const char> memory, u32 wave, u32 lane)
      : memory(memory), lane(lane), first_row(wave / 2 * 128) {
#pragma unroll
    for (u32 i = 0; i < 4; ++i) read[i] = place(4 * i + lane_row(lane));
  }
  FLYDSL_DEVICE lds_ptr<const char> place(u32 row) const {
    return memory + row * 512 + 16 * (lane % 16 ^ (row & 15));
  }
  static FLYDSL_DEVICE void load(lds_ptr<const char> from, float (&sums)[8]) {
    const f32x4 low = bits_as<f32x4>(read_b128(from)), high = bits_as<f32x4>(read_b128(from + 256));
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      sums[j] = low[j];
      sums[4 + j] = high[j];
    }
  }
  // 16 rows are read before the first is stored.
  template <class Store>
  FLYDSL_DEVICE void each_at_once(Store store) const {
#pragma unroll 1
    for (u32 group = 0; group < 4; ++group) {
      float sums[4][8];
#pragma unroll
      for (int i = 0; i < 4; ++i) load(read[i] + group * (16 * 512), sums[i]);
#pragma unroll
      for (u32 i = 0; i < 4; ++i) store(first_row + 16 * group + 4 * i, sums[i]);
    }
  }
  // Less code, for stores that are much of it.
  template <class Store>
  FLYDSL_DEVICE void one_by_one(Store store) const {
#pragma unroll 1
    for (u32 i = 0; i < 16; ++i) {
      float sums[8];
      load(place(4 * i + lane_row(lane)), sums);
      store(first_row + 4 * i, sums);
    }
  }
};

// Chunk of 4 columns 8 i + 4 h of block n goes to place 4 n + i + 16 h, moved.
template <int part>
FLYDSL_DEVICE void write_part(u32 written, u32 moved) {
  each<16>([&](auto number) {
    constexpr int n = decltype(number)::value / 4, i = decltype(number)::value % 4;
    const u32 to = written + 16 * ((4 * n + i) ^ moved);
    write_sums<sum_register(2 * part, n) + 4 * i>(to, Number<0>{});
    write_sums<sum_register(2 * part + 1, n) + 4 * i>(to, Number<32 * 512>{});
  });
  keep_hidden();
}

// Calls take(rows) for the wave's rows, 64 by 64. All waves must have done with LDS.
template <class Take>
FLYDSL_DEVICE void store_tile(lds_ptr<char> memory, u32 wave, u32 lane, Take take) {
  const lds_ptr<char> mine = memory + wave * (64 * 512);
  const u32 row = lane % 32, moved = row & 15;
  const u32 written = uniform((u32)(__UINTPTR_TYPE__)mine) + row * 512 + 256 * (lane / 32);
  SumRows rows(mine, wave, lane);
  wait_for_products();
#pragma unroll 1
  for (u32 part = 0; part < 2; ++part) {
    if (part == 0)
      write_part<0>(written, moved);
    else
      write_part<1>(written, moved);
    wait_for_reads<0>();
    take(rows);
    wait_for_reads<0>();
    rows.first_row += 64;
  }
}

}  // namespace flydsl::kernels::matmul
