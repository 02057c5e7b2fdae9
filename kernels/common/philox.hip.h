// Philox4x32-10, the counter-based random numbers of Salmon et al. 2011, "Parallel random numbers: as
// easy as 1, 2, 3".
#pragma once

#include "common/vectors.hip.h"

namespace flydsl::kernels {

FLYDSL_DEVICE u32x4 philox_4x32_10(u64 key, u32x4 counter) {
  u32 key_0 = static_cast<u32>(key), key_1 = static_cast<u32>(key >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const u64 product_0 = static_cast<u64>(counter[0]) * 0xd2511f53u;
    const u64 product_1 = static_cast<u64>(counter[2]) * 0xcd9e8d57u;
    counter =
        u32x4{static_cast<u32>(product_1 >> 32) ^ counter[1] ^ key_0, static_cast<u32>(product_1),
              static_cast<u32>(product_0 >> 32) ^ counter[3] ^ key_1, static_cast<u32>(product_0)};
    key_0 += 0x9e3779b9u;
    key_1 += 0xbb67ae85u;
  }
  return counter;
}

}  // namespace flydsl::kernels
