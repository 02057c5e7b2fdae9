// One compute unit in detail: in-order waves on 4 SIMDs, 4-clock slots.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "emulator/engine/program_impl.h"
#include "emulator/timing/constants.h"
#include "emulator/timing/memory_port.h"
#include "emulator/timing/trace.h"

namespace flydsl::emu::timing {

class CostTable;

// Why a wave could not issue its next instruction in a slot. Each slot of a wave that does not
// issue is charged to exactly one reason, to the instruction that waits.
enum class Stall : uint8_t {
  kNone,          // issued
  kArbitration,   // another wave of the SIMD issued in that category
  kDependency,    // result of a VALU, SALU or transcendental instruction
  kMatrixResult,  // result of an MFMA
  kMatrixBusy,    // the matrix unit runs another MFMA
  kVectorBusy,    // the vector unit, incl. the packed-FP32 rule under an MFMA
  kVectorMemory,  // s_waitcnt vmcnt
  kLds,           // s_waitcnt lgkmcnt for LDS
  kScalarMemory,  // s_waitcnt lgkmcnt for scalar loads
  kLdsQueue,      // the LDS pipe takes no more
  kMemoryQueue,   // the vector memory path takes no more
  kBarrier,
  kFetch,  // instruction cache, branch
  kNop,    // s_nop, s_sleep
  kCount
};
const char *stall_name(Stall stall);

struct OpProfile {
  uint64_t issued = 0;
  double stall_clocks[unsigned(Stall::kCount)] = {};
};

// Of a SyncUse (trace.h): a load is back, what a store or atomic wrote is there for others.
struct SyncClock {
  double clock = 0;
  double latency = 0;  // since it was issued
};
using SyncClocks = std::vector<std::vector<SyncClock>>;  // of a work-group, by wave

// When a wave goes on that first asks at `asked` for a value that is there at `there`, by loads that take `latency` and
// `poll_clocks` from one to the next. Once the value is there, half of such a round goes by before it is asked for
// again, on average.
double noticed(double there, double asked, double latency, double poll_clocks);

struct TimelineEvent {
  double begin = 0, end = 0;  // clocks: of the unit; of memory instructions until they are complete
  uint32_t op = 0;
  uint16_t simd = 0, wave = 0;  // wave: resident * waves per group + wave in group
  uint8_t category = 0;         // costs.h Category
};

struct ComputeUnitResult {
  double clocks = 0;  // until the last wave ended
  uint64_t wave_instructions = 0;
  // Busy clocks, summed over the 4 SIMDs where there are 4 of the unit.
  double matrix_busy = 0, vector_busy = 0, transcendental_busy = 0, scalar_busy = 0, lds_busy = 0,
         vector_memory_busy = 0;
  double stall_clocks[unsigned(Stall::kCount)] = {};  // summed over the waves
  double wave_clocks = 0;                             // from begin to end of each wave, summed
  std::vector<SyncClocks> syncs;                      // by work-group as group_end, when asked
  std::vector<double> group_end;   // clock at which each work-group ended: residents, successors
  std::vector<OpProfile> profile;  // by operation, when asked
  std::vector<TimelineEvent> timeline;  // when asked
};

struct ComputeUnitOptions {
  bool profile = false;
  bool timeline = false;
  size_t timeline_limit = 1u << 20;
  // Each starts when a work-group before it has ended, on the SIMDs of that one: the same number of
  // waves is expected.
  std::vector<const GroupTrace *> successors;
  bool syncs = false;
  // When the value that a load of the first resident waits for (SyncUse `sync` of `wave`) is there, for noticed();
  // null: at once.
  std::function<double(uint32_t wave, uint32_t sync)> awaited;
  double poll_clocks = 0;
  // The code that these work-groups execute is in the instruction cache, if it fits.
  bool warm_code = false;
};

// `residents` start at clock 0 together. Throws UnknownCost (costs.h) for an instruction without a
// cost. The same input gives the same output.
ComputeUnitResult simulate_compute_unit(const Program &program,
                                        const std::vector<const GroupTrace *> &residents,
                                        const Constants &constants, MemoryPort &memory,
                                        const ComputeUnitOptions &options = {});
// The same with a table made before, for many simulations of one program.
ComputeUnitResult simulate_compute_unit(const Program &program, const CostTable &costs,
                                        const std::vector<const GroupTrace *> &residents,
                                        const Constants &constants, MemoryPort &memory,
                                        const ComputeUnitOptions &options = {});

}  // namespace flydsl::emu::timing
