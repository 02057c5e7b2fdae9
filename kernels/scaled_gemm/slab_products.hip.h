// Products of a slab: here by gfx950's matrix instructions, which take scales.
#pragma once

#include "scaled_gemm/slabs.hip.h"

#if !FLYDSL_GFX950
#include "scaled_gemm/block_products.hip.h"
#else

namespace flydsl::kernels::scaled_gemm {

FLYDSL_DEVICE void write_scales(lds_ptr<char> stage, u32 thread, u32x2 bytes) {
  *(lds_ptr<u32x2>)(stage + 2 * kSlabBytes + 8 * thread) = bytes;
}

template <int format>
FLYDSL_DEVICE Fragment fragment_of(lds_ptr<const char> slab, u32 row, u32 step, u32 half) {
  if constexpr (is_packed(format)) {
    const u32x4 low = read_b128(slab + chunk_place(row, 2 * step + half));
    return {low, low};
  } else {
    return {read_b128(slab + chunk_place(row, 4 * step + half)),
            read_b128(slab + chunk_place(row, 4 * step + 2 + half))};
  }
}

// A whole line of K, of rows row_a .. of A and row_b .. of B, with their scales.
template <int format_a, int format_b>
FLYDSL_DEVICE void multiply_slab(lds_ptr<const char> stage, u32 row_a, u32 row_b, u32 lane,
                                 Sums &sums) {
  constexpr u32 kSteps = is_packed(format_a) ? 4 : 2;  // of 64 elements
  const lds_ptr<const char> a = stage, b = stage + kSlabBytes;
  const lds_ptr<const u32x2> scales = (lds_ptr<const u32x2>)(stage + 2 * kSlabBytes);
  const u32 half = lane / 32;
  u32x2 scales_a[2], scales_b[2];
#pragma unroll
  for (u32 i = 0; i < 2; ++i) {
    scales_a[i] = scales[row_a + 32 * i + lane % 32];
    scales_b[i] = scales[kRows + row_b + 32 * i + lane % 32];
  }
#pragma unroll
  for (u32 step = 0; step < kSteps; ++step) {
    // Block 2 step + half.
    const u32 word = step / 2, shift = step % 2 * 16 + half * 8;
    Fragment of_a[2], of_b[2];
#pragma unroll
    for (u32 i = 0; i < 2; ++i) {
      of_a[i] = fragment_of<format_a>(a, row_a + 32 * i + lane % 32, step, half);
      of_b[i] = fragment_of<format_b>(b, row_b + 32 * i + lane % 32, step, half);
    }
#pragma unroll
    for (int m = 0; m < 2; ++m)
#pragma unroll
      for (int n = 0; n < 2; ++n)
        sums.block[m][n] =
            scaled_product<format_b, format_a>(of_b[n], of_a[m], scales_b[n][word] >> shift,
                                               scales_a[m][word] >> shift, sums.block[m][n]);
  }
}

// Matrix instructions have made the sums of NaN scales NaN.
FLYDSL_DEVICE void add_nan_scales(lds_ptr<char>, u32, bool, u32, u32, u32, Sums &) {}

}  // namespace flydsl::kernels::scaled_gemm

#endif
