// What one wave needs of the engine besides its registers: region checks, faults, copies to LDS in
// flight.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "emulator/engine/copies.h"
#include "emulator/engine/dispatch.h"
#include "emulator/engine/program_impl.h"
#include "emulator/isa/op.h"

namespace flydsl::emu {

// The AQL dispatch packet that kernels may read through the dispatch pointer (HSA specification,
// "kernel dispatch packet"), as far as user code looks at it.
struct DispatchPacket {
  uint16_t header = 0, setup = 0, workgroup_size[3] = {}, reserved0 = 0;
  uint32_t grid_size[3] = {}, private_segment_size = 0, group_segment_size = 0;
  uint64_t kernel_object = 0, kernarg_address = 0, reserved1 = 0, completion_signal = 0;
};
static_assert(sizeof(DispatchPacket) == 64);

namespace checks {
class Observer;
}

// What checks found while they only warn; shared by the host threads of a dispatch.
struct Reports {
  bool warn = false;
  std::mutex mutex;
  std::vector<std::string> lines;
  std::set<std::pair<std::string, uint64_t>> seen;  // check and operation
};

// Shared by the waves of one work-group and reused for the next.
struct Group {
  const Kernel *kernel = nullptr;
  const Program *program = nullptr;
  const RegionSnapshot *regions = nullptr;
  const DispatchPacket *packet = nullptr;
  MemoryModel model = MemoryModel::kNominal;
  uint32_t id[3] = {};
  uint32_t initial_scalars = 0;  // s0 up to here are set at launch
  uint64_t copies_issued = 0;
  std::string fault;
  Reports *reports = nullptr;
  checks::Observer *observer = nullptr;  // null: no checks
};

struct Memory {
  Group *group = nullptr;
  std::deque<Copy> copies;  // oldest first
  uint64_t awaited = 0;     // Stop::kWait: the youngest copy that the s_waitcnt covers
};

// "kernel: work-group (0,0,0) wave 1 lane 5 at 0x1f40 (file.h:12) `v_mov_b32 v0, v1`"
std::string place_of(const Wave &wave, const Op &op, int lane);

}  // namespace flydsl::emu
