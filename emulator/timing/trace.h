// What the timing model keeps of an executed work-group. Recorded once by the functional engine
// (record.h), replayed by the model as often as wanted with any constants.
#pragma once

#include <cstdint>
#include <vector>

namespace flydsl::emu::timing {

// Vector and scalar memory requests leave the compute unit as lines of this size.
constexpr uint32_t kLineBytes = 128;
// Scratch has no addresses that other waves share; its lines are numbered from here on.
constexpr uint64_t kScratchLines = uint64_t(1) << 56;

enum class MemoryKind : uint8_t {
  kLdsRead,
  kLdsWrite,
  kLdsAtomic,
  kLdsOther,  // permute, swizzle: the LDS pipe without its banks
  kGlobalLoad,
  kGlobalStore,
  kGlobalAtomic,
  kCopyToLds,  // global -> LDS without registers
  kScalarLoad,
  kCache,  // write-backs and invalidations
};

// One memory instruction of one wave. `phases`: passes through the LDS banks, conflicts included
// (lds_conflicts.h); 0 for what does not touch LDS. Lines: distinct, in the order in which the lanes
// name them: entries [first_line, first_line + line_count) of WaveTrace::lines.
struct MemoryUse {
  uint32_t op = 0;    // the operation's index in Program::ops
  uint32_t step = 0;  // index in WaveTrace::steps
  uint32_t first_line = 0;
  uint16_t line_count = 0;
  uint16_t phases = 0;
  uint16_t ideal_phases = 0;  // without conflicts
  uint16_t lanes = 0;
  uint16_t bytes_per_lane = 0;
  uint16_t phase_bytes = 0;  // what a pass moves at most
  MemoryKind kind = MemoryKind::kLdsRead;
  bool device_scope = false;  // a load or store (sc1) that goes past the L1 and the XCD's L2
};

// A memory instruction that may order work-groups: a dword loaded at device scope, stored or updated, at one
// address for all lanes.
struct SyncUse {
  uint64_t address = 0;
  uint32_t memory = 0;  // index in WaveTrace::memory
  bool load = false;
};

// Step of a wave: the operation's index in Program::ops; kNoLanes when EXEC was 0.
constexpr uint32_t kNoLanes = uint32_t(1) << 31;

struct WaveTrace {
  std::vector<uint32_t> steps;
  std::vector<MemoryUse> memory;  // of the memory instructions among `steps`, in order
  std::vector<uint64_t> lines;    // line addresses: byte address / kLineBytes
  std::vector<SyncUse> syncs;     // in order
};

struct GroupTrace {
  uint32_t id[3] = {};
  uint64_t linear_id = 0;  // x fastest
  std::vector<WaveTrace> waves;
  uint64_t mfma_flops = 0;
  uint64_t wave_instructions = 0;
  bool truncated = false;  // recording stopped at a budget; `steps` is a prefix
};

}  // namespace flydsl::emu::timing
