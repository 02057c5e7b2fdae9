// TopK by radix selection, one work-group a row or a part of one. Entry: topk_select().
//
// Digit by digit from the highest, of the order and then of the index, a histogram in LDS says in which digit the K-th
// best candidate lies, until those in it are all wanted. What is as good or better then goes to LDS, or to the workspace
// where that is too small, and is sorted there. A part of a row leaves its candidates to a second launch, whose elements
// they are.
#pragma once

#include "common/atomics.hip.h"
#include "common/row_tile.hip.h"
#include "common/team.hip.h"
#include "topk/rows.hip.h"

namespace flydsl::kernels {

constexpr u32 kTopkThreads = 1024;
constexpr u32 kDigitBits = 11, kBins = 1u << kDigitBits;
constexpr u32 kSortedInLds = 4096;
constexpr u32 kMostBounded =
    64;  // of K: what reaches the bound of more takes longer to sort than to select from
constexpr u32 kCounted = 384;  // as many candidates are ranked by counting, more by sorting

// use(i, load(i)) for the thread's share of i below `count`, several loads on their way at once.
template <class Load, class Use>
FLYDSL_DEVICE void in_batches(u64 count, Load load, Use use) {
  constexpr u32 kBatch = 8;
  u64 i = thread_index();
  for (; i + (kBatch - 1) * kTopkThreads < count; i += kBatch * kTopkThreads) {
    decltype(load(i)) values[kBatch];
#pragma unroll
    for (u32 b = 0; b < kBatch; ++b) values[b] = load(i + b * kTopkThreads);
#pragma unroll
    for (u32 b = 0; b < kBatch; ++b) use(i + b * kTopkThreads, values[b]);
  }
  for (; i < count; i += kTopkThreads) use(i, load(i));
}

// Elements where they are in memory, read anew for each digit.
template <class Element>
struct RowSource {
  TopkRow<Element> row;
  u32 first, count, flip;
  template <class Use>
  FLYDSL_DEVICE void for_each(Use use) const {
    in_batches(
        count, [&](u64 i) FLYDSL_INLINED { return row.bits(first + static_cast<u32>(i)); },
        [&](u64 i, u32 bits) FLYDSL_INLINED {
          use(candidate_of(order_of<Element>(bits, flip), first + static_cast<u32>(i)));
        });
  }
};

// The same, held in registers.
template <class Element, bool kWide>
struct RegisterSource {
  static constexpr u32 kElements = 8;  // of a thread
  static constexpr u32 kOfVector = kReals16<Element>;
  using Tile = RowTile<Element, kTopkThreads, kElements / kOfVector, kWide>;
  u32 orders[kElements];
  u32 first, count;

  FLYDSL_DEVICE void load(const TopkRow<Element> &row, u32 flip) {
    Tile tile;
    tile.load(row.x() + u64{first} * kRealBytes<Element>, thread_index(), count);
#pragma unroll
    for (u32 e = 0; e < kElements; ++e) {
      const u32 i = e % kOfVector;
      const u32 word = tile.vectors[e / kOfVector][i * kRealBytes<Element> / 4];
      const u32 bits = kRealBytes<Element> == 2 ? word >> i % 2 * 16 & 0xffff : word;
      orders[e] = order_of<Element>(bits, flip);
    }
  }
  // Of the thread's elements; 0 without any.
  FLYDSL_DEVICE u32 largest_order() const {
    u32 largest = 0;
    for_each([&](Candidate candidate) FLYDSL_INLINED {
      const u32 order = order_of(candidate);
      largest = largest > order ? largest : order;
    });
    return largest;
  }
  // How many threads have one, or fewer.
  FLYDSL_DEVICE u32 threads() const {
    const u32 threads = kWide ? count / kOfVector : count;
    return threads < kTopkThreads ? threads : kTopkThreads;
  }
  template <class Use>
  FLYDSL_DEVICE void for_each(Use use) const {
#pragma unroll
    for (u32 e = 0; e < kElements; ++e) {
      const u32 index = Tile::index(thread_index(), e / kOfVector, e % kOfVector);
      if (index < count) use(candidate_of(orders[e], first + index));
    }
  }
};

// Candidates that the parts of a row left.
struct CandidateSource {
  global_ptr<const Candidate> candidates;
  u64 count;
  template <class Use>
  FLYDSL_DEVICE void for_each(Use use) const {
    in_batches(
        count, [&](u64 i) FLYDSL_INLINED { return candidates[i]; },
        [&](u64, Candidate candidate) FLYDSL_INLINED { use(candidate); });
  }
};

struct SelectMemory {
  u32 bins[kBins];
  u32 of_waves[kTopkThreads / 32];
  u32 digit, above, inside, slots;
  Candidate sorted[kSortedInLds];
};

class Selector {
 public:
  FLYDSL_DEVICE Selector(lds_ptr<SelectMemory> memory) : memory_(memory) {}

  // The least of the `k` best candidates, or a bound below it that no other candidate reaches. `k` is at least 1 and at most
  // their number.
  template <class Source>
  FLYDSL_DEVICE Candidate least_of_best(const Source &source, u32 k, u32 order_bits) {
    Candidate prefix = 0;
    u32 low = order_bits + 32;  // bits below the prefix
    while (low > 0) {
      const u32 bits = low > 32 ? (low - 32 < kDigitBits ? low - 32 : kDigitBits)
                                : (low < kDigitBits ? low : kDigitBits);
      const u32 next = low - bits;
      for (u32 bin = thread_index(); bin < kBins; bin += kTopkThreads) memory_->bins[bin] = 0;
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

  // A bound from below of the k-th best: the k-th best of the threads' own best ones, of which only the highest bits are looked
  // at. Of a source with at least `k` threads that have elements.
  template <class Source>
  FLYDSL_DEVICE Candidate bound_of_best(const Source &source, u32 k, u32 order_bits) {
    for (u32 bin = thread_index(); bin < kBins; bin += kTopkThreads) memory_->bins[bin] = 0;
    group_barrier();
    const u32 shift = order_bits - kDigitBits;
    if (thread_index() < source.threads())
      atomic_add(&memory_->bins[source.largest_order() >> shift], 1);
    group_barrier();
    find_digit(k);
    const u32 digit = wave_uniform(memory_->digit);
    group_barrier();
    return u64{digit << shift} << 32;
  }

  // Puts the candidates from `least` on into put(slot, candidate), in any order, and counts them. Slots from `most` on are left
  // out: there are none unless two candidates are equal, as where another call has the same workspace.
  template <class Source, class Put>
  FLYDSL_DEVICE u32 collect(const Source &source, Candidate least, u32 most, Put put) {
    if (thread_index() == 0) memory_->slots = 0;
    group_barrier();
    source.for_each([&](Candidate candidate) FLYDSL_INLINED {
      if (candidate < least) return;
      const u32 slot = atomic_add(&memory_->slots, 1);
      if (slot < most) put(slot, candidate);
    });
    group_barrier_of_memory();
    return wave_uniform(memory_->slots);
  }

 private:
  // The bin in which the k-th largest lies.
  FLYDSL_DEVICE void find_digit(u32 k) {
    // Thread t has the bins 2t and 2t + 1, counted from the highest.
    const u32 thread = thread_index(), lane = thread % kWaveSize, wave = thread / kWaveSize;
    const u32 high = kBins - 1 - 2 * thread;
    const u32 first = memory_->bins[high], second = memory_->bins[high - 1];
    u32 sum = first + second;
#pragma unroll
    for (u32 step = 1; step < kWaveSize; step *= 2) {
      const u32 before = lane_bits(sum, lane >= step ? lane - step : lane);
      if (lane >= step) sum += before;
    }
    if (lane == kWaveSize - 1) memory_->of_waves[wave] = sum;
    group_barrier();
    for (u32 w = 0; w < wave; ++w) sum += memory_->of_waves[w];
    const u32 before = sum - first - second;
    if (before < k && k <= sum) {
      const bool in_first = k <= before + first;
      memory_->digit = in_first ? high : high - 1;
      memory_->above = in_first ? before : before + first;
      memory_->inside = in_first ? first : second;
    }
    group_barrier();
  }

  lds_ptr<SelectMemory> memory_;
};

// Sorts `count` candidates, the best first, with the threads of the work-group (bitonic, Batcher 1968; what would lie past
// the end is worse than everything and stays there).
template <class Pointer, class Barrier>
FLYDSL_DEVICE void sort_candidates(Pointer candidates, u32 count, Barrier barrier) {
  u32 size = 1;
  while (size < count) size *= 2;
  for (u32 span = 2; span <= size && span != 0; span *= 2) {
    for (u32 step = span / 2, shift = static_cast<u32>(__builtin_ctz(span)) - 1; step > 0;
         step /= 2, --shift) {
      barrier();
      for (u32 pair = thread_index(); pair < size / 2; pair += kTopkThreads) {
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

// Where little more than the k best reach the bound; whether that was so. The best go to their places.
template <class Element, class Source>
FLYDSL_DEVICE bool select_by_bound(TopkArguments args, const Source &source,
                                   const TopkRow<Element> &row, u64 number, u32 k, u64 part,
                                   u32 order_bits, lds_ptr<SelectMemory> memory) {
  Selector selector(memory);
  const Candidate bound = selector.bound_of_best(source, k, order_bits);
  const u32 count = selector.collect(source, bound, kSortedInLds,
                                     [&](u32 slot, Candidate candidate)
                                         FLYDSL_INLINED { memory->sorted[slot] = candidate; });
  if (count > kSortedInLds) return false;
  const auto workspace = (global_ptr<Candidate>)args->workspace + number * args->row_candidates;
  const auto put = [&](u32 rank, Candidate candidate) FLYDSL_INLINED {
    if (args->leaves_candidates)
      workspace[part * args->k + rank] = candidate;
    else
      row.store(rank, candidate);
  };
  if (count <= kCounted) {
    if (thread_index() < count) {
      const Candidate mine = memory->sorted[thread_index()];
      u32 better = 0;
      for (u32 other = 0; other < count; ++other) better += memory->sorted[other] > mine;
      if (better < k) put(better, mine);
    }
  } else {
    sort_candidates(&memory->sorted[0], count, group_barrier);
    for (u32 rank = thread_index(); rank < k; rank += kTopkThreads) put(rank, memory->sorted[rank]);
  }
  group_barrier();
  return true;
}

template <class Element, class Source>
FLYDSL_DEVICE void select_from(TopkArguments args, const Source &source,
                               const TopkRow<Element> &row, u64 number, u32 k, u64 part,
                               lds_ptr<SelectMemory> memory) {
  Selector selector(memory);
  const u32 order_bits = kRealBytes<Element> == 2 ? 16 : 32;
  if constexpr (requires { source.threads(); }) {
    if (k <= kMostBounded && k <= source.threads() &&
        select_by_bound(args, source, row, number, k, part, order_bits, memory))
      return;
  }
  const Candidate least = selector.least_of_best(source, k, order_bits);
  // Of a row's own, or in turn of the rows of a work-group.
  const u64 owner = args->leaves_candidates ? number : group_index();
  const auto workspace = (global_ptr<Candidate>)args->workspace + owner * args->row_candidates;
  if (args->leaves_candidates) {
    selector.collect(source, least, k, [&](u32 slot, Candidate candidate) FLYDSL_INLINED {
      workspace[part * args->k + slot] = candidate;
    });
    return;
  }
  if (k <= kSortedInLds) {
    selector.collect(source, least, k, [&](u32 slot, Candidate candidate) FLYDSL_INLINED {
      memory->sorted[slot] = candidate;
    });
    sort_candidates(&memory->sorted[0], k, group_barrier);
    for (u32 rank = thread_index(); rank < k; rank += kTopkThreads)
      row.store(rank, memory->sorted[rank]);
  } else {
    selector.collect(source, least, k, [&](u32 slot, Candidate candidate) FLYDSL_INLINED {
      workspace[slot] = candidate;
    });
    sort_candidates(workspace, k, group_barrier_of_memory);
    for (u32 rank = thread_index(); rank < k; rank += kTopkThreads)
      row.store(rank, workspace[rank]);
  }
  group_barrier();
}

enum class Held { memory, registers, narrow_registers, candidates };

template <class Element, Held held>
FLYDSL_DEVICE void topk_select(const flydsl_aot_topk_kernarg &args) {
  FLYDSL_SHARED static SelectMemory memory;
  const auto lds = (lds_ptr<SelectMemory>)&memory;
  for (u64 tile = group_index(); tile < args.tiles; tile += args.groups) {
    const TopkArguments here = arguments_here(args);
    const u64 number = here->parts == 1 ? tile : tile / here->parts,
              part = tile - number * here->parts;
    const TopkRow<Element> row(here, number);
    const u32 first = static_cast<u32>(part * here->part_length);
    const u32 rest = here->length - first;
    const u32 count = rest < here->part_length ? rest : here->part_length;
    const u32 k = count < here->k ? count : here->k;
    if constexpr (held == Held::candidates) {
      const auto candidates =
          (global_ptr<const Candidate>)here->workspace + number * here->row_candidates;
      select_from(here, CandidateSource{candidates, here->row_candidates}, row, number, here->k, 0,
                  lds);
    } else if constexpr (held == Held::memory) {
      select_from(here, RowSource<Element>{row, first, count, here->flip}, row, number, k, part,
                  lds);
    } else {
      RegisterSource<Element, held == Held::registers> source;
      source.first = first;
      source.count = count;
      source.load(row, here->flip);
      select_from(here, source, row, number, k, part, lds);
    }
  }
}

}  // namespace flydsl::kernels
