// Reductions over a team: neighbouring threads of a work-group, a power of two of them, that share a row.
#pragma once

#include "common/threads.hip.h"

namespace flydsl::kernels {

// Every thread of the work-group makes the same calls; each gets its team's result, the same bits in every thread.
template <u32 kThreads, u32 kTeam>
class Team {
 public:
  static_assert((kTeam & (kTeam - 1)) == 0 && kThreads % kTeam == 0, "teams fill a work-group");

  FLYDSL_DEVICE float sum(float value) {
    return bits_as<float>(reduce(bits_as<u32>(value), [](u32 a, u32 b) {
      return bits_as<u32>(bits_as<float>(a) + bits_as<float>(b));
    }));
  }
  FLYDSL_DEVICE u32 largest(u32 value) {
    return reduce(value, [](u32 a, u32 b) { return a > b ? a : b; });
  }

 private:
  static constexpr u32 kWavesOfTeam = kTeam > kWaveSize ? kTeam / kWaveSize : 1;
  static constexpr u32 kWaves = kThreads > kWaveSize ? kThreads / kWaveSize : 1;

  template <class Combine>
  FLYDSL_DEVICE u32 reduce(u32 value, Combine combine) {
#pragma unroll
    for (u32 mask = 1; mask < (kTeam < kWaveSize ? kTeam : kWaveSize); mask *= 2)
      value = combine(value, lane_xor_bits(value, mask));
    if constexpr (kWavesOfTeam > 1) {
      // Two turns: who still reads one is at most one barrier behind who writes the other.
      FLYDSL_SHARED static u32 of_waves[2][kWaves];
      turn_ ^= 1;
      const u32 wave = thread_index() / kWaveSize;
      if (thread_index() % kWaveSize == 0) of_waves[turn_][wave] = value;
      group_barrier();
      const u32 first = wave / kWavesOfTeam * kWavesOfTeam;
      value = of_waves[turn_][first];
#pragma unroll
      for (u32 i = 1; i < kWavesOfTeam; ++i) value = combine(value, of_waves[turn_][first + i]);
    }
    return value;
  }

  u32 turn_ = 0;
};

}  // namespace flydsl::kernels
