// Selection digit by digit, and sorting, by the threads of a work-group.
//
// From the highest digit of the order down, then of the index, a histogram in LDS says in which digit the K-th best candidate lies,
// until those in it are all wanted.
#pragma once

#include "common/atomics.hip.h"
#include "topk/sources.hip.h"

namespace flydsl::kernels {

constexpr u32 kDigitBits = 11, kBins = 1u << kDigitBits;

template <u32 kSorted_>
struct SelectMemory {
  static constexpr u32 kSorted = kSorted_;
  alignas(32) u32 bins[kBins];
  u32 of_waves[32];
  u32 digit, above, inside, slots;
  Candidate sorted[kSorted];
};

template <u32 kThreads, class Memory>
class Selector {
 public:
  FLYDSL_DEVICE Selector(lds_ptr<Memory> memory) : memory_(memory) {}

  // The least of the `k` best candidates, or a bound below it that no other candidate reaches; or that only looks at the bits from
  // `lowest` on. `k` is at least 1 and at most their number.
  template <class Source>
  FLYDSL_DEVICE Candidate least_of_best(const Source &source, u32 k, u32 order_bits,
                                        u32 lowest = 0) {
    Candidate prefix = 0;
    u32 low = order_bits + 32;  // bits below the prefix
    while (low > lowest) {
      const u32 bits = low > 32 ? (low - 32 < kDigitBits ? low - 32 : kDigitBits)
                                : (low < kDigitBits ? low : kDigitBits);
      const u32 next = low - bits;
      for (u32 bin = thread_index(); bin < kBins; bin += kThreads) memory_->bins[bin] = 0;
      group_barrier();
      source.for_each([&](Candidate candidate) FLYDSL_INLINED {
        if (low < 64 && candidate >> low != prefix >> low) return;
        atomic_add(
            &memory_->bins[static_cast<u32>(candidate >> next) & (kBins - 1) & ((1u << bits) - 1)],
            1);
      });
      group_barrier();
      find_digit(k);
      const u32 digit = wave_uniform(memory_->digit), inside = wave_uniform(memory_->inside);
      k -= wave_uniform(memory_->above);
      prefix |= u64{digit} << next;
      low = next;
      group_barrier();
      if (inside == k) break;
    }
    return prefix;
  }

  // Puts the candidates from `least` on into put(slot, candidate), in any order, and counts them. Slots from `most` on are left
  // out: there are none unless two candidates are equal, as where another call has the same workspace.
  template <class Source, class Put>
  FLYDSL_DEVICE u32 collect(const Source &source, Candidate least, u32 most, Put put) {
    if (thread_index() == 0) memory_->slots = 0;
    group_barrier();
    const auto take = [&](Candidate candidate) FLYDSL_INLINED {
      if (candidate < least) return;
      const u32 slot = atomic_add(&memory_->slots, 1);
      if (slot < most) put(slot, candidate);
    };
    if constexpr (requires { source.for_each_from(least, take); })
      source.for_each_from(least, take);
    else
      source.for_each(take);
    group_barrier_of_memory();
    return wave_uniform(memory_->slots);
  }

 private:
  // The bin in which the k-th largest lies.
  FLYDSL_DEVICE void find_digit(u32 k) {
    // Thread t has kOfThread bins from number t kOfThread on, counted from the highest.
    constexpr u32 kOfThread = kBins / kThreads;
    const u32 thread = thread_index(), lane = thread % kWaveSize, wave = thread / kWaveSize;
    const u32 high = kBins - 1 - kOfThread * thread;
    const auto bins = *(lds_ptr<const vec<u32, kOfThread>>)&memory_->bins[high + 1 - kOfThread];
    u32 counts[kOfThread], own = 0;
#pragma unroll
    for (u32 bin = 0; bin < kOfThread; ++bin) own += counts[bin] = bins[kOfThread - 1 - bin];
    u32 sum = own;
#pragma unroll
    for (u32 step = 1; step < kWaveSize; step *= 2) {
      const u32 before = lane_bits(sum, lane >= step ? lane - step : lane);
      if (lane >= step) sum += before;
    }
    if (lane == kWaveSize - 1) memory_->of_waves[wave] = sum;
    group_barrier();
    for (u32 w = 0; w < wave; ++w) sum += memory_->of_waves[w];
    u32 before = sum - own;
    if (before < k && k <= sum) {
#pragma unroll
      for (u32 bin = 0; bin < kOfThread; ++bin) {
        if (before < k && k <= before + counts[bin]) {
          memory_->digit = high - bin;
          memory_->above = before;
          memory_->inside = counts[bin];
        }
        before += counts[bin];
      }
    }
    group_barrier();
  }

  lds_ptr<Memory> memory_;
};

// Sorts `count` candidates, the best first, with the threads of the work-group (bitonic, Batcher 1968; what would lie past
// the end is worse than everything and stays there).
template <u32 kThreads, class Pointer, class Barrier>
FLYDSL_DEVICE void sort_candidates(Pointer candidates, u32 count, Barrier barrier) {
  u32 size = 1;
  while (size < count) size *= 2;
  for (u32 span = 2; span <= size && span != 0; span *= 2) {
    for (u32 step = span / 2, shift = static_cast<u32>(__builtin_ctz(span)) - 1; step > 0;
         step /= 2, --shift) {
      barrier();
      for (u32 pair = thread_index(); pair < size / 2; pair += kThreads) {
        const u32 block = pair >> shift, place = pair & (step - 1);
        // The first step of a span compares mirrored places, so that all order alike.
        const u32 a = block * 2 * step + place;
        const u32 b = step == span / 2 ? block * 2 * step + 2 * step - 1 - place : a + step;
        if (b >= count) continue;
        const Candidate x = candidates[a], y = candidates[b];
        if (x >= y) continue;
        candidates[a] = y;
        candidates[b] = x;
      }
    }
  }
  barrier();
}

}  // namespace flydsl::kernels
