// Philox4x32-10 (Salmon et al. 2011), from the paper: ten rounds of two 32-bit multiplications whose
// halves are mixed and crossed over, the key raised by the Weyl constants between rounds.
#pragma once

#include <array>
#include <cstdint>

namespace flydsl::verify {

inline std::array<uint32_t, 4> philox_4x32_10(std::array<uint32_t, 2> key,
                                              std::array<uint32_t, 4> counter) {
  for (int round = 0; round < 10; ++round) {
    if (round > 0) {
      key[0] += 0x9E3779B9;
      key[1] += 0xBB67AE85;
    }
    const uint64_t left = uint64_t{0xD2511F53} * counter[0];
    const uint64_t right = uint64_t{0xCD9E8D57} * counter[2];
    counter = {
        static_cast<uint32_t>(right >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(right),
        static_cast<uint32_t>(left >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(left)};
  }
  return counter;
}

}  // namespace flydsl::verify
