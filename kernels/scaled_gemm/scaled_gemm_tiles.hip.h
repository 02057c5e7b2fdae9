// The instances for large matrices, K contiguous in both operands and in whole slabs: 256 x 256 of D a work-group
// (mx_loop.hip.h). NOTES.md says what limits them.
#pragma once

#include "scaled_gemm/mx_loop.hip.h"
#include "scaled_gemm/output.hip.h"
#include "scaled_gemm/sum_rows.hip.h"

namespace flydsl::kernels {
namespace scaled_gemm {

constexpr u32 kTileRows = 256;

// `whole`: all rows and columns of the tile exist.
FLYDSL_DEVICE void store_tile(Arguments args, lds_ptr<char> memory, u32 batch, u32 first_row,
                              u32 first_column, bool whole, u32 wave, u32 lane) {
  const i32 row = static_cast<i32>(first_row + SumRows::first_row(wave, lane));
  const i32 column = static_cast<i32>(first_column + SumRows::first_column(wave, lane));
  // Where only a conversion is between sums and D: straight code.
  if (FLYDSL_LIKELY(whole && !args->bias && args->d_stride_n == 1)) {
    const i64 at = i64{batch} * args->d_stride_b + row * args->d_stride_m + column;
    with_real(Real{args->d_dtype}, [&](auto of_type) FLYDSL_INLINED {
      using Element = typename decltype(of_type)::type;
      const global_ptr<char> to = (global_ptr<char>)args->d + at * kRealBytes<Element>;
      const i64 row_bytes = args->d_stride_m * kRealBytes<Element>;
      store_rows<4>(memory, wave, lane, [&](u32 rows_on, const float(&sums)[8]) FLYDSL_INLINED {
        store_packed8<Element>(to + rows_on * row_bytes, sums);
      });
    });
    return;
  }
  const i32 m = args->m, n = args->n;
  store_rows<1>(memory, wave, lane, [&](u32 rows_on, float(&sums)[8]) FLYDSL_INLINED {
    const i32 at = row + static_cast<i32>(rows_on);
    if (at < m && column < n) finish_row8(args, batch, at, column, n - column, sums);
  });
}

// One tile. All waves have done with LDS before; afterwards this one has.
template <class Loop>
FLYDSL_DEVICE void compute_tile(Arguments args, u32 number, lds_ptr<char> memory, u32 wave,
                                u32 lane) {
  const Tile tile(number, args);
  const i64 batch = tile.batch;
  const u32 row = tile.row * kTileRows, column = tile.column * kTileRows;
  const u32 m = static_cast<u32>(args->m), n = static_cast<u32>(args->n);
  const auto of_tile = [](u32 all, u32 first) FLYDSL_INLINED {
    return static_cast<i32>(all - first < kTileRows ? all - first : kTileRows);
  };
  const matmul::Operand a{
      (global_ptr<const char>)args->a + batch * args->a_stride_b + i64{row} * args->a_stride_m,
      args->a_stride_m, of_tile(m, row)};
  const matmul::Operand b{
      (global_ptr<const char>)args->b + batch * args->b_stride_b + i64{column} * args->b_stride_n,
      args->b_stride_n, of_tile(n, column)};
  const i32 slabs = args->k / Loop::kSlabK, loads = (args->k + 255) / 256;
  Loop loop(memory, wave, lane);
  loop.scales_a.begin((global_ptr<const char>)args->a_scale + batch * args->a_scale_stride_b,
                      static_cast<u32>(args->a_scale_stride_m), row + wave / 2 * 128, m, loads,
                      lane);
  loop.scales_b.begin((global_ptr<const char>)args->b_scale + batch * args->b_scale_stride_b,
                      static_cast<u32>(args->b_scale_stride_n), column + wave % 2 * 128, n, loads,
                      lane);
  loop.begin(a, b, slabs);
  loop.run(slabs);
  store_tile(args, memory, tile.batch, row, column, a.rows == kTileRows && b.rows == kTileRows,
             wave, lane);
}

}  // namespace scaled_gemm

// A work-group a compute unit; tiles go round.
template <int format_a, int format_b, bool shuffled>
FLYDSL_DEVICE void scaled_gemm_m256n256(const flydsl_aot_scaled_gemm_kernarg &kernarg) {
  using namespace scaled_gemm;
  using Loop = MxLoop<format_a, format_b, shuffled>;
  FLYDSL_SHARED static char memory[Loop::kLdsBytes] __attribute__((aligned(16)));
  const u32 thread = __builtin_amdgcn_workitem_id_x();
  u32 number = __builtin_amdgcn_workgroup_id_x();
#pragma unroll 1
  while (true) {
    // Read, and made of the lane's number, anew for each tile: nothing has to be kept over it.
    const Arguments args = arguments_here(kernarg);
    const u32 here = computed_here(thread), wave = uniform(here / kWaveLanes),
              lane = here % kWaveLanes;
    compute_tile<Loop>(args, number, (lds_ptr<char>)memory, wave, lane);
    number += args->grid_x;
    if (number >= args->tiles) break;
    barrier();
  }
}

}  // namespace flydsl::kernels
