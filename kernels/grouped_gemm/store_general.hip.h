// Sums of a 128 x 128 tile to D, of any strides: with bias, rounded, in the rows and columns that the group has.
#pragma once

#include "common/reals.hip.h"
#include "grouped_gemm/tiles.hip.h"

namespace flydsl::kernels::grouped {

// Four waves 2 x 2 of 64 x 64 sums. Of each 32 x 32 a lane has row lane % 32, register i this column of the tile.
FLYDSL_DEVICE i32 general_column(u32 wave, u32 n, u32 i, u32 lane) {
  return static_cast<i32>(64 * (wave % 2) + 32 * n + 8 * (i / 4) + 4 * (lane / 32) + i % 4);
}

template <class Bias>
FLYDSL_DEVICE void add_bias(const Tile &tile, f32x16 (&sums)[2][2], u32 wave, u32 lane) {
  const Arguments args = fresh_arguments();
#pragma unroll
  for (u32 n = 0; n < 2; ++n)
#pragma unroll
    for (u32 i = 0; i < 16; ++i) {
      const i32 column = general_column(wave, n, i, lane);
      if (column >= tile.columns) continue;
      const i64 at = tile.group * args->bias_stride_g + (tile.n + column) * args->bias_stride_n;
      const float bias = load_real<Bias>((global_ptr<const char>)args->bias +
                                         static_cast<i64>(kRealBytes<Bias>) * at);
#pragma unroll
      for (u32 m = 0; m < 2; ++m) sums[m][n][i] += bias;
    }
}

template <class Out>
FLYDSL_DEVICE void store_rounded(const Tile &tile, const f32x16 (&sums)[2][2], u32 wave, u32 lane) {
  const Arguments args = fresh_arguments();
  const global_ptr<char> d = (global_ptr<char>)args->d;
#pragma unroll
  for (u32 m = 0; m < 2; ++m) {
    const i32 row = static_cast<i32>(64 * (wave / 2) + 32 * m + lane % 32);
    if (row >= tile.rows) continue;
    const i64 line = tile.group * args->d_stride_g + (tile.m + row) * args->d_stride_m;
#pragma unroll
    for (u32 n = 0; n < 2; ++n)
#pragma unroll
      for (u32 i = 0; i < 16; ++i) {
        const i32 column = general_column(wave, n, i, lane);
        if (column >= tile.columns) continue;
        const i64 at = line + (tile.n + column) * args->d_stride_n;
        store_real<Out>(d + static_cast<i64>(kRealBytes<Out>) * at, sums[m][n][i]);
      }
  }
}

// The bias goes into the sums first: three loops for its types and three for those of D, not nine.
FLYDSL_DEVICE void store_general(const Tile &tile, f32x16 (&sums)[2][2], u32 wave, u32 lane) {
  const Arguments args = fresh_arguments();
  if (args->bias) {
    with_real(static_cast<Real>(args->bias_dtype), [&](auto type) FLYDSL_INLINED {
      add_bias<typename decltype(type)::type>(tile, sums, wave, lane);
    });
  }
  with_real(static_cast<Real>(args->d_dtype), [&](auto type) FLYDSL_INLINED {
    store_rounded<typename decltype(type)::type>(tile, sums, wave, lane);
  });
}

}  // namespace flydsl::kernels::grouped
