// Products of a slab by matrix instructions of 16-bit elements, which know nothing of scales: gfx90a's and gfx942's.
#pragma once

#include "common/mfma.hip.h"
#include "scaled_gemm/slabs.hip.h"

namespace flydsl::kernels::scaled_gemm {

FLYDSL_DEVICE void write_scales(lds_ptr<char> stage, u32 thread, u32x2 bytes) {
  *(lds_ptr<u8>)(stage + 2 * kSlabBytes + thread) = static_cast<u8>(bytes[0]);
}

// Four neighbours, of those that a lane has in registers 4 part .. of block n: see Sums.
FLYDSL_DEVICE u32 place_of_four(u32 row_b, u32 n, u32 part, u32 lane) {
  return kRows + row_b + 32 * n + 8 * part + lane / 32 * 4;
}

// A slab is a block of 32: its products are summed apart, so that nothing overflows before it is scaled, by an exact step.
template <int format_a, int format_b>
FLYDSL_DEVICE void multiply_slab(lds_ptr<const char> stage, u32 row_a, u32 row_b, u32 lane,
                                 Sums &sums) {
  static_assert(is_packed(format_a) == is_packed(format_b), "or they meet in another order");
  const lds_ptr<const char> a = stage, b = stage + kSlabBytes, scales = stage + 2 * kSlabBytes;
  f32x16 products[2][2] = {};
#pragma unroll
  for (u32 step = 0; step < kChunksOfLine / 2; ++step) {
    u32x4 of_a[2], of_b[2];
#pragma unroll
    for (u32 i = 0; i < 2; ++i) {
      of_a[i] = read_b128(a + chunk_place(row_a + 32 * i + lane % 32, 2 * step + lane / 32));
      of_b[i] = read_b128(b + chunk_place(row_b + 32 * i + lane % 32, 2 * step + lane / 32));
    }
#pragma unroll
    for (int m = 0; m < 2; ++m)
#pragma unroll
      for (int n = 0; n < 2; ++n)
        products[m][n] = mfma_32x32x16<bf16>(of_b[n], of_a[m], products[m][n]);
  }
#pragma unroll
  for (u32 m = 0; m < 2; ++m) {
    const i32 of_row = *(lds_ptr<const u8>)(scales + row_a + 32 * m + lane % 32) - 254;
#pragma unroll
    for (u32 n = 0; n < 2; ++n)
#pragma unroll
      for (u32 i = 0; i < 16; ++i) {
        const u32 four = *(lds_ptr<const u32>)(scales + place_of_four(row_b, n, i / 4, lane));
        const i32 exponent = of_row + static_cast<i32>(four >> i % 4 * 8 & 255);
        sums.block[m][n][i] += __builtin_amdgcn_ldexpf(products[m][n][i], exponent);
      }
  }
}

// What a NaN scale takes part in is NaN, zeros too. `any_nan`: of row `thread` of A or, from kRows on, B. All are done with LDS.
FLYDSL_DEVICE void add_nan_scales(lds_ptr<char> lds, u32 thread, bool any_nan, u32 row_a, u32 row_b,
                                  u32 lane, Sums &sums) {
  const lds_ptr<float> of_rows = (lds_ptr<float>)lds;
  of_rows[thread] = any_nan ? __builtin_nanf("") : 0.0f;
  barrier();
#pragma unroll
  for (u32 m = 0; m < 2; ++m)
#pragma unroll
    for (u32 n = 0; n < 2; ++n)
#pragma unroll
      for (u32 i = 0; i < 16; ++i)
        sums.block[m][n][i] += of_rows[row_a + 32 * m + lane % 32] +
                               of_rows[place_of_four(row_b, n, i / 4, lane) + i % 4];
  barrier();
}

}  // namespace flydsl::kernels::scaled_gemm
