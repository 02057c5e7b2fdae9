// Which weights of a tile are kept, with fewer multiplications than Philox's 20 for four keys.
//
// The counter is (quadruple of keys, row), two words each. Of the four products of its first two rounds two
// depend on the row and two on the quadruple only. A lane takes those of its row once a tile, and those of one of 8
// quadruples, which it hands to the others by DPP.
#pragma once

#include "attention_forward/features/aside.hip.h"
#include "attention_forward/general/dropout.hip.h"

namespace flydsl::kernels {

// In each lane the value of lane i of its 16 (row_newbcast).
template <int i>
FLYDSL_DEVICE u32 of_lane_in_16(u32 value) {
  return __builtin_amdgcn_update_dpp(0, value, 0x150 + i, 0xf, 0xf, false);
}

// The same for all rows of a wave: the library gives these instances problems of fewer than 2^32 rows in all.
struct DropoutScalars {
  DropoutState state;
  u32 threshold;
  u32 unused;
};
FLYDSL_DEVICE DropoutScalars dropout_scalars() {
  return {dropout_state(), fresh_arguments()->dropout_threshold, 0};
}
FLYDSL_DEVICE u32 dropout_row(const GeneralWork &work, i32 row) {
  const Arguments args = fresh_arguments();
  return (work.batch * static_cast<u32>(args->heads_q) + work.head) * static_cast<u32>(args->seq_q) +
         static_cast<u32>(row);
}

// What a lane's row, and one of its quadruples, give to the counter's words after two rounds.
struct RowWords {
  u32 to_0, to_2, all_3;
  FLYDSL_DEVICE RowWords(u64 seed, u32 row, u32 high_of_keys) {
    const u64 first = philox_product(row, kPhiloxOf2);
    const u32 word_0 = static_cast<u32>(first >> 32) ^ high_of_keys ^ philox_key(seed, 0, 0);
    const u64 second = philox_product(word_0, kPhiloxOf0);
    to_0 = static_cast<u32>(first) ^ philox_key(seed, 0, 1);
    to_2 = static_cast<u32>(second >> 32) ^ philox_key(seed, 1, 1);
    all_3 = static_cast<u32>(second);
  }
};
struct KeyWords {
  u32 to_0, all_1, to_2;
  FLYDSL_DEVICE KeyWords(u64 seed, u32 low_of_keys) {
    const u64 first = philox_product(low_of_keys, kPhiloxOf0);
    const u64 second =
        philox_product(static_cast<u32>(first >> 32) ^ philox_key(seed, 1, 0), kPhiloxOf2);
    to_0 = static_cast<u32>(second >> 32);
    all_1 = static_cast<u32>(second);
    to_2 = static_cast<u32>(first);
  }
};

// Of the lane's quadruples begin + 0, 2, ..., 14. `row`: its words where the quadruples' numbers have the upper word of the
// tile's first, `same_high` where all have.
template <int quadruple>
FLYDSL_DEVICE void drop_quadruples(const DropoutScalars &scalars, u64 begin, u32 row_number,
                                   bool same_high, const RowWords &row, const KeyWords &keys,
                                   u32x4 (&p)[4]) {
  if constexpr (quadruple < 8) {
    const u64 seed = scalar_here(scalars.state.seed);  // else its words for each round would be kept
    RowWords of_row = row;
    if (FLYDSL_UNLIKELY(!same_high)) {
      const u64 number = begin + 2 * quadruple;
      of_row = RowWords(seed, row_number, static_cast<u32>(number >> 32));
    }
    const u32x4 words = philox_4x32<2, kPhiloxRounds>(
        seed,
        u32x4{of_lane_in_16<quadruple>(keys.to_0) ^ of_row.to_0, of_lane_in_16<quadruple>(keys.all_1),
              of_lane_in_16<quadruple>(keys.to_2) ^ of_row.to_2, of_row.all_3});
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      u32x4 &of_step = p[quadruple / 2];
      const int at = quadruple % 2 * 2 + pair;
      const u32 weights = of_step[at];
      const u32 low = words[2 * pair] >= scalars.threshold ? weights : 0;
      const u32 high = words[2 * pair + 1] >= scalars.threshold ? weights : 0;
      of_step[at] = (low & 0xffff) | (high & 0xffff0000u);
    }
    __builtin_amdgcn_sched_barrier(0);  // one at a time: eight would not fit the registers
    drop_quadruples<quadruple + 1>(scalars, begin, row_number, same_high, row, keys, p);
  }
}

// As drop_weights.
FLYDSL_DEVICE void drop_weights_of(const DropoutScalars &scalars, u32 row_number, u32 lane,
                                   i32 tile_begin, u32x4 (&p)[4]) {
  const u64 begin = scalars.state.offset + static_cast<u32>(tile_begin) / 4;
  const u64 last = begin + (kKeysOfTile / 4 - 1);
  const u32 high = static_cast<u32>(begin >> 32);
  const u64 seed = scalar_here(scalars.state.seed);
  const KeyWords keys(seed, static_cast<u32>(begin) + lane / 32 + lane % 8 * 2);
  const RowWords row(seed, row_number, high);
  drop_quadruples<0>(scalars, begin + lane / 32, row_number, high == static_cast<u32>(last >> 32), row,
                     keys, p);
}

}  // namespace flydsl::kernels
