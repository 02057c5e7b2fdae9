// Memory beyond LDS as one compute unit sees it. compute_unit issues requests in the order of time;
// a port answers when the data is there. Clocks are those of the shader clock, from the start of the
// simulated compute unit.
#pragma once

#include <cstdint>

#include "emulator/timing/trace.h"

namespace flydsl::emu::timing {

// Which request of which work-group: lets a port look up what memory_system found out about it
// (L2 hit, miss, ...) from the streams of all compute units.
struct RequestOrigin {
  uint32_t resident;  // index of the work-group on the compute unit
  uint32_t wave;
  uint32_t memory_index;  // index in WaveTrace::memory
};

class MemoryPort {
 public:
  virtual ~MemoryPort() = default;
  // A vector memory instruction whose addresses are ready at `clock`. Returns when it is complete:
  // data in registers or LDS for loads, acknowledged for stores.
  virtual double vector(double clock, const RequestOrigin &origin, const MemoryUse &use,
                        const uint64_t *lines) = 0;
  virtual double scalar(double clock, const RequestOrigin &origin, const MemoryUse &use,
                        const uint64_t *lines) = 0;
  // Instruction cache line `line`: offset in the code / kLineBytes.
  virtual double fetch(double clock, uint64_t line) = 0;
};

}  // namespace flydsl::emu::timing
