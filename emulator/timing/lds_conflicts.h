// Passes of one LDS instruction through the banks.
//
// The LDS has 64 banks of 4 bytes. A wide access goes through in groups of lanes; lanes of a group
// that want different words of one bank take further passes, equal words are broadcast.
#pragma once

#include <cstdint>
#include <string_view>

namespace flydsl::emu::timing {

struct LdsPasses {
  uint16_t passes = 0;  // conflicts included
  uint16_t ideal = 0;
  uint16_t pass_bytes = 256;  // what a pass moves at most: 64 banks, or 32
};

// `address`: byte offsets of 64 lanes, `mask` the lanes that take part. `mnemonic` without encoding
// suffix, `bytes` a lane.
LdsPasses lds_passes(std::string_view mnemonic, uint32_t bytes, uint64_t mask,
                     const uint64_t *address);

// A copy to LDS: lanes land side by side.
LdsPasses lds_copy_passes(uint32_t bytes, uint64_t mask);

}  // namespace flydsl::emu::timing
