// Adds the parts of K in their order and makes D of the sums: a lane has 8 neighbours in a row.
#pragma once

#include "gemm/epilogue.hip.h"

namespace flydsl::kernels {

FLYDSL_DEVICE void add_parts_of_k(const flydsl_aot_gemm_kernarg &) {
  const gemm::Arguments args = gemm::fresh_arguments();
  constexpr u32 kThreads = 256;
  const u32 block =
      (__builtin_amdgcn_workgroup_id_y() * args->grid_x + __builtin_amdgcn_workgroup_id_x()) *
          kThreads +
      __builtin_amdgcn_workitem_id_x();
  if (block >= args->tiles) return;
  const u32 blocks_of_row = (static_cast<u32>(args->n) + 7) / 8;
  const u32 row_of_all = block / blocks_of_row;
  const i32 column = static_cast<i32>(block % blocks_of_row * 8);
  const u32 batch = row_of_all / static_cast<u32>(args->m);
  const i32 row = static_cast<i32>(row_of_all % static_cast<u32>(args->m));
  const i32 count = args->n - column;
  float sums[8], part[8];
  gemm::load_row8(gemm::partial_of(args, 0, batch, row, column), gemm::Dtype::fp32, 1, count, sums);
#pragma unroll 4
  for (u32 split = 1; split < args->splits; ++split) {
    gemm::load_row8(gemm::partial_of(args, split, batch, row, column), gemm::Dtype::fp32, 1, count,
                    part);
#pragma unroll
    for (int i = 0; i < 8; ++i) sums[i] += part[i];
  }
  gemm::finish_row8(batch, row, column, count, sums);
}

}  // namespace flydsl::kernels
