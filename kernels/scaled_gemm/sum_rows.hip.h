// A tile's sums out of the accumulation registers (common/matmul/accumulators.hip.h, 256 x 256 by four waves), through LDS, where
// rows of D become whole. A wave moves 64 of its 128 rows at a time, chunks of 16 bytes moved around inside a row so that neither
// writes nor reads find two lanes at one bank.
#pragma once

#include "common/lanes.hip.h"
#include "common/lds.hip.h"
#include "common/matmul/accumulators.hip.h"

namespace flydsl::kernels::scaled_gemm {

struct SumRows {
  static constexpr u32 kRowBytes = 512, kLanes = 16;  // of a row: 8 columns each
  static constexpr u32 kAtOnce = 4;                   // rows of an instruction
  u32 address;                                        // in LDS, of 64 rows of this wave
  u32 lane;

  FLYDSL_DEVICE SumRows(lds_ptr<char> memory, u32 wave, u32 lane)
      : address(uniform((u32)(__UINTPTR_TYPE__)memory + wave * (64 * kRowBytes))), lane(lane) {}

  // The first row and column of the wave's part of the tile that the lane has. Further rows are kAtOnce on.
  static FLYDSL_DEVICE u32 first_row(u32 wave, u32 lane) { return wave / 2 * 128 + lane / kLanes; }
  static FLYDSL_DEVICE u32 first_column(u32 wave, u32 lane) {
    return wave % 2 * 128 + lane % kLanes * 8;
  }

  // Of 4 columns: even chunks in the first half of a row, odd ones in the second.
  FLYDSL_DEVICE u32 place(u32 row, u32 chunk) const {
    return address + row * kRowBytes + 16 * ((chunk / 2 + chunk % 2 * kLanes) ^ (row & 15));
  }
  // Rows 64 part ..
  template <int part>
  FLYDSL_DEVICE void write() const {
    matmul::each<16>([&](auto number) {
      constexpr int n = decltype(number)::value / 4, i = decltype(number)::value % 4;
      const u32 to = place(lane % 32, 8 * n + 2 * i + lane / 32);
      matmul::write_sums<16 * (8 * part + n) + 4 * i>(to, matmul::Number<0>{});
      matmul::write_sums<16 * (8 * part + 4 + n) + 4 * i>(to, matmul::Number<32 * kRowBytes>{});
    });
  }
  FLYDSL_DEVICE void read(u32 row, float (&sums)[8]) const {
    const u32 at = row + lane / kLanes;
#pragma unroll
    for (u32 half = 0; half < 2; ++half) {
      const lds_ptr<const char> from =
          (lds_ptr<const char>)(__UINTPTR_TYPE__)place(at, lane % kLanes * 2 + half);
      const f32x4 four = bits_as<f32x4>(read_b128(from));
#pragma unroll
      for (int j = 0; j < 4; ++j) sums[4 * half + j] = four[j];
    }
  }
};

// Calls store(rows_on, sums) for all rows of the wave, `rows_on` after its lane's first. All waves must have done with LDS. `at_once`
// instructions' rows are read before the first is stored. A loop, and the registers go to LDS without passing vector registers, because of
// the code's size: a work-group that starts with a cold instruction cache waits for every other line of it.
template <u32 at_once, class Store>
FLYDSL_DEVICE void store_rows(lds_ptr<char> memory, u32 wave, u32 lane, Store store) {
  const SumRows rows(memory, wave, lane);
  matmul::wait_for_products();
#pragma unroll 1
  for (u32 part = 0; part < 2; ++part) {
    if (part == 0)
      rows.write<0>();
    else
      rows.write<1>();
    matmul::keep_hidden<256>();
    __builtin_amdgcn_s_waitcnt(0xc07f);  // LDS: the compiler does not know of the writes
#pragma unroll 1
    for (u32 row = 0; row < 64; row += at_once * SumRows::kAtOnce) {
      float sums[at_once][8];
#pragma unroll
      for (u32 i = 0; i < at_once; ++i) rows.read(row + SumRows::kAtOnce * i, sums[i]);
#pragma unroll
      for (u32 i = 0; i < at_once; ++i) store(64 * part + row + SumRows::kAtOnce * i, sums[i]);
    }
    __builtin_amdgcn_s_waitcnt(0xc07f);
  }
}

}  // namespace flydsl::kernels::scaled_gemm
