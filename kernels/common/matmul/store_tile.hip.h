// A tile's sums out of the accumulation registers: through LDS, where lines of D become whole, to whoever makes D of them.
//
// A wave moves 64 of its 128 rows at a time, 512 bytes a row, chunks of 16 bytes moved around inside a row so that neither writes nor
// reads find two lanes at one bank. This is a loop, and the registers go to LDS without passing vector registers, because of
// the code's size: a work-group that starts with a cold instruction cache waits 300 clocks for every other line of it.
#pragma once

#include "common/matmul/main_loop.hip.h"

namespace flydsl::kernels::matmul {

constexpr int kStoreBytes = kWaves * 64 * 512;  // of LDS

// store(row, column, sums[8]) for all rows and blocks of 8 columns of the tile, which are counted from the tile's corner; columns are contiguous
// over 16 lanes. All waves must have done with LDS.
template <class Store>
FLYDSL_DEVICE void store_tile(lds_ptr<char> memory, u32 wave, u32 lane, Store store) {
  const lds_ptr<char> mine = memory + wave * (64 * 512);
  const u32 address = uniform((u32)(__UINTPTR_TYPE__)mine);
  wait_for_products();
  each<2>([&](auto part) {
    constexpr int p = decltype(part)::value;
    // Chunk of 4 columns 8 i + 4 h of block n: place 4 n + i + 16 h, moved.
    const u32 row = lane % 32;
    each<16>([&](auto number) {
      constexpr int n = decltype(number)::value / 4, i = decltype(number)::value % 4;
      const u32 to = address + row * 512 + 16 * ((4 * n + i) ^ (row & 15)) + 256 * (lane / 32);
      write_sums<sum_register(2 * p, n) + 4 * i>(to, Number<0>{});
      write_sums<sum_register(2 * p + 1, n) + 4 * i>(to, Number<32 * 512>{});
    });
    keep_hidden();
    wait_for_reads<0>();
#pragma unroll 4
    for (u32 i = 0; i < 16; ++i) {
      const u32 at = 4 * i + lane / 16;
      const lds_ptr<const char> from = mine + at * 512 + 16 * (lane % 16 ^ (at & 15));
      float sums[8];
      const f32x4 low = bits_as<f32x4>(read_b128(from)),
                  high = bits_as<f32x4>(read_b128(from + 256));
#pragma unroll
      for (int j = 0; j < 4; ++j) sums[j] = low[j], sums[4 + j] = high[j];
      store(static_cast<i32>(wave / 2 * 128 + 64 * p + at),
            static_cast<i32>(wave % 2 * 128 + lane % 16 * 8), sums);
    }
    wait_for_reads<0>();
  });
}

}  // namespace flydsl::kernels::matmul
