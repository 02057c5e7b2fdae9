// Sums of a 128 x 128 tile to D, of any strides: rounded, with bias, in the rows and columns that the group has.
#pragma once

#include "common/reals.hip.h"
#include "grouped_gemm/tiles.hip.h"

namespace flydsl::kernels::grouped {

// Four waves 2 x 2 of 64 x 64 sums. Of each 32 x 32 a lane has row lane % 32, register i column 8 (i / 4) + 4 (lane / 32) + i % 4.
template <class Out>
FLYDSL_DEVICE void store_general_as(const Tile &tile, const f32x16 (&sums)[2][2], u32 wave,
                                    u32 lane) {
  const Arguments args = fresh_arguments();
  const global_ptr<char> d = (global_ptr<char>)args->d;
  const Real bias_dtype = args->bias ? static_cast<Real>(args->bias_dtype) : Real::none;
  const auto each_of = [&](auto with_bias) {
#pragma unroll
    for (u32 m = 0; m < 2; ++m) {
      const i32 row = static_cast<i32>(64 * (wave / 2) + 32 * m + lane % 32);
      if (row >= tile.rows) continue;
      const i64 line = tile.group * args->d_stride_g + (tile.m + row) * args->d_stride_m;
#pragma unroll
      for (u32 n = 0; n < 2; ++n) {
#pragma unroll
        for (u32 i = 0; i < 16; ++i) {
          const i32 column =
              static_cast<i32>(64 * (wave % 2) + 32 * n + 8 * (i / 4) + 4 * (lane / 32) + i % 4);
          if (column >= tile.columns) continue;
          const float value = with_bias(sums[m][n][i], tile.n + column);
          store_real<Out>(
              d + static_cast<i64>(kRealBytes<Out>) * (line + (tile.n + column) * args->d_stride_n),
              value);
        }
      }
    }
  };
  if (bias_dtype == Real::none) {
    each_of([](float sum, i32) { return sum; });
    return;
  }
  with_real(bias_dtype, [&](auto type) {
    using Bias = typename decltype(type)::type;
    each_of([&](float sum, i32 n) {
      const i64 at = tile.group * args->bias_stride_g + n * args->bias_stride_n;
      return sum + load_real<Bias>((global_ptr<const char>)args->bias +
                                   static_cast<i64>(kRealBytes<Bias>) * at);
    });
  });
}
FLYDSL_DEVICE void store_general(const Tile &tile, const f32x16 (&sums)[2][2], u32 wave, u32 lane) {
  with_real(static_cast<Real>(fresh_arguments()->d_dtype), [&](auto type) {
    store_general_as<typename decltype(type)::type>(tile, sums, wave, lane);
  });
}

}  // namespace flydsl::kernels::grouped
