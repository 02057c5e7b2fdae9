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
    float values[1] = {value};
    sums(values);
    return values[0];
  }
  // Several sums, with one barrier.
  template <u32 kCount>
  FLYDSL_DEVICE void sums(float (&values)[kCount]) {
    u32 bits[kCount];
#pragma unroll
    for (u32 n = 0; n < kCount; ++n) bits[n] = bits_as<u32>(values[n]);
    reduce(bits, [](u32 a, u32 b) { return bits_as<u32>(bits_as<float>(a) + bits_as<float>(b)); });
#pragma unroll
    for (u32 n = 0; n < kCount; ++n) values[n] = bits_as<float>(bits[n]);
  }
  FLYDSL_DEVICE u32 largest(u32 value) {
    u32 values[1] = {value};
    reduce(values, [](u32 a, u32 b) { return a > b ? a : b; });
    return values[0];
  }

 private:
  static constexpr u32 kWavesOfTeam = kTeam > kWaveSize ? kTeam / kWaveSize : 1;
  static constexpr u32 kWaves = kThreads > kWaveSize ? kThreads / kWaveSize : 1;

  template <u32 kCount, class Combine>
  FLYDSL_DEVICE void reduce(u32 (&values)[kCount], Combine combine) {
#pragma unroll
    for (u32 mask = 1; mask < (kTeam < kWaveSize ? kTeam : kWaveSize); mask *= 2) {
#pragma unroll
      for (u32 n = 0; n < kCount; ++n)
        values[n] = combine(values[n], lane_xor_bits(values[n], mask));
    }
    if constexpr (kWavesOfTeam > 1) {
      // Two turns: who still reads one is at most one barrier behind who writes the other. What a thread reads is neighbours,
      // so that it takes few instructions.
      constexpr u32 kTogether = kWavesOfTeam < 4 ? kWavesOfTeam : 4;
      using Together = vec<u32, kTogether>;
      FLYDSL_SHARED static Together of_waves[2][kCount][kWaves / kTogether];
      turn_ ^= 1;
      const u32 wave = thread_index() / kWaveSize;
      if (thread_index() % kWaveSize == 0) {
#pragma unroll
        for (u32 n = 0; n < kCount; ++n) ((lds_ptr<u32>)&of_waves[turn_][n])[wave] = values[n];
      }
      group_barrier();
      const u32 first = wave / kWavesOfTeam * (kWavesOfTeam / kTogether);
#pragma unroll
      for (u32 n = 0; n < kCount; ++n) {
#pragma unroll
        for (u32 i = 0; i < kWavesOfTeam / kTogether; ++i) {
          const Together some = of_waves[turn_][n][first + i];
#pragma unroll
          for (u32 j = 0; j < kTogether; ++j)
            values[n] = i + j == 0 ? some[j] : combine(values[n], some[j]);
        }
      }
    }
  }

  u32 turn_ = 0;
};

}  // namespace flydsl::kernels
