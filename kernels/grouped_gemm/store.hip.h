// Sums of a tile to D: rounded, in the rows and columns that the group has.
#pragma once

#include "common/matmul/store_tile.hip.h"
#include "common/memory.hip.h"
#include "common/reals.hip.h"
#include "grouped_gemm/tiles.hip.h"

namespace flydsl::kernels::grouped {

// Where a lane's blocks of 8 columns go, looked up while operands are under way. `may_begin_before`: tiles have rows of the group
// before theirs.
template <bool may_begin_before>
struct DestinationOf {
  global_ptr<char> to;  // of the lane's first row and column
  i64 row_bytes;
  Real dtype;
  bool is_plain;
  i32 before, rows, columns;  // from the lane's first on: before the group, and with it
  u32 group;
  i32 n;  // the lane's first column

  // `lane_row`, `lane_column`: the lane's first in the tile.
  FLYDSL_DEVICE DestinationOf(const Tile &tile, i32 lane_row, i32 lane_column)
      : before(tile.before - lane_row),
        rows(tile.rows - lane_row),
        columns(tile.columns - lane_column),
        group(tile.group),
        n(tile.n + lane_column) {
    const Arguments args = fresh_arguments();
    dtype = static_cast<Real>(args->d_dtype);
    const i64 bytes = dtype == Real::fp32 ? 4 : 2;
    to = (global_ptr<char>)args->d +
         bytes * (group * args->d_stride_g + (tile.m + lane_row) * args->d_stride_m +
                  n * args->d_stride_n);
    row_bytes = bytes * args->d_stride_m;
    // Blocks of 8 columns exist or not.
    const u64 others = (u64)args->bias | static_cast<u64>(args->d_stride_n - 1);
    is_plain = static_cast<u32>(others == 0) & static_cast<u32>(tile.columns % 8 == 0);
    // Worked out here: later, more registers would have to be kept.
    asm volatile("" : "+v"(to), "+s"(row_bytes));
  }

  FLYDSL_DEVICE bool has(u32 row) const {
    const i32 at = static_cast<i32>(row);
    return at < rows && (!may_begin_before || at >= before);
  }

  template <class Element>
  FLYDSL_DEVICE void store16(u32 row, const float (&sums)[8]) const {
    u32x4 words;
#pragma unroll
    for (int i = 0; i < 4; ++i) words[i] = round_pair<Element>(sums[2 * i], sums[2 * i + 1]);
    if (has(row) && columns > 0) store_16_bytes(to + row * row_bytes, words);
  }
  FLYDSL_DEVICE void store32(u32 row, const float (&sums)[8]) const {
    if (!has(row) || columns <= 0) return;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      u32x4 words;
#pragma unroll
      for (int i = 0; i < 4; ++i) words[i] = bits_as<u32>(sums[4 * half + i]);
      store_16_bytes(to + row * row_bytes + 16 * half, words);
    }
  }
  // Element by element, with bias.
  FLYDSL_DEVICE void store_any(u32 row, float (&sums)[8]) const {
    if (!has(row)) return;
    const Arguments args = fresh_arguments();
    if (args->bias) {
      with_real(static_cast<Real>(args->bias_dtype), [&](auto type) FLYDSL_INLINED {
        using Bias = typename decltype(type)::type;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          const i64 at = group * args->bias_stride_g + (n + i) * args->bias_stride_n;
          if (i < columns)
            sums[i] += load_real<Bias>((global_ptr<const char>)args->bias +
                                       static_cast<i64>(kRealBytes<Bias>) * at);
        }
      });
    }
    with_real(dtype, [&](auto type) FLYDSL_INLINED {
      using Out = typename decltype(type)::type;
      const i64 step = static_cast<i64>(kRealBytes<Out>) * args->d_stride_n;
#pragma unroll
      for (int i = 0; i < 8; ++i)
        if (i < columns) store_real<Out>(to + row * row_bytes + i * step, sums[i]);
    });
  }
};

using Destination = DestinationOf<false>;

// `free_a`, `free_b`: of LDS, as the main loop says.
template <int tile_rows, int tile_columns, bool may_begin_before>
FLYDSL_DEVICE void store_sums(const DestinationOf<may_begin_before> &to, u32 free_a, u32 free_b,
                              u32 wave, u32 lane) {
  const auto store = [&](auto store) FLYDSL_INLINED {
    matmul::store_tile<tile_rows, tile_columns>(free_a, free_b, wave, lane,
                                                [&](const auto &rows)
                                                    FLYDSL_INLINED { rows.each_at_once(store); });
  };
  if (FLYDSL_UNLIKELY(!to.is_plain)) {
    matmul::store_tile<tile_rows, tile_columns>(
        free_a, free_b, wave, lane, [&](const auto &rows) FLYDSL_INLINED {
          rows.one_by_one([&](u32 row, float(&sums)[8])
                              FLYDSL_INLINED { to.store_any(row, sums); });
        });
  } else if (to.dtype == Real::bf16) {
    store([&](u32 row, const float(&sums)[8])
              FLYDSL_INLINED { to.template store16<bf16>(row, sums); });
  } else if (to.dtype == Real::fp16) {
    store([&](u32 row, const float(&sums)[8])
              FLYDSL_INLINED { to.template store16<fp16>(row, sums); });
  } else {
    store([&](u32 row, const float(&sums)[8]) FLYDSL_INLINED { to.store32(row, sums); });
  }
}

}  // namespace flydsl::kernels::grouped
