// Where a lane's sums go: a short way for those that only a factor and a conversion are between them and D, or that are of a part
// of K, and the one of epilogue.hip.h. The first is straight code, and what it needs is looked up while operands are under way: a
// work-group may find neither code nor arguments in a cache.
#pragma once

#include "gemm/epilogue.hip.h"
#include "gemm/tile_order.hip.h"

namespace flydsl::kernels::gemm {

struct Destination {
  global_ptr<char> to;  // of (row, column)
  i64 row_bytes;
  float factor;
  Dtype dtype;
  bool whole, is_plain;
  i32 row, column;  // the lane's first; blocks of 8 columns
  u32 split, batch;

  // `whole`: all rows and columns that the work-group stores exist.
  FLYDSL_DEVICE Destination(const Tile &tile, i32 row, i32 column, bool whole)
      : whole(whole),
        row(row),
        column(column),
        split(in_lanes(tile.split)),
        batch(in_lanes(tile.batch)) {
    const Arguments args = fresh_arguments();
    if (FLYDSL_UNLIKELY(tile.in_parts != 0)) {
      factor = 1.0f;
      dtype = Dtype::fp32;
      if (args->whole_tiles != 0) {
        to = partial_of_tile(args, split, tile.part_tile,
                             static_cast<u32>(row) - tile.row_tile * args->tile_rows,
                             static_cast<u32>(column) - tile.column_tile * args->tile_columns);
        row_bytes = in_lanes(i64{4} * args->tile_columns);
        is_plain = true;
      } else {
        to = partial_of(args, split, batch, row, column);
        row_bytes = in_lanes(i64{4} * args->n);
        is_plain = whole;
      }
      return;
    }
    dtype = Dtype{args->d_dtype};
    to = place(args->d, batch * args->d_stride_b + row * args->d_stride_m + column, dtype);
    row_bytes = in_lanes(args->d_stride_m * bytes_of(dtype));
    factor = in_lanes(args->alpha);
    // All at once: each jump would wait for its argument.
    const u64 others = (u64)args->c | (u64)args->residual | (u64)args->aux | (u64)args->bias_m |
                       (u64)args->bias_n | (u64)args->a_descale | (u64)args->b_descale |
                       (u64)args->d_scale | args->activation |
                       static_cast<u64>(args->d_stride_n - 1);
    is_plain = static_cast<u32>(whole) & static_cast<u32>(others == 0) &
               static_cast<u32>(dtype <= Dtype::bf16);
  }

  template <class Element>
  FLYDSL_DEVICE void store16(u32 rows_on, const float (&sums)[8]) const {
    u32x4 words;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      words[i] = round_pair<Element>(factor * sums[2 * i], factor * sums[2 * i + 1]);
    store_16_bytes(to + rows_on * row_bytes, words);
  }
  FLYDSL_DEVICE void store32(u32 rows_on, const float (&sums)[8]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      u32x4 words;
#pragma unroll
      for (int i = 0; i < 4; ++i) words[i] = bits_as<u32>(factor * sums[4 * half + i]);
      store_16_bytes(to + rows_on * row_bytes + 16 * half, words);
    }
  }
  // Without the factor, and with a look at the type for each row.
  FLYDSL_DEVICE void store_any(u32 rows_on, const float (&values)[8]) const {
    store_row8(to + rows_on * row_bytes, dtype, 1, 8, values);
  }
  // Calls with_store(store), where store(rows_on, sums) stores them in the row that many after the first.
  template <class WithStore>
  FLYDSL_DEVICE void plain(WithStore with_store) const {
    if (dtype == Dtype::bf16)
      with_store([&](u32 rows_on, const float(&sums)[8])
                     FLYDSL_INLINED { store16<bf16>(rows_on, sums); });
    else if (dtype == Dtype::fp16)
      with_store([&](u32 rows_on, const float(&sums)[8])
                     FLYDSL_INLINED { store16<fp16>(rows_on, sums); });
    else
      with_store([&](u32 rows_on, const float(&sums)[8])
                     FLYDSL_INLINED { store32(rows_on, sums); });
  }
};

}  // namespace flydsl::kernels::gemm
