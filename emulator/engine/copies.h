// Copies to LDS in flight: when they land under each memory model (dispatch.h).
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/isa/op.h"

namespace flydsl::emu {

// Distance of two lanes' data in LDS: copies of 3 dwords skip the fourth (CDNA4 ISA, "Memory Buffer
// Load to LDS").
constexpr uint32_t lane_stride(uint32_t bytes) {
  return bytes == 12 ? 16 : bytes;
}

struct Copy {
  uint64_t issue;     // counts the copies of the work-group
  uint32_t sequence;  // value of Wave::vm_issued after its issue
  uint64_t lds_offset;
  uint64_t mask;
  uint32_t bytes;  // a lane
  std::vector<uint8_t> data;
};

// Lands the oldest copy of `wave`; false when there is none.
bool land_oldest_copy(Wave &wave);

// Every wave of the work-group is blocked, some of them (Stop::kWait) by an s_waitcnt: lands all
// copies issued no later than the youngest that is awaited, in the order of issue, and lets the
// waiting waves go on.
void land_awaited_copies(const std::vector<Wave *> &waves);

}  // namespace flydsl::emu
