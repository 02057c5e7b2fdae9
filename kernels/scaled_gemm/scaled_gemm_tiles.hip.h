// The instances with K contiguous in both operands and in whole slabs: 256 rows and 256 or 128 columns of D a work-group for large
// matrices (mx_loop.hip.h), 128 x 128 for those of a few hundred rows (common/matmul/ring_loop.hip.h). NOTES.md says what limits them.
#pragma once

#include "common/matmul/ring_loop.hip.h"
#include "common/matmul/store_tile.hip.h"
#include "scaled_gemm/mx_loop.hip.h"
#include "scaled_gemm/output.hip.h"

namespace flydsl::kernels {
namespace scaled_gemm {

// Where a lane's sums go. Looked up while operands are under way, so that nothing waits for arguments after the last product.
template <u32 rows, u32 columns>
struct Destination {
  using Rows = matmul::SumRows<rows, columns>;
  i32 row, column;  // the lane's first
  Real type;
  bool plain;           // the tile is whole, and only a conversion is between sums and D
  global_ptr<char> to;  // if it is
  i64 row_bytes;

  FLYDSL_DEVICE Destination(Arguments args, i64 batch, u32 first_row, u32 first_column, bool whole,
                            u32 wave, u32 lane)
      : row(static_cast<i32>(first_row + Rows::lane_row(lane))),
        column(static_cast<i32>(first_column + Rows::lane_column(wave, lane))),
        type(Real{args->d_dtype}),
        plain(whole && !args->bias && args->d_stride_n == 1) {
    const i64 bytes = type == Real::fp32 ? 4 : 2;
    to = (global_ptr<char>)args->d +
         (batch * args->d_stride_b + row * args->d_stride_m + column) * bytes;
    row_bytes = args->d_stride_m * bytes;
    // Here, not where the compiler finds them needed: that may be where reads of the last slab are still to land.
    asm volatile("" : "+v"(row), "+v"(column), "+v"(to));
  }
};

// `free_a`, `free_b`: of LDS, as the loop says.
template <class Loop, u32 rows, u32 columns>
FLYDSL_DEVICE void store_tile(Arguments args, const Loop &loop, u32 free_a, u32 free_b, u32 batch,
                              const Destination<rows, columns> &at) {
  const auto store_all = [&](auto take) FLYDSL_INLINED {
    matmul::store_tile<rows, columns>(free_a, free_b, loop.wave, loop.lane, take);
  };
  if (FLYDSL_UNLIKELY(!at.plain)) {
    const i32 m = args->m, n = args->n;
    store_all([&](const auto &part) FLYDSL_INLINED {
      part.one_by_one([&](u32 rows_on, float(&sums)[8]) FLYDSL_INLINED {
        const i32 row = at.row + static_cast<i32>(rows_on);
        if (row < m && at.column < n) finish_row8(args, batch, row, at.column, n - at.column, sums);
      });
    });
    return;
  }
  const auto store = [&](auto element) FLYDSL_INLINED {
    store_all([&](const auto &part) FLYDSL_INLINED {
      part.each_at_once([&](u32 rows_on, const float(&sums)[8]) FLYDSL_INLINED {
        store_packed8<decltype(element)>(at.to + rows_on * at.row_bytes, sums);
      });
    });
  };
  // The usual one first: code that follows is fetched sooner than code that is jumped to.
  if (FLYDSL_LIKELY(at.type == Real::bf16)) return store(bf16{});
  if (at.type == Real::fp16) return store(fp16{});
  store(fp32{});
}

template <class Loop>
constexpr bool is_ring = false;
template <class Products, matmul::Order a, matmul::Order b, int rows, int columns, int stages>
constexpr bool is_ring<matmul::RingLoop<Products, a, b, rows, columns, stages>> = true;

// One tile. All waves have done with LDS before; afterwards this one has.
template <class Loop, u32 rows, u32 columns>
FLYDSL_DEVICE void compute_tile(Arguments args, u32 number, lds_ptr<char> memory, u32 wave,
                                u32 lane) {
  const Tile tile(number, args);
  const i64 batch = tile.batch;
  const u32 row = tile.row * rows, column = tile.column * columns;
  const u32 m = static_cast<u32>(args->m), n = static_cast<u32>(args->n);
  const auto of_tile = [](u32 all, u32 first, u32 most) FLYDSL_INLINED {
    return static_cast<i32>(all - first < most ? all - first : most);
  };
  const matmul::Operand a{
      (global_ptr<const char>)args->a + batch * args->a_stride_b + i64{row} * args->a_stride_m,
      args->a_stride_m, of_tile(m, row, rows)};
  const matmul::Operand b{
      (global_ptr<const char>)args->b + batch * args->b_stride_b + i64{column} * args->b_stride_n,
      args->b_stride_n, of_tile(n, column, columns)};
  const i32 loads = (args->k + 255) / 256;
  Loop loop(memory, wave, lane);
  const auto begin_scales = [&](auto &of) FLYDSL_INLINED {
    of.scales_a.begin((global_ptr<const char>)args->a_scale + batch * args->a_scale_stride_b,
                      static_cast<u32>(args->a_scale_stride_m), row + wave / 2 * (rows / 2), m,
                      loads, lane);
    of.scales_b.begin((global_ptr<const char>)args->b_scale + batch * args->b_scale_stride_b,
                      static_cast<u32>(args->b_scale_stride_n), column + wave % 2 * (columns / 2),
                      n, loads, lane);
  };
  const auto destination = [&]() FLYDSL_INLINED {
    return Destination<rows, columns>(args, batch, row, column,
                                      a.rows == i32{rows} && b.rows == i32{columns}, wave, lane);
  };
  if constexpr (is_ring<Loop>) {
    begin_scales(loop.products);
    loop.begin(a, b, args->k / Loop::kSlabK);
    const Destination<rows, columns> to = destination();
    loop.run();
    store_tile<Loop, rows, columns>(args, loop, loop.free_a(), loop.free_b(), tile.batch, to);
  } else {
    begin_scales(loop);
    loop.slabs = args->k / Loop::kSlabK;
    loop.begin(a, b);
    const Destination<rows, columns> to = destination();
    loop.run();
    store_tile<Loop, rows, columns>(args, loop, loop.free_a, loop.free_b, tile.batch, to);
  }
}

// Tiles go round.
template <class Loop, u32 rows, u32 columns>
FLYDSL_DEVICE void compute_tiles(const flydsl_aot_scaled_gemm_kernarg &kernarg,
                                 lds_ptr<char> memory) {
  const u32 thread = __builtin_amdgcn_workitem_id_x();
  u32 number = __builtin_amdgcn_workgroup_id_x();
#pragma unroll 1
  while (true) {
    // Read, and made of the lane's number, anew for each tile: nothing has to be kept over it.
    const Arguments args = arguments_here(kernarg);
    const u32 here = computed_here(thread), wave = uniform(here / kWaveLanes),
              lane = here % kWaveLanes;
    const u32 next = uniform_computed_here(number + args->grid_x);
    const bool last = next >= args->tiles;
    compute_tile<Loop, rows, columns>(args, number, memory, wave, lane);
    if (last) break;
    number = next;
    barrier();
  }
}

}  // namespace scaled_gemm

// A work-group a compute unit.
template <int format_a, int format_b, bool shuffled, int columns>
FLYDSL_DEVICE void scaled_gemm_tiles(const flydsl_aot_scaled_gemm_kernarg &kernarg) {
  using namespace scaled_gemm;
  using Loop = MxLoop<format_a, format_b, shuffled, columns>;
  FLYDSL_SHARED static char memory[Loop::kLdsBytes] __attribute__((aligned(512)));
  compute_tiles<Loop, 256, columns>(kernarg, (lds_ptr<char>)memory);
}

// Two work-groups a compute unit.
template <int format_a, int format_b, bool shuffled>
FLYDSL_DEVICE void scaled_gemm_small_tiles(const flydsl_aot_scaled_gemm_kernarg &kernarg) {
  using namespace scaled_gemm;
  constexpr int kTile = 128, kStages = 2;
  using Products = MxProducts<format_a, format_b, shuffled, kTile / 64, kTile / 64>;
  using Loop =
      matmul::RingLoop<Products, matmul::Order::k, matmul::Order::k, kTile, kTile, kStages>;
  FLYDSL_SHARED static char memory[Loop::kLdsBytes] __attribute__((aligned(512)));
  compute_tiles<Loop, kTile, kTile>(kernarg, (lds_ptr<char>)memory);
}

}  // namespace flydsl::kernels
