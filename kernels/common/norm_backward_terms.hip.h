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

// Vector v of (x - mean) * rstd, 0 past `count`, whatever mean and rstd are.
template <class Tile>
FLYDSL_DEVICE void normalise(const Tile &x, RowNumbers of_row, u32 rank, u32 v, u32 count,
                             typename Tile::Floats &values) {
  unpack_reals<typename Tile::Element>(x.vectors[v], values);
#pragma unroll
  for (u32 i = 0; i < Tile::kOfVector; ++i)
    values[i] = Tile::inside(rank, v, i, count) ? (values[i] - of_row.mean) * of_row.rstd : 0.0f;
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
