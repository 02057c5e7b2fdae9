// gemm_general.hip.h for operands of 16 bits by products of 16 x 16 matrices of whatever kind the architecture has: 128 x 128 of D a
// work-group of 256 threads, 64 or 32 rows of 64 columns a wave.
#pragma once

#include "common/matrix_tile.hip.h"
#include "gemm/general_loop.hip.h"
#include "gemm/sums_to_rows.hip.h"

namespace flydsl::kernels {
namespace gemm {

struct PortableSums {
  static constexpr u32 kWaves = kThreads / kWaveSize;
  static constexpr u32 rows = kRows * 2 / kWaves, columns = 64;
  static constexpr u32 row_blocks = rows / 16, column_blocks = columns / 16;
  // Columns of B are the first operand, the instruction's rows: a lane has columns of one row of D.
  MatrixSums block[row_blocks][column_blocks] = {};

  template <class Element>
  FLYDSL_DEVICE void multiply(lds_ptr<const char> a, lds_ptr<const char> b, u32 row_a, u32 row_b,
                              u32 lane) {
    const auto operand = [&](lds_ptr<const char> slab, u32 row, u32 step) FLYDSL_INLINED {
      return load_operand(lane, [&](u32 k) FLYDSL_INLINED {
        const u32 at = kMatrixDepth * step + k;
        return slab + (chunk_place(row + lane % 16, at / 8) + 2 * (at % 8));
      });
    };
#pragma unroll
    for (u32 step = 0; step < kLineBytes / 2 / kMatrixDepth; ++step) {
      MatrixOperand of_a[row_blocks];
#pragma unroll
      for (u32 i = 0; i < row_blocks; ++i) of_a[i] = operand(a, row_a + 16 * i, step);
#pragma unroll
      for (u32 j = 0; j < column_blocks; ++j) {
        const MatrixOperand of_b = operand(b, row_b + 16 * j, step);
#pragma unroll
        for (u32 i = 0; i < row_blocks; ++i)
          block[i][j] = matrix_product<Element>(of_b, of_a[i], block[i][j]);
      }
    }
  }

  FLYDSL_DEVICE void write(lds_ptr<char> mine, u32 lane) const {
#pragma unroll
    for (u32 i = 0; i < row_blocks; ++i) {
#pragma unroll
      for (u32 j = 0; j < column_blocks; ++j) {
        const u32 row = 16 * i + lane % 16;
#pragma unroll
        for (u32 at = 0; at < MatrixLayout::sums; ++at) {
          const u32 column = 16 * j + MatrixLayout::row_of(lane, at);
          *(lds_ptr<float>)(mine + (sum_place(row, column / 4) + column % 4 * 4)) = block[i][j][at];
        }
      }
    }
  }
};

}  // namespace gemm

template <class Element>
FLYDSL_DEVICE void gemm_portable(const flydsl_aot_gemm_kernarg &) {
  using namespace gemm;
  using Sums = PortableSums;
  FLYDSL_SHARED static char memory[kRows * kRows * 4] __attribute__((aligned(16)));
  static_assert(sizeof memory >= kLoopBytes, "two stages, then sums");
  const lds_ptr<char> lds = (lds_ptr<char>)memory;

  const Arguments args = fresh_arguments();
  const u32 number = group_number(args);
  if (number >= args->tiles) return;
  const Tile tile(number, args);
  const u32 thread = thread_index();
  const u32 wave = uniform(thread / kWaveSize), lane = thread % kWaveSize;
  const i32 m = args->m, n = args->n;
  const u32 row_a = wave / 2 * Sums::rows, row_b = wave % 2 * Sums::columns;

  Sums sums;
  multiply_slabs<u16>(lds, tile, thread, args,
                      [&](lds_ptr<const char> a, lds_ptr<const char> b, u32)
                          FLYDSL_INLINED { sums.multiply<Element>(a, b, row_a, row_b, lane); });
  const lds_ptr<char> mine = lds + wave * (Sums::rows * kSumRowBytes);
  sums.write(mine, lane);
  wave_barrier();
  store_rows<Sums::rows>(mine, tile.split, tile.batch, first_row_of(tile) + static_cast<i32>(row_a),
                         first_column_of(tile) + static_cast<i32>(row_b), lane, m, n);
}

}  // namespace flydsl::kernels
