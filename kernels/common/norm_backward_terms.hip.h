// Terms of the gradients of norms of rows, in the names of include/flydsl_aot/layer_norm_backward.h.
#pragma once

#include "common/arguments.hip.h"
#include "common/row_place.hip.h"
#include "common/row_tile.hip.h"

namespace flydsl::kernels {

// Of the forward pass. Without a mean it is 0, which changes no bit.
struct RowNumbers {
  float rstd, mean;
};
// c2 and c1.
struct RowMeans {
  float of_products, of_gradients;
};

template <bool kCentred, class Args>
FLYDSL_DEVICE RowNumbers numbers_of_row(Args args, const RowPlace &place) {
  RowNumbers numbers = {};
  numbers.rstd =
      *((global_ptr<const float>)args->rstd + place.at(args->rstd_stride_o, args->rstd_stride_i));
  if constexpr (kCentred) {
    numbers.mean =
        *((global_ptr<const float>)args->mean + place.at(args->mean_stride_o, args->mean_stride_i));
  }
  return numbers;
}

// Whether element i of vector v is inside the row. Of each element on NVIDIA GPUs: one comparison for a vector makes kernels with 128
// registers spill 80 to 160 bytes more there.
template <class Tile>
FLYDSL_DEVICE bool inside_row(u32 rank, u32 v, u32 i, u32 count) {
#if defined(__NVPTX__)
  return Tile::index(rank, v, i) < count;
#else
  return Tile::inside(rank, v, i, count);
#endif
}

// `dout`, vector v of a row, as floats, 0 past `count`.
template <class Tile>
FLYDSL_DEVICE void floats_inside(u32x4 dout, u32 rank, u32 v, u32 count,
                                 typename Tile::Floats &values) {
  unpack_reals<typename Tile::Element>(dout, values);
#pragma unroll
  for (u32 i = 0; i < Tile::kOfVector; ++i)
    values[i] = inside_row<Tile>(rank, v, i, count) ? values[i] : 0.0f;
}

// The same of `x` as (x - mean) * rstd, 0 past `count` whatever mean and rstd are.
template <class Tile>
FLYDSL_DEVICE void normalise(u32x4 x, RowNumbers of_row, u32 rank, u32 v, u32 count,
                             typename Tile::Floats &values) {
  unpack_reals<typename Tile::Element>(x, values);
#pragma unroll
  for (u32 i = 0; i < Tile::kOfVector; ++i)
    values[i] =
        inside_row<Tile>(rank, v, i, count) ? (values[i] - of_row.mean) * of_row.rstd : 0.0f;
}

// Vector v of the weights of columns from `first` on, of a thread that takes part.
template <class Tile, class Args>
FLYDSL_DEVICE void column_weights(Args args, u32 first, u32 rank, u32 v, u32 count,
                                  typename Tile::Floats &weights) {
  const auto weight = (global_ptr<const char>)args->weight;
  if (!weight) {
#pragma unroll
    for (u32 i = 0; i < Tile::kOfVector; ++i) weights[i] = 1;
    return;
  }
  const float offset = args->weight_offset;
  with_real(static_cast<Real>(args->weight_dtype), [&](auto type) FLYDSL_INLINED {
    using Other = typename decltype(type)::type;
    Tile::template operand<Other>(weight + u64{first} * kRealBytes<Other>, rank, v, count, weights);
#pragma unroll
    for (u32 i = 0; i < Tile::kOfVector; ++i) weights[i] += offset;
  });
}

// `of`: the gradient of what was normalised to `normed`.
FLYDSL_DEVICE float gradient(float of, float normed, float rstd, RowMeans means) {
  return rstd * __builtin_fmaf(-normed, means.of_products, of - means.of_gradients);
}

// Vector v to a row of fp32, but what is past `count`.
template <class Tile>
FLYDSL_DEVICE void store_sums(global_ptr<float> to, u32 rank, u32 v, u32 count,
                              const typename Tile::Floats &values) {
  if constexpr (Tile::kWide) {
    if (!Tile::inside(rank, v, 0, count)) return;
#pragma unroll
    for (u32 i = 0; i < Tile::kOfVector; i += 4)
      *(global_ptr<f32x4>)(to + Tile::index(rank, v, i)) =
          f32x4{values[i], values[i + 1], values[i + 2], values[i + 3]};
  } else {
#pragma unroll
    for (u32 i = 0; i < Tile::kOfVector; ++i)
      if (Tile::inside(rank, v, i, count)) to[Tile::index(rank, v, i)] = values[i];
  }
}

}  // namespace flydsl::kernels
