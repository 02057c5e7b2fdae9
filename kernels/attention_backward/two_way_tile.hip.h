// Where a tile of 64 or 32 rows lies in LDS when its rows and its columns are both operands of matrix products; head dims
// any multiples of 32.
//
// As attention_forward's column_tile: the tile is cut into blocks of 32 columns, a block into 4 lines, of 64 rows 1024 bytes,
// what one wave copies at once, so that nothing is padded. Row r of a block, 64 bytes, is in line j = r % 4, slot
// (r / 4) ^ j; its four 16-byte places change places by j, too. 64 banks of 4 bytes; conflict-free in every group of
// lanes that is served together (ds_read_b128: lanes {0-3,12-15,20-27}, {4-11,16-19,28-31} and the same + 32; b64:
// 32 lanes):
// - rows by b128, lane = row: a group's 16 rows have four different r / 4 mod 4 with each j, so four slots mod 4,
//   and with different j different places: all 16 places mod 256;
// - columns by transposed b64: 32 lanes read the 64 bytes of 4 rows with one r / 4 and the four j: four slots mod 4.
#pragma once

#include "common/lanes.hip.h"
#include "common/lds.hip.h"

namespace flydsl::kernels {

constexpr i32 kRowsOfTile = 64;  // but of wide tiles where LDS is small (wide_wave.hip.h)

// What a lane carries of a line: 16 bytes of a row, from this byte of the block's 64 on.
struct TilePart {
  i32 row, byte;
};

// A tile's places in LDS: operands of the score products, lse and delta of 64 rows each.
struct TilePlaces {
  lds_ptr<char> tile_1, tile_2, lse, delta;
};

template <int head_dim, int rows = kRowsOfTile>
struct TwoWayTile {
  static_assert(head_dim % 32 == 0, "the head dims of a class are multiples of 32");
  static_assert(rows == 64 || rows == 32, "slots change places in fours");
  static constexpr int blocks = head_dim / 32;
  static constexpr int line_bytes = 16 * rows, block_bytes = 4 * line_bytes;
  static constexpr int bytes = blocks * block_bytes;

  // Lane `lane`'s part of line `line` of a block; it lies at 16 lane of the line.
  static FLYDSL_DEVICE TilePart part(u32 line, u32 lane) {
    return {static_cast<i32>((lane / 4 ^ line) * 4 + line),
            static_cast<i32>((lane % 4 ^ line) * 16)};
  }
  // The other way round: where `place` (0 .. 3) of a row's first block lies.
  static FLYDSL_DEVICE u32 byte_of(u32 row, u32 place) {
    const u32 line = row % 4;
    return line * line_bytes + (row / 4 ^ line) * 64 + (place ^ line) * 16;
  }

  // Operands whose k index is the column: rows 32 half + l % 32, columns 16 step + 8 (l / 32) + 0..7.
  struct Rows {
    lds_ptr<const char> of_step[2];  // even, odd
    FLYDSL_DEVICE Rows(lds_ptr<const char> tile, u32 lane) {
      const u32 first = byte_of(lane % 32, lane / 32);
      of_step[0] = tile + first;
      of_step[1] = tile + (first ^ 32);
    }
    FLYDSL_DEVICE u32x4 operator()(int half, int step) const {
      return read_b128(of_step[step % 2] + (step / 2 * block_bytes + half * 512));
    }
  };

  // Operands whose k index is the row: columns 32 block + l % 32; lane group g = l / 32, element j is row
  // 16 step + 8 (j / 4) + 4 g + j % 4, the order in which the accumulators of a 32x32 product hold rows.
  struct Columns {
#if FLYDSL_GFX950
    lds_ptr<const char> of_quad[2];
    FLYDSL_DEVICE Columns(lds_ptr<const char> tile, u32 lane) {
      const u32 row = lane / 32 * 4 + lane % 16 / 4;
      const u32 first = byte_of(row, lane / 16 % 2 * 2 + lane % 4 / 2) + lane % 2 * 8;
      of_quad[0] = tile + first;
      of_quad[1] = tile + (first ^ 128);
    }
    FLYDSL_DEVICE u32x4 operator()(int step, int block) const {
      const int at = block * block_bytes + step * 256;
      const u32x2 low = read_transposed_b64(of_quad[0] + at);
      const u32x2 high = read_transposed_b64(of_quad[1] + at);
      return u32x4{low[0], low[1], high[0], high[1]};
    }
#else
    // Element by element: row n of the four that follow each other is in line n.
    lds_ptr<const char> of_row[4];
    FLYDSL_DEVICE Columns(lds_ptr<const char> tile, u32 lane) {
#pragma unroll
      for (u32 n = 0; n < 4; ++n)
        of_row[n] = tile + (n * line_bytes + (lane / 32 ^ n % 2) * 64 + (lane % 32 / 8 ^ n) * 16 +
                            lane % 8 * 2);
    }
    FLYDSL_DEVICE u32x4 operator()(int step, int block) const {
      const auto column = [&](int quad) FLYDSL_INLINED {
        const auto element = [&](int n) FLYDSL_INLINED {
          return of_row[n] + (block * block_bytes + step * 256 + ((2 * quad) ^ (n & 2)) * 64);
        };
        return read_elements(element(0), element(1), element(2), element(3));
      };
      const u32x2 low = column(0), high = column(1);
      return u32x4{low[0], low[1], high[0], high[1]};
    }
#endif
  };
};

}  // namespace flydsl::kernels
