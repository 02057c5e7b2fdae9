// Adds the parts of K in their order and makes D of the sums: a lane has 8 neighbours in a row.
#pragma once

#include "scaled_gemm/output.hip.h"

namespace flydsl::kernels {

FLYDSL_DEVICE void add_parts_of_scaled_gemm(const flydsl_aot_scaled_gemm_kernarg &kernarg) {
  using namespace scaled_gemm;
  const Arguments args = arguments_here(kernarg);
  constexpr u32 kThreads = 256;
  const u32 block =
      (__builtin_amdgcn_workgroup_id_y() * args->grid_x + __builtin_amdgcn_workgroup_id_x()) *
          kThreads +
      __builtin_amdgcn_workitem_id_x();
  if (block >= args->tiles) return;
  const u32 m = static_cast<u32>(args->m), blocks_of_row = (static_cast<u32>(args->n) + 7) / 8;
  const u32 row_of_all = block / blocks_of_row, batch = row_of_all / m;
  const i32 row = static_cast<i32>(row_of_all % m),
            column = static_cast<i32>(block % blocks_of_row * 8), count = args->n - column;
  float sums[8] = {};
#pragma unroll 4
  for (u32 split = 0; split < args->splits; ++split) {
    const global_ptr<const char> from =
        (global_ptr<const char>)part_of(args, split, batch, row, column);
    if (count >= 8) {
      const f32x4 low = bits_as<f32x4>(load_16_bytes(from)),
                  high = bits_as<f32x4>(load_16_bytes(from + 16));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        sums[i] += low[i];
        sums[4 + i] += high[i];
      }
    } else {
#pragma unroll
      for (int i = 0; i < 7; ++i)
        if (i < count) sums[i] += load_real<fp32>(from + 4 * i);
    }
  }
  finish_row8(args, batch, row, column, count, sums);
}

}  // namespace flydsl::kernels
