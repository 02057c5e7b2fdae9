// Passes of one LDS instruction through the banks.
//
// Groups of lanes go through one after the other. Lanes of a group that want different words of one
// bank take further passes; equal words are read once.
#pragma once

#include <cstdint>

namespace flydsl::emu::timing {

struct LdsPasses {
  uint16_t passes = 0;      // conflicts included
  uint16_t ideal = 0;       // without conflicts
  uint16_t pass_bytes = 0;  // the most that a pass moves: 64 or 32 banks of 4 bytes
};

// `address`: byte offsets of 64 lanes, `mask` the lanes that take part, `bytes` a lane. One address
// of read2 and write2 at a time. Atomics go as writes do.
LdsPasses lds_passes(bool read, uint32_t bytes, uint64_t mask, const uint64_t *address);

// A copy to LDS: lanes land side by side.
LdsPasses lds_copy_passes(uint32_t bytes, uint64_t mask);

}  // namespace flydsl::emu::timing
