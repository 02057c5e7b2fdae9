// Where a tile of 64 keys lies in LDS when copies fill it, head dims any multiples of 32.
//
// The tile is cut into blocks of 32 columns, a block into 4 lines of 1024 bytes, what one wave copies
// at once: line j of a block holds the 64-byte pieces of rows j, j + 4, j + 8, ... in 16 slots. Copies
// land linearly, so nothing is padded; instead pieces change places within a line, by its number, which
// the copying lanes see to through their global addresses. 64 banks of 4 bytes; conflict-free in every
// group of lanes that is served together (ds_read_b128: lanes {0-3,12-15,20-27}, {4-11,16-19,28-31} and
// the same + 32; b64: 32 lanes):
// - K by b128, lane = row: a group's 16 rows lie in 4 lines and, mod 4, in 4 slots; place c of a piece's
//   four 16-byte places holds c ^ j, so that the lines meet different banks;
// - V by transposed b64: 32 lanes read 64 bytes of 4 rows in the 4 lines; slot s holds piece s ^ j.
#pragma once

#include "common/lanes.hip.h"
#include "common/lds.hip.h"

namespace flydsl::kernels {

// What a lane carries of a line: 16 bytes of a row, from this byte of the block's 64 on.
struct LinePart {
  i32 row, byte;
};

template <int head_dim_qk, int head_dim_v>
struct ColumnTile {
  static_assert(head_dim_qk % 32 == 0 && head_dim_v % 32 == 0,
                "the head dims of a class are multiples of 32");
  static constexpr int score_steps = head_dim_qk / 16, value_blocks = head_dim_v / 32;
  static constexpr int line_bytes = 1024, lines_of_block = 4;
  static constexpr int block_bytes = lines_of_block * line_bytes;
  static constexpr int k_blocks = head_dim_qk / 32, v_blocks = head_dim_v / 32;
  static constexpr int k_bytes = k_blocks * block_bytes, v_bytes = v_blocks * block_bytes;

  // Copying line j of a block.
  static FLYDSL_DEVICE LinePart k_part(u32 line, u32 lane) {
    return {static_cast<i32>(lane / 4 * 4 + line), static_cast<i32>((lane % 4 ^ line) * 16)};
  }
  static FLYDSL_DEVICE LinePart v_part(u32 line, u32 lane) {
    return {static_cast<i32>((lane / 4 ^ line) * 4 + line), static_cast<i32>(lane % 4 * 16)};
  }

  // The A operands of S^T = K Q^T: keys 32 block + l % 32, elements 16 step + 8 (l / 32).
  struct Keys {
    lds_ptr<const char> of_step[2];  // even, odd
    FLYDSL_DEVICE Keys(lds_ptr<const char> tile, u32 lane) {
      const u32 row = lane % 32, line = row % 4;
      const u32 first = line * line_bytes + row / 4 * 64 + (lane / 32 ^ line) * 16;
      of_step[0] = tile + first;
      of_step[1] = tile + (first ^ 32);
    }
    FLYDSL_DEVICE u32x4 operator()(int block, int step) const {
      return read_b128(of_step[step % 2] + (step / 2 * block_bytes + block * 512));
    }
  };

  // The A operands of O^T = V^T P^T. Lane group g = l / 32, element j stands for key
  // 16 step + 8 (j / 4) + 4 g + j % 4, the order in which S^T's accumulators hold the keys. The
  // operand's row is head-dim element 32 block + l % 32.
  struct Values {
#if FLYDSL_GFX950
    lds_ptr<const char> of_half[2];
    FLYDSL_DEVICE Values(lds_ptr<const char> tile, u32 lane) {
      const u32 line = lane % 16 / 4;  // key % 4
      const u32 first =
          line * line_bytes + (lane / 32 ^ line) * 64 + (lane / 16 % 2 * 16 + lane % 4 * 4) * 2;
      of_half[0] = tile + first;
      of_half[1] = tile + (first ^ 128);
    }
    FLYDSL_DEVICE u32x4 operator()(int step, int block) const {
      const int at = block * block_bytes + step * 256;
      const u32x2 low = read_transposed_b64(of_half[0] + at);
      const u32x2 high = read_transposed_b64(of_half[1] + at);
      return u32x4{low[0], low[1], high[0], high[1]};
    }
#else
    // Element by element: that of key 4 g + n, in line n, is in slot g ^ n % 2 of those from (2 half) ^ (n & 2) on.
    lds_ptr<const char> of_parity[2];  // of n
    FLYDSL_DEVICE Values(lds_ptr<const char> tile, u32 lane) {
      const u32 first = lane / 32 * 64 + lane % 32 * 2;
      of_parity[0] = tile + first;
      of_parity[1] = tile + (first ^ 64);
    }
    FLYDSL_DEVICE u32x4 operator()(int step, int block) const {
      const auto column = [&](int half) FLYDSL_INLINED {
        const auto element = [&](int n) FLYDSL_INLINED {
          return of_parity[n % 2] + (block * block_bytes + step * 256 + n * line_bytes +
                                     ((2 * half) ^ (n & 2)) * 64);
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
