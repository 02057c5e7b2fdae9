// What the L2 of an XCD, the MALL and HBM make of the requests of all compute units: found from the
// streams of the work-groups that run at the same time, kept per instruction of the program.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "emulator/timing/constants.h"
#include "emulator/timing/trace.h"

namespace flydsl::emu::timing {

// Where a line that misses the L1 is found.
enum class Source : uint8_t {
  kL2,
  kL2Late,  // in the L2, but on its way there for another request: the traffic of a hit, the latency of a miss
  kMall,
  kHbm,
  kCount
};

// Of one instruction of the program.
struct OpService {
  std::array<double, unsigned(Source::kCount)> share = {};  // of its lines that miss the L1; sums to 1
  double l1_share = 0;    // of all its lines: found in the L1
  double write_back = 0;  // lines that HBM has to take in the end, for each line stored
  uint64_t lines = 0;     // seen
};

struct MemoryProfile {
  std::vector<OpService> ops;  // by operation; `lines` 0: not seen
  OpService of_others;         // an operation that no stream has reached: the mean of all
  double hit_rate = 0;         // of the L2, all lines that reach it
  uint32_t streams = 0;
  uint64_t steps = 0;  // of each wave that the streams cover at most
};

struct MemoryStreams {
  // Work-groups that are on the compute units of one XCD at a time, by compute unit.
  std::vector<std::vector<const GroupTrace *>> compute_units;
  // Work-groups that run on the other XCDs meanwhile, one for each, beside the first of
  // `compute_units`: what they touch, too, comes from HBM once and from the MALL otherwise.
  std::vector<const GroupTrace *> other_xcds;
  uint32_t xcds = 8;  // that share the MALL
  // Bytes of all memory that the launch may touch. What fits the MALL is there from the launch
  // before: benchmarks repeat a launch on the same data.
  double footprint_bytes = 0;
};

// The constants that profile_memory() looks at: equal ones give an equal profile.
std::vector<double> memory_profile_key(const Constants &constants);

// The streams advance in lock-step: the n-th instruction of each wave at the same time. Where they
// are truncated, what follows the shortest one counts only for instructions not seen before.
MemoryProfile profile_memory(const MemoryStreams &streams, size_t op_count,
                             const Constants &constants);

}  // namespace flydsl::emu::timing
