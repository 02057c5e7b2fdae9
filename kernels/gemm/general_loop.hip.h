// What the instances for operands of any strides share: a work-group's products, 128 x 128 of D over its part of K. Slabs pass
// registers, in which the next one is loaded while one is multiplied, and two stages of LDS.
#pragma once

#include "common/threads.hip.h"
#include "gemm/general_slab.hip.h"
#include "gemm/tile_order.hip.h"

namespace flydsl::kernels::gemm {

constexpr u32 kLoopBytes = 4 * kSlabBytes;  // of LDS, free afterwards

// Work-groups are counted along x, then y.
FLYDSL_DEVICE u32 group_number(Arguments args) {
  return uniform(__builtin_amdgcn_workgroup_id_y() * args->grid_x +
                 __builtin_amdgcn_workgroup_id_x());
}

FLYDSL_DEVICE i32 first_row_of(const Tile &tile) {
  return static_cast<i32>(tile.row_tile * kRows);
}
FLYDSL_DEVICE i32 first_column_of(const Tile &tile) {
  return static_cast<i32>(tile.column_tile * kRows);
}

// Two bits: whether A, and whether B, is e5m2.
FLYDSL_DEVICE u32 formats_of(Arguments args) {
  return (args->a_dtype == static_cast<u32>(Dtype::e5m2) ? 1u : 0u) |
         (args->b_dtype == static_cast<u32>(Dtype::e5m2) ? 2u : 0u);
}
FLYDSL_DEVICE Format format_of(u32 formats, u32 bit) {
  return (formats >> bit & 1) != 0 ? Format::e5m2 : Format::e4m3;
}

// Calls multiply(A, B, formats) for each slab, which are in LDS then.
template <class Stored, class Multiply>
FLYDSL_DEVICE void multiply_slabs(lds_ptr<char> lds, const Tile &tile, u32 thread, Arguments args,
                                  Multiply multiply) {
  const i32 begin = static_cast<i32>(tile.split) * args->split_k;
  i32 left = args->k - begin;
  if (args->splits > 1 && left > args->split_k) left = args->split_k;
  if (left <= 0) return;
  const i32 first_row = first_row_of(tile), first_column = first_column_of(tile);
  Slabs<Stored> a((global_ptr<const Stored>)args->a + tile.batch * args->a_stride_b +
                      first_row * args->a_stride_m,
                  args->a_stride_m, args->a_stride_k, static_cast<u32>(args->m - first_row),
                  thread);
  Slabs<Stored> b((global_ptr<const Stored>)args->b + tile.batch * args->b_stride_b +
                      first_column * args->b_stride_n,
                  args->b_stride_n, args->b_stride_k, static_cast<u32>(args->n - first_column),
                  thread);
  const u32 formats = formats_of(args);
  constexpr i32 kSlabK = Slabs<Stored>::kSlabK;
  const i32 slabs = (left + kSlabK - 1) / kSlabK;
  for (i32 slab = 0;; ++slab) {
    if (slab < slabs) {
      a.load(begin + slab * kSlabK, left - slab * kSlabK);
      b.load(begin + slab * kSlabK, left - slab * kSlabK);
    }
    if (slab > 0) {
      const lds_ptr<char> stage = lds + (slab - 1) % 2 * (2 * kSlabBytes);
      multiply(stage, stage + kSlabBytes, formats);
    }
    if (slab == slabs) break;
    // Who still multiplies the slab before the last one has not passed the last barrier.
    const lds_ptr<char> stage = lds + slab % 2 * (2 * kSlabBytes);
    a.write(stage, format_of(formats, 0));
    b.write(stage + kSlabBytes, format_of(formats, 1));
    group_barrier();
  }
  group_barrier();
}

}  // namespace flydsl::kernels::gemm
