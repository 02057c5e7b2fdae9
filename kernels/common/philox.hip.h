// Philox4x32-10, the counter-based random numbers of Salmon et al. 2011, "Parallel random numbers: as
// easy as 1, 2, 3".
#pragma once

#include "common/vectors.hip.h"

namespace flydsl::kernels {

constexpr int kPhiloxRounds = 10;
// What words 0 and 2 of the counter are multiplied by.
constexpr u32 kPhiloxOf0 = 0xd2511f53u, kPhiloxOf2 = 0xcd9e8d57u;

// Word 0 or 1 of the key in round `round`, the first one being 0.
FLYDSL_DEVICE u32 philox_key(u64 key, int word, int round) {
  return static_cast<u32>(key >> 32 * word) +
         static_cast<u32>(round) * (word == 0 ? 0x9e3779b9u : 0xbb67ae85u);
}

FLYDSL_DEVICE u64 philox_product(u32 word, u32 with) {
  return static_cast<u64>(word) * with;
}

// Rounds `first` to `end` - 1.
template <int first, int end>
FLYDSL_DEVICE u32x4 philox_4x32(u64 key, u32x4 counter) {
#pragma unroll
  for (int round = first; round < end; ++round) {
    const u64 product_0 = philox_product(counter[0], kPhiloxOf0);
    const u64 product_1 = philox_product(counter[2], kPhiloxOf2);
    counter = u32x4{static_cast<u32>(product_1 >> 32) ^ counter[1] ^ philox_key(key, 0, round),
                    static_cast<u32>(product_1),
                    static_cast<u32>(product_0 >> 32) ^ counter[3] ^ philox_key(key, 1, round),
                    static_cast<u32>(product_0)};
  }
  return counter;
}
FLYDSL_DEVICE u32x4 philox_4x32_10(u64 key, u32x4 counter) {
  return philox_4x32<0, kPhiloxRounds>(key, counter);
}

}  // namespace flydsl::kernels
