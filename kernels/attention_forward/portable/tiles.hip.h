// The tiles of the portable instances in LDS, and how they get there: keys as rows, values as columns, so that both are read as
// operands of a product over neighbours. Rows have any length and alignment and are padded with zeros to the class's head dims.
#pragma once

#include "attention_forward/general/partial_rows.hip.h"
#include "attention_forward/general/work.hip.h"
#include "attention_forward/queries.hip.h"
#include "common/matrix_tile.hip.h"

namespace flydsl::kernels::portable {

constexpr int kKeys = 32;  // of a tile

// 16 query rows a wave. Queries stay in registers where these hold them beside the outputs, else in LDS beside the tile.
template <int head_dim_qk_, int head_dim_v_>
struct Shape {
  static constexpr int head_dim_qk = head_dim_qk_, head_dim_v = head_dim_v_;
  static constexpr int waves = head_dim_qk + head_dim_v > 448 ? 2 : 4;  // 64 KiB of LDS
  static constexpr int rows = 16 * waves, threads = waves * static_cast<int>(kWaveSize);
  static constexpr bool keeps_queries = head_dim_qk + head_dim_v <= 256;
  // Lines are an odd number of 16-byte places: 16 rows of one place lie in different banks.
  static constexpr int k_pitch = 2 * head_dim_qk + 16, v_pitch = 2 * kKeys + 16;
  static constexpr int out_pitch = 2 * head_dim_v + 16;
  static constexpr int v_at = kKeys * k_pitch, tile_bytes = v_at + head_dim_v * v_pitch;
  static constexpr int q_bytes = rows * k_pitch, q_at = keeps_queries ? 0 : tile_bytes;
  static constexpr int lds_bytes = keeps_queries ? tile_bytes : tile_bytes + q_bytes;
  static_assert(!keeps_queries || q_bytes <= tile_bytes, "queries pass through the tile's place");
  static_assert(rows * out_pitch <= tile_bytes, "and so do outputs");
  static_assert(lds_bytes <= 65536);
};

// 16 bytes a thread, `pieces` of them to a row: take(row, piece) for all of `rows`.
template <int threads, int rows, int pieces, class Take>
FLYDSL_DEVICE void for_each_piece(u32 thread, Take take) {
#pragma unroll 1
  for (u32 number = thread; number < rows * pieces; number += threads)
    take(number / pieces, static_cast<i32>(number % pieces * 8));
}

template <class Element, class S>
FLYDSL_DEVICE void stage_queries(const GeneralWork &work, u32 thread, lds_ptr<char> to) {
  for_each_piece<S::threads, S::rows, S::head_dim_qk / 8>(
      thread, [&](u32 row, i32 first) FLYDSL_INLINED {
        const Arguments args = fresh_arguments();
        u32x4 q[1] = {
            load_widened<Element>(work.q_row(work.real_row(work.first_row + static_cast<i32>(row))),
                                  first, args->head_dim_qk, static_cast<Format>(args->q_format))};
        apply_sign<Element>(args->q_and, args->q_xor, q);
        write_b128(to + (row * S::k_pitch + 2 * first), q[0]);
      });
}

// Keys past the last one repeat it: their scores are masked, and memory past the tensor is never read.
template <class Element, class S>
FLYDSL_DEVICE void stage_keys(const GeneralWork &work, i32 first_key, u32 thread,
                              lds_ptr<char> to) {
  for_each_piece<S::threads, kKeys, S::head_dim_qk / 8>(
      thread, [&](u32 key, i32 first) FLYDSL_INLINED {
        const Arguments args = fresh_arguments();
        const KeyPlace place = work.place_of(work.real_key(first_key + static_cast<i32>(key)));
        write_b128(to + (key * S::k_pitch + 2 * first),
                   load_widened<Element>(work.k_row(place), first, args->head_dim_qk,
                                         static_cast<Format>(args->kv_format)));
      });
}

// A thread has eight elements of two neighbouring keys, which become neighbours; 16 threads write 64 bytes of a line.
template <class Element, class S>
FLYDSL_DEVICE void stage_values(const GeneralWork &work, i32 first_key, u32 thread,
                                lds_ptr<char> to) {
  constexpr u32 kPairs = kKeys / 2;
#pragma unroll 1
  for (u32 number = thread; number < kPairs * S::head_dim_v / 8; number += S::threads) {
    const u32 pair = number % kPairs;
    const i32 first = static_cast<i32>(number / kPairs * 8);
    u32x4 of_key[2];
#pragma unroll
    for (u32 i = 0; i < 2; ++i) {
      const Arguments args = fresh_arguments();
      const KeyPlace place =
          work.place_of(work.real_key(first_key + static_cast<i32>(2 * pair + i)));
      of_key[i] = load_widened<Element>(work.v_row(place), first, args->head_dim_v - work.column,
                                        static_cast<Format>(args->kv_format));
    }
#pragma unroll
    for (u32 i = 0; i < 8; ++i) {
      const u32 shift = i % 2 * 16;
      const u32 low = of_key[0][i / 2] >> shift & 0xffff, high = of_key[1][i / 2] >> shift << 16;
      *(lds_ptr<u32>)(to + ((first + i) * S::v_pitch + 4 * pair)) = low | high;
    }
  }
}

}  // namespace flydsl::kernels::portable
