// What becomes of the sums of products: bias, D (include/flydsl_aot/scaled_gemm.h). Types and strides are the same in all lanes.
#pragma once

#include "common/memory.hip.h"
#include "common/reals.hip.h"
#include "scaled_gemm/arguments.hip.h"

namespace flydsl::kernels::scaled_gemm {

// Eight neighbours in a row whose elements lie next to each other, at element alignment.
template <class Element>
FLYDSL_DEVICE void store_packed8(global_ptr<char> to, const float (&values)[8]) {
  constexpr u32 kHalf = kReals16<Element>;  // 4 or 8
#pragma unroll
  for (u32 at = 0; at < 8; at += kHalf) {
    float part[kHalf];
#pragma unroll
    for (u32 i = 0; i < kHalf; ++i) part[i] = values[at + i];
    store_16_bytes(to + at * kRealBytes<Element>, pack_reals<Element>(part));
  }
}

// sums[i] of (row, column + i) of a batch, of which `count` exist, from 1 up.
FLYDSL_DEVICE void finish_row8(Arguments args, u32 batch, i32 row, i32 column, i32 count,
                               float (&sums)[8]) {
  const i64 b = batch, m = row, n = column;
  if (args->bias) {
    const i64 first = b * args->bias_stride_b + m * args->bias_stride_m + n * args->bias_stride_n;
    const i64 step = args->bias_stride_n;
    with_real(Real{args->bias_dtype}, [&](auto of_type) FLYDSL_INLINED {
      using Element = typename decltype(of_type)::type;
      const global_ptr<const char> from =
          (global_ptr<const char>)args->bias + first * kRealBytes<Element>;
#pragma unroll
      for (int i = 0; i < 8; ++i)
        if (i < count) sums[i] += load_real<Element>(from + i * step * kRealBytes<Element>);
    });
  }
  const i64 first = b * args->d_stride_b + m * args->d_stride_m + n * args->d_stride_n;
  const i64 step = args->d_stride_n;
  with_real(Real{args->d_dtype}, [&](auto of_type) FLYDSL_INLINED {
    using Element = typename decltype(of_type)::type;
    const global_ptr<char> to = (global_ptr<char>)args->d + first * kRealBytes<Element>;
    if (step == 1 && count >= 8) {
      store_packed8<Element>(to, sums);
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i)
        if (i < count) store_real<Element>(to + i * step * kRealBytes<Element>, sums[i]);
    }
  });
}

// Where the sum of (row, column) of a part of K is.
FLYDSL_DEVICE global_ptr<char> part_of(Arguments args, u32 split, u32 batch, i32 row, i32 column) {
  const i64 m = args->m, n = args->n, plane = i64{split} * args->batches + batch;
  return (global_ptr<char>)args->partials + 4 * ((plane * m + row) * n + column);
}

// Sums of a part of K, or of all of it: see finish_row8.
FLYDSL_DEVICE void store_sums8(Arguments args, u32 split, u32 batch, i32 row, i32 column, i32 count,
                               float (&sums)[8]) {
  if (args->splits == 1) return finish_row8(args, batch, row, column, count, sums);
  const global_ptr<char> to = part_of(args, split, batch, row, column);
  if (count >= 8) {
    store_packed8<fp32>(to, sums);
  } else {
#pragma unroll
    for (int i = 0; i < 7; ++i)
      if (i < count) store_real<fp32>(to + 4 * i, sums[i]);
  }
}

}  // namespace flydsl::kernels::scaled_gemm
