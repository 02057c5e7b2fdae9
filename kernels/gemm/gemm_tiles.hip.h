// The instances for large matrices of 16-bit or 8-bit operands, one dimension of each contiguous: tiles of 256 or 128 rows and columns
// of D (common/matmul/main_loop.hip.h). A work-group computes one after the other, without a break where they are of one kind: the
// copies of the next tile are under way while D is stored. NOTES.md says what limits them.
#pragma once

#include "common/matmul/store_tile.hip.h"
#include "gemm/gradient_rows.hip.h"
#include "gemm/tile_order.hip.h"

namespace flydsl::kernels {
namespace gemm {

using matmul::Operand;
using matmul::Order;

// A tile's operands.
template <int bytes, Order a_order, Order b_order, int tile_rows, int tile_columns>
struct Work {
  Tile tile;
  i32 row, column, length;  // first ones, K
  Operand a, b;

  FLYDSL_DEVICE Work(u32 number, Arguments args) : tile(number, args) {
    row = static_cast<i32>(tile.row_tile) * tile_rows;
    column = static_cast<i32>(tile.column_tile) * tile_columns;
    const i32 k = static_cast<i32>(tile.split) * args->split_k, left = args->k - k;
    length = tile.in_parts && args->split_k < left ? args->split_k : left;
    a = operand(
        args->a, tile.batch * args->a_stride_b + row * args->a_stride_m + k * args->a_stride_k,
        a_order == Order::k ? args->a_stride_m : args->a_stride_k, args->m - row, tile_rows);
    b = operand(
        args->b, tile.batch * args->b_stride_b + column * args->b_stride_n + k * args->b_stride_k,
        b_order == Order::k ? args->b_stride_n : args->b_stride_k, args->n - column, tile_columns);
  }
  static FLYDSL_DEVICE Operand operand(const void *base, i64 offset, i64 stride, i32 rows,
                                       i32 most) {
    return {(global_ptr<const char>)base + bytes * offset, bytes * stride,
            rows < most ? rows : most};
  }
  // Into scalar registers, where clang may not have kept them across a branch.
  FLYDSL_DEVICE void settle() {
    tile.batch = uniform(tile.batch);
    tile.split = uniform(tile.split);
    tile.in_parts = uniform(tile.in_parts);
    tile.part_tile = uniform(tile.part_tile);
    tile.row_tile = uniform(tile.row_tile);
    tile.column_tile = uniform(tile.column_tile);
    row = uniform_signed(row);
    column = uniform_signed(column);
    length = uniform_signed(length);
    settle(a);
    settle(b);
  }
  static FLYDSL_DEVICE i32 uniform_signed(i32 value) {
    return static_cast<i32>(uniform(static_cast<u32>(value)));
  }
  static FLYDSL_DEVICE void settle(Operand &operand) {
    operand.first = (global_ptr<const char>)uniform((u64)operand.first);
    operand.stride_bytes = static_cast<i64>(uniform(static_cast<u64>(operand.stride_bytes)));
    operand.rows = uniform_signed(operand.rows);
  }
  FLYDSL_DEVICE bool whole() const { return a.rows == tile_rows && b.rows == tile_columns; }
};

template <int tile_rows, int tile_columns, class Loop>
FLYDSL_DEVICE void store_sums_of_tile(const Destination &to, Loop &loop) {
  const u32 free_a = loop.free_a(), free_b = loop.free_b(), wave = loop.wave, lane = loop.lane;
  const auto store = [&](auto store) FLYDSL_INLINED {
    matmul::store_tile<tile_rows, tile_columns>(free_a, free_b, wave, lane,
                                                [&](const auto &rows)
                                                    FLYDSL_INLINED { rows.each_at_once(store); });
  };
  if (FLYDSL_LIKELY(to.is_plain)) {
    to.plain(store);
    return;
  }
  const Arguments args = fresh_arguments();
  using Rows = matmul::SumRows<tile_rows, tile_columns>;
  const u32 first = Rows::first_row_of(wave);
  const auto finish_with = [&](auto finish) FLYDSL_INLINED {
    constexpr int kTogether = decltype(finish)::kTogether;
    matmul::store_tile<tile_rows, tile_columns, false>(
        free_a, free_b, wave, lane, [&](const auto &rows) FLYDSL_INLINED {
          rows.template together<kTogether>([&](u32 row, float(&sums)[kTogether][8])
                                                FLYDSL_INLINED { finish.finish(to, row, sums); });
        });
    finish.end();
  };
  const u32 last = first + tile_rows / 2 - 16;
  if (to.whole && FinishRows<Rows::kAtOnce>::takes(args)) {
    finish_with(FinishRows<Rows::kAtOnce>(to, first, last));
    return;
  }
  if (to.whole && GradientRows<Rows::kAtOnce>::takes(args)) {
    finish_with(GradientRows<Rows::kAtOnce>(to, first, last));
    return;
  }
  const i32 m = args->m, n = args->n;
  matmul::store_tile<tile_rows, tile_columns>(
      free_a, free_b, wave, lane, [&](const auto &rows) FLYDSL_INLINED {
        rows.one_by_one([&](u32 row, float(&sums)[8]) FLYDSL_INLINED {
          const i32 at = to.row + static_cast<i32>(row);
          if (at < m && to.column < n) store_sums(to.split, to.batch, at, to.column, sums);
        });
      });
}

}  // namespace gemm

template <class ElementA, class ElementB, gemm::Order a_order, gemm::Order b_order, int tile_rows,
          int tile_columns, int equal_stages = 0>
FLYDSL_DEVICE void gemm_tiles(const flydsl_aot_gemm_kernarg &) {
  using Loop =
      matmul::MainLoop<ElementA, ElementB, a_order, b_order, tile_rows, tile_columns, equal_stages>;
  using Rows = matmul::SumRows<tile_rows, tile_columns>;
  using Work = gemm::Work<Loop::kBytes, a_order, b_order, tile_rows, tile_columns>;
  u32 number = __builtin_amdgcn_workgroup_id_x();
  if (number >= gemm::fresh_arguments()->tiles) return;
  FLYDSL_SHARED static char memory[Loop::kLdsBytes] __attribute__((aligned(512)));
  const u32 thread = __builtin_amdgcn_workitem_id_x(), wave = uniform(thread / kWaveLanes),
            lane = thread % kWaveLanes;
  Loop loop((lds_ptr<char>)memory, wave, lane);
  // Work is computed anew where it is asked for: scalar registers are few.
  const auto work_of = [](u32 number) FLYDSL_INLINED {
    Work work(uniform_computed_here(number), gemm::fresh_arguments());
    work.settle();
    return work;
  };
#pragma unroll 1
  for (;;) {
    {
      const Work work = work_of(number);
      loop.begin(work.a, work.b, work.length);
    }
    bool starts = true, follows;
#pragma unroll 1
    do {
      const Work work = work_of(number);
      const gemm::Destination to(work.tile, work.row + static_cast<i32>(Rows::lane_row(lane)),
                                 work.column + static_cast<i32>(Rows::lane_column(wave, lane)),
                                 work.whole());
      const gemm::Arguments args = gemm::fresh_arguments();
      const u32 next = number + args->grid_x;
      follows = false;
      if (next < args->tiles) {
        const Work following = work_of(next);
        follows = work.whole() && following.whole() && following.length == work.length &&
                  work.length % Loop::kPairK == 0 && work.length >= 2 * Loop::kPairK;
        loop.follow(work.a, work.b, following.a, following.b, follows, work.length);
      } else {
        loop.follow(work.a, work.b, work.a, work.b, false, work.length);
      }
      if (FLYDSL_LIKELY(work.length >= Loop::kPairK)) {
        if (starts) loop.start();
        loop.add(work.length);
      }
      starts = false;
      if (FLYDSL_UNLIKELY(!follows)) {
        const Work again = work_of(number);
        loop.add_rest(again.a, again.b, again.length);
      }
      gemm::store_sums_of_tile<tile_rows, tile_columns>(to, loop);
      number = next;
      if (follows) loop.resume();
    } while (follows);
    if (number >= gemm::fresh_arguments()->tiles) return;
    // Others may still read sums where the copies go.
    barrier();
  }
}

}  // namespace flydsl::kernels
